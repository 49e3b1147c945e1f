"""Letters to agents' endpoints, against a real server that answers well or badly. What
rests is made due by moving its row."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, get_args

import pytest
from standardwebhooks.webhooks import Webhook

from agents import acknowledgements, representation, retention, reversals, tasks
from agents.models import (
    Acknowledgement,
    Callback,
    Delivery,
    DeliveryAttempt,
    Endpoint,
)
from agents.schemas.webhooks import WebhookEventOut
from agents.webhooks import delivery, endpoints, lanes, redelivery
from journal import clock, log
from journal.errors import Conflict, InvalidInput
from journal.models import Epoch, LogRecord, OutboxMessage
from reviews import transitions
from reviews.choices import ENDED, SETTLED
from reviews.executions import redeem, run, settle
from reviews.models import Alarm, Execution, Proposal
from reviews.tool_services.executors import build_failure
from tests import factories
from tests.agents.webhooks import deliveries
from tests.conftest import Gate
from tests.reviews import service, states
from tests.reviews.executions.attempts import deployment, reported
from tests.reviews.outbound.test_trace_context import GIVEN
from tests.reviews.service import Service

pytestmark = pytest.mark.django_db
RILEY = log.Actor("agent", "riley")


def events(receiver: Service) -> list[str]:
    return [one["type"] for one in receiver.payloads]


def headers(receiver: Service, number: int = -1) -> dict[str, str]:
    return {k.lower(): v for k, v in receiver.requests[number][1].items()}


def only() -> Delivery:
    return Delivery.objects.get()


def test_an_endpoint_hears_of_everything_its_agent_proposes(
    gate: Gate, receiver: Service
) -> None:
    _, secret = deliveries.register(gate.agent, receiver.url, gate.owen)
    proposal = deliveries.ran(gate)
    assert deliveries.carry() == 3
    assert sorted(events(receiver)) == [
        "proposal.executed",
        "proposal.settled",
        "request.opened",
    ]
    for _, sent, body in receiver.requests:
        Webhook(secret).verify(body, {k.lower(): v for k, v in sent.items()})
    last = representation.find_proposal("riley", proposal.pk)
    assert last is not None
    described = representation.build_proposal_json(last)
    by_type = {one["type"]: one["data"] for one in receiver.payloads}
    assert by_type["proposal.executed"]["outcome"] == described["outcome"]
    assert by_type["proposal.settled"]["status"] == "granted"
    assert by_type["proposal.settled"]["outcome"] is None
    assert by_type["proposal.settled"]["decision"]["verdict"] == "approve"
    assert described["acknowledged_at"] is not None


def test_a_letter_goes_on_with_the_agents_trace(gate: Gate, receiver: Service) -> None:
    deliveries.register(gate.agent, receiver.url, gate.owen)
    deliveries.rejected(gate, traceparent=GIVEN)
    deliveries.rejected(gate, thread="t-2")
    deliveries.carry()
    found = [headers(receiver, n).get("traceparent") for n in range(4)]
    assert sorted(found, key=str) == [GIVEN, GIVEN, None, None]


def test_a_letter_holds_ids_and_facts_and_no_words(
    gate: Gate, receiver: Service
) -> None:
    deliveries.register(gate.agent, receiver.url, gate.owen)
    proposal = factories.propose(gate.agent, "pay", rationale="asked in words")
    said = {"reason": "Not for them, says rita.", "reason_code": "other"}
    factories.decide(proposal.request, gate.rita, "reject", **said)
    deliveries.carry()
    for _, _, body in receiver.requests:
        text = body.decode()
        assert not any(word in text for word in ("asked", "rita", "Rita", "says"))
    (settled,) = [one for one in receiver.payloads if one["type"] != "request.opened"]
    assert settled["data"]["decision"] == {
        "verdict": "reject",
        "reason_code": "other",
        "by_role": "reviewer",
        "decided_at": settled["data"]["decision"]["decided_at"],
    }


def test_a_callback_is_heard_by_one_proposal_alone(
    gate: Gate, receiver: Service
) -> None:
    asked = deliveries.rejected(gate, callback_url=f"{receiver.url}/p1?token=abc")
    deliveries.rejected(gate, thread="t-2")
    assert deliveries.carry() == 2
    assert {one["data"]["proposal"] for one in receiver.payloads} == {asked.pk}
    assert {path for path, _, _ in receiver.requests} == {"/hook/p1?token=abc"}
    assert Endpoint.objects.get().by_proposal


def test_a_registered_endpoint_signs_for_callbacks_of_its_origin(
    gate: Gate, receiver: Service
) -> None:
    _, secret = deliveries.register(gate.agent, receiver.url, gate.owen)
    deliveries.rejected(gate, callback_url=f"{receiver.url}/one")
    assert deliveries.carry() == 2  # one letter an event, at the address that was named
    assert {path for path, _, _ in receiver.requests} == {"/hook/one"}
    Webhook(secret).verify(receiver.requests[0][2], headers(receiver, 0))


def test_who_does_not_listen_costs_no_promise(gate: Gate) -> None:
    deliveries.ran(gate)
    assert not OutboxMessage.objects.filter(topic="proposal.told").exists()


def test_an_endpoint_hears_of_what_waited_when_it_came(
    gate: Gate, receiver: Service
) -> None:
    proposal = factories.propose(gate.agent, "pay")
    deliveries.register(gate.agent, receiver.url, gate.owen)
    proposal.refresh_from_db()
    request = factories.decide(proposal.request, gate.rita, "reject")
    assert request.status == "rejected"
    deliveries.carry()
    assert events(receiver) == ["proposal.settled"]


def test_the_same_promise_twice_is_one_letter(gate: Gate, receiver: Service) -> None:
    deliveries.register(gate.agent, receiver.url, gate.owen)
    factories.propose(gate.agent, "pay")
    deliveries.promised()
    OutboxMessage.objects.filter(topic="proposal.told").update(done_at=None)
    assert deliveries.promised() == []
    assert only().kind == "request.opened"


@pytest.mark.parametrize(
    ("trick", "status", "error"),
    [
        ("", 500, "status 500"),
        ("", 404, "status 404"),
        ("", 302, "status 302; redirects are not followed"),
        ("reset", 200, "sent, but no complete response"),
    ],
)
def test_a_try_that_fails_is_made_again(
    gate: Gate, receiver: Service, trick: str, status: int, error: str
) -> None:
    receiver.trick, receiver.status = trick, status
    receiver.headers = {"Location": f"http://127.0.0.1:{receiver.port}/else"}
    _, secret = deliveries.register(gate.agent, receiver.url, gate.owen)
    factories.propose(gate.agent, "pay")
    assert deliveries.carry() == 1
    letter = only()
    assert (letter.status, letter.attempts, letter.busy_until) == ("waiting", 1, None)
    assert letter.last_error == error
    assert letter.next_at > clock.now()
    receiver.trick, receiver.status, receiver.headers = "", 204, {}
    receiver.body = b""
    deliveries.come_due()
    assert deliveries.carry() == 1
    assert only().status == "delivered"
    assert {path for path, _, _ in receiver.requests} == {"/hook"}
    first, second = headers(receiver, 0), headers(receiver, 1)
    assert first["webhook-id"] == second["webhook-id"]
    assert receiver.requests[0][2] == receiver.requests[1][2]
    Webhook(secret).verify(receiver.requests[1][2], second)


def test_a_server_that_hangs_is_left_after_its_time(
    gate: Gate, receiver: Service, settings: Any
) -> None:
    changed = settings.COUNTERSEAL.model_copy(update={"http_timeout": 1})
    settings.COUNTERSEAL = changed
    receiver.trick = "hang"
    deliveries.register(gate.agent, receiver.url, gate.owen)
    factories.propose(gate.agent, "pay")
    deliveries.carry()
    assert only().last_error == "sent, but no complete response"
    assert DeliveryAttempt.objects.get().milliseconds < 2500
    assert Endpoint.objects.get().slow_since is not None


def test_nobody_there_is_tried_again(gate: Gate, receiver: Service) -> None:
    url = "http://127.0.0.1:1024/nobody"
    deliveries.register(gate.agent, url, gate.owen)
    factories.propose(gate.agent, "pay")
    deliveries.carry()
    assert only().last_error == "no connection; nothing was sent"


def test_a_private_address_is_refused_when_given_and_when_sent(
    gate: Gate, receiver: Service, networks: Callable[..., None]
) -> None:
    deliveries.register(gate.agent, receiver.url, gate.owen)
    factories.propose(gate.agent, "pay")
    networks()
    deliveries.carry()
    assert only().last_error == "this address is not allowed; nothing was sent"
    assert receiver.connections == 0
    with pytest.raises(InvalidInput):
        deliveries.register(gate.agent, "http://127.0.0.1:9999/", gate.owen)
    with pytest.raises(InvalidInput):
        factories.propose(gate.agent, "pay", callback_url="http://169.254.169.254/")


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        (False, "this address is not public and is not in CALLBACK_NETWORKS"),
        (True, "is one of the gate's own"),
    ],
)
def test_a_callback_reaches_no_tool_and_no_port_of_the_gate(
    gate: Gate, receiver: Service, settings: Any, ours: bool, said: str
) -> None:
    """An address is refused when it is proposed, a name when it is looked up."""
    networks = [factories.LOOPBACK] if ours else []
    changed = {"callback_networks": networks, "port": [receiver.port]}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    place = f"{receiver.port}/effects/process_refund"
    with pytest.raises(InvalidInput) as refused:
        deliveries.rejected(gate, callback_url=f"http://127.0.0.1:{place}")
    (error,) = refused.value.errors
    assert error["path"] == "callback_url"
    assert said in error["message"]
    deliveries.rejected(gate, callback_url=f"http://localhost:{place}")
    deliveries.carry()
    errors = set(Delivery.objects.values_list("last_error", flat=True))
    assert errors == {"this address is not allowed; nothing was sent"}
    assert receiver.connections == 0


def test_gone_switches_the_endpoint_off(gate: Gate, receiver: Service) -> None:
    receiver.status = 410
    endpoint, _ = deliveries.register(gate.agent, receiver.url, gate.owen)
    factories.propose(gate.agent, "pay")
    factories.propose(gate.agent, "pay", thread="t-2")
    assert deliveries.carry() == 1
    endpoint.refresh_from_db()
    assert endpoint.off_why == "gone"
    assert sorted(Delivery.objects.values_list("status", flat=True)) == [
        "dead",
        "waiting",
    ]
    assert Alarm.objects.get().subject == endpoint.pk
    deliveries.come_due()
    assert deliveries.carry() == 0
    endpoints.switch_on(endpoint_id=endpoint.pk, by=gate.adam)
    receiver.status = 200
    assert redelivery.send_all_again(endpoint_id=endpoint.pk, by=gate.adam) == 1
    assert deliveries.carry() == 2
    assert set(Delivery.objects.values_list("status", flat=True)) == {"delivered"}
    assert Alarm.objects.get().status == "closed"


@pytest.mark.parametrize("status", [410, 429, 503])
def test_what_one_callback_says_of_itself_is_not_said_of_the_endpoint(
    gate: Gate, receiver: Service, status: int
) -> None:
    endpoint, _ = deliveries.register(gate.agent, receiver.url, gate.owen)
    receiver.status, receiver.headers = status, {"Retry-After": "7200"}
    over = factories.propose(gate.agent, "pay", callback_url=f"{receiver.url}/jobs/17")
    assert deliveries.carry() == 1
    receiver.status = 200
    factories.propose(gate.agent, "pay", thread="t-2")
    assert deliveries.carry() == 1
    endpoint.refresh_from_db()
    assert (endpoint.off_at, endpoint.rest_until) == (None, None)
    assert receiver.requests[-1][0] == "/hook"
    gone = status == 410
    assert Callback.objects.filter(pk=over.pk).exists() is not gone
    assert Delivery.objects.filter(status="dead").exists() is gone


@pytest.mark.parametrize("status", [429, 503])
def test_who_asks_to_be_left_alone_is(
    gate: Gate, receiver: Service, status: int
) -> None:
    receiver.status, receiver.headers = status, {"Retry-After": "7200"}
    endpoint, _ = deliveries.register(gate.agent, receiver.url, gate.owen)
    factories.propose(gate.agent, "pay")
    factories.propose(gate.agent, "pay", thread="t-2")
    assert deliveries.carry() == 1  # the other letter waits as well
    endpoint.refresh_from_db()
    tried = Delivery.objects.get(attempts=1)
    for until in (endpoint.rest_until, tried.next_at):
        assert until is not None
        assert timedelta(minutes=119) < until - clock.now() <= timedelta(hours=2)


@pytest.mark.parametrize(
    "words",
    ["soon", "Mon, 01 Jan 99999999999 00:00:00 GMT", "Mon, 01 Jan 2029 00:00:00 +9999"],
)
def test_a_date_that_is_none_is_a_failed_try_like_any_other(
    gate: Gate, receiver: Service, words: str
) -> None:
    receiver.status, receiver.headers = 503, {"Retry-After": words}
    deliveries.register(gate.agent, receiver.url, gate.owen)
    factories.propose(gate.agent, "pay")
    deliveries.carry()
    (letter,) = Delivery.objects.all()
    assert letter.attempts == letter.tries.count() == 1
    assert letter.next_at > clock.now()


def test_after_three_days_nobody_tries_and_people_hear(
    gate: Gate, receiver: Service
) -> None:
    receiver.status = 500
    endpoint, _ = deliveries.register(gate.agent, receiver.url, gate.owen)
    for number in range(3):
        factories.propose(gate.agent, "pay", thread=f"t-{number}")
    deliveries.carry()
    tries = []
    while only_waiting := Delivery.objects.filter(status="waiting").first():
        age = only_waiting.next_at - clock.now()
        tries.append(age)
        Delivery.objects.filter(status="waiting").update(
            next_at=clock.now(),
            give_up_at=only_waiting.give_up_at - age,
        )
        deliveries.carry()
    assert sum(tries, timedelta()) == pytest.approx(
        timedelta(days=3), abs=timedelta(minutes=1)
    )
    assert 20 < len(tries) < 40
    assert tries[0] <= timedelta(seconds=5)
    assert max(tries) <= timedelta(hours=6)
    assert set(Delivery.objects.values_list("status", flat=True)) == {"dead"}
    alarm = Alarm.objects.get()  # one for the endpoint, not one a letter
    assert (alarm.kind, alarm.subject, alarm.times) == (
        "delivery_dead",
        endpoint.pk,
        3,
    )


def test_sent_again_it_has_the_same_id_and_three_days_more(
    gate: Gate, receiver: Service
) -> None:
    receiver.status = 500
    deliveries.register(gate.agent, receiver.url, gate.owen)
    factories.propose(gate.agent, "pay")
    deliveries.carry()
    past = clock.now() - timedelta(seconds=1)
    Delivery.objects.update(next_at=past, give_up_at=past)
    deliveries.carry()
    letter = only()
    assert letter.status == "dead"
    receiver.status = 200
    redelivery.send_again(delivery_id=letter.pk, by=gate.owen)
    assert only().give_up_at - clock.now() > timedelta(hours=71)
    assert deliveries.carry() == 1
    assert len({headers(receiver, n)["webhook-id"] for n in range(3)}) == 1
    with pytest.raises(Conflict):
        redelivery.send_all_again(endpoint_id=letter.endpoint_id, by=gate.owen)
    kinds = set(LogRecord.objects.values_list("kind", flat=True))
    assert {
        "delivery.promised",
        "delivery.dead",
        "delivery.again",
        "delivery.delivered",
    } <= kinds


def test_two_secrets_sign_for_a_day(gate: Gate, receiver: Service) -> None:
    endpoint, old = deliveries.register(gate.agent, receiver.url, gate.owen)
    new = endpoints.renew_secret(endpoint_id=endpoint.pk, by=gate.owen)
    factories.propose(gate.agent, "pay")
    deliveries.carry()
    sent, body = headers(receiver), receiver.requests[-1][2]
    assert len(sent["webhook-signature"].split()) == 2
    for secret in (old, new):
        Webhook(secret).verify(body, sent)
    Endpoint.objects.update(former_until=clock.now() - timedelta(seconds=1))
    factories.propose(gate.agent, "pay", thread="t-2")
    deliveries.carry()
    assert len(headers(receiver)["webhook-signature"].split()) == 1
    Webhook(new).verify(receiver.requests[-1][2], headers(receiver))


def test_secrets_and_addresses_stand_in_no_log(gate: Gate, receiver: Service) -> None:
    endpoint, secret = deliveries.register(gate.agent, receiver.url, gate.owen)
    endpoints.switch_off(endpoint_id=endpoint.pk, by=gate.owen)
    endpoints.switch_on(endpoint_id=endpoint.pk, by=gate.owen)
    deliveries.rejected(gate)
    deliveries.carry()
    leaves = [bytes(leaf) for leaf in LogRecord.objects.values_list("leaf", flat=True)]
    text = b"\n".join(leaves).decode()
    assert secret not in text
    assert "/hook" not in text
    assert factories.count_of(secret.removeprefix("whsec_")) == 0


def test_what_does_not_fit_is_held_and_never_sent(
    gate: Gate, receiver: Service
) -> None:
    deliveries.register(gate.agent, receiver.url, gate.owen)
    factories.propose(gate.agent, "pay")
    deliveries.promised()
    whole = only().payload
    Delivery.objects.update(payload={**whole, "data": {**whole["data"], "status": 7}})
    deliveries.carry()
    letter = only()
    assert (letter.status, letter.last_error) == (
        "held",
        "invalid payload at data.status",
    )
    assert receiver.connections == 0
    assert Alarm.objects.get().kind == "invalid_outcome"
    Delivery.objects.update(payload=whole)
    redelivery.send_again(delivery_id=letter.pk, by=gate.owen)
    deliveries.carry()
    assert only().status == "delivered"


def test_once_acknowledged_nobody_tells_it_again(gate: Gate, receiver: Service) -> None:
    receiver.status = 500
    deliveries.register(gate.agent, receiver.url, gate.owen)
    proposal = deliveries.rejected(gate)
    deliveries.carry()
    outcome = described(proposal)["outcome"]
    for _ in range(2):
        acknowledgements.acknowledge_outcome(
            agent=gate.agent, proposal_id=proposal.pk, outcome=outcome
        )
    assert Acknowledgement.objects.get().by == "call"
    assert Delivery.objects.get(event=outcome).status == "taken"
    deliveries.come_due()
    assert deliveries.carry() == 1  # the one that the request was opened
    assert LogRecord.objects.filter(kind="outcome.acknowledged").count() == 1


def described(proposal: Proposal) -> dict[str, Any]:
    loaded = representation.find_proposal(proposal.agent, proposal.pk)
    assert loaded is not None
    return representation.build_proposal_json(loaded)


def test_a_stale_worker_writes_nothing(gate: Gate, receiver: Service) -> None:
    deliveries.register(gate.agent, receiver.url, gate.owen)
    factories.propose(gate.agent, "pay")
    (pk,) = deliveries.promised()
    stale = delivery.claim_delivery(delivery_id=pk)
    assert stale is not None
    assert delivery.claim_delivery(delivery_id=pk) is None  # somebody is at it
    Delivery.objects.update(busy_until=clock.now() - timedelta(seconds=1))
    delivery.attempt_delivery(pk)
    assert only().status == "delivered"
    failed = delivery.AttemptResult(500, "status 500")
    delivery.record_attempt(delivery_id=pk, attempt=stale.attempts, answer=failed)
    assert (only().status, only().last_answer) == ("delivered", 200)


def test_a_dead_endpoint_holds_up_nobody(
    gate: Gate, receiver: Service, settings: Any
) -> None:
    """Ten endpoints that fail, with ten letters each, and one that does not: at any
    time one letter at most is on its way to all the ten."""
    with ExitStack() as stack:
        for _ in range(10):
            bad = stack.enter_context(service.running())
            bad.status = 500
            deliveries.register(gate.agent, bad.url, gate.owen)
        for number in range(10):
            factories.propose(gate.agent, "pay", thread=f"t-{number}")
        deliveries.promised()
        for pk in lanes.list_due_deliveries():
            delivery.attempt_delivery(pk)  # each is found out once
        deliveries.come_due()
        good, _ = deliveries.register(gate.agent, receiver.url, gate.owen)
        factories.propose(gate.agent, "pay", thread="t-good")
        deliveries.promised()
        turn = lanes.list_due_deliveries()
        assert len(turn) == 2
        assert Delivery.objects.get(pk=turn[0]).endpoint_id == good.pk
        busy = delivery.claim_delivery(delivery_id=turn[1])
        assert busy is not None
        others = Delivery.objects.exclude(endpoint=good)
        for pk in others.filter(attempts=0).values_list("pk", flat=True)[:20]:
            assert delivery.claim_delivery(delivery_id=pk) is None
        assert delivery.claim_delivery(delivery_id=turn[0]) is not None


def test_the_slow_ones_take_turns(gate: Gate, receiver: Service) -> None:
    with ExitStack() as stack:
        for _ in range(3):
            bad = stack.enter_context(service.running())
            bad.status = 500
            deliveries.register(gate.agent, bad.url, gate.owen)
        for number in range(4):
            factories.propose(gate.agent, "pay", thread=f"t-{number}")
        deliveries.promised()
        for pk in lanes.list_due_deliveries():
            delivery.attempt_delivery(pk)
        deliveries.come_due()
        served = []
        for _ in range(6):
            (pk,) = lanes.list_due_deliveries()
            served.append(Delivery.objects.get(pk=pk).endpoint_id)
            delivery.attempt_delivery(pk)
        assert len(set(served[:3])) == 3
        assert served[:3] == served[3:]


def test_a_letter_says_what_was_true_then(gate: Gate, receiver: Service) -> None:
    """Written late, it does not tell what came after."""
    deliveries.register(gate.agent, receiver.url, gate.owen)
    deliveries.ran(gate)
    deliveries.carry()
    status = {one["type"]: one["data"]["status"] for one in receiver.payloads}
    assert status == {
        "request.opened": "pending",
        "proposal.settled": "granted",
        "proposal.executed": "executed",
    }
    assert json.dumps(receiver.payloads).count("revision") == 3


def test_what_is_offered_once_more_is_in_a_letter(
    gate: Gate, receiver: Service
) -> None:
    """And what the gate tries again by itself is not: nobody has to do anything."""
    deliveries.register(gate.agent, receiver.url, gate.owen)
    execution, token = deployment(gate)
    claim = redeem.redeem_grant(token=token, agent="riley")
    reported(execution, claim.fence, build_failure("busy", "not now"))
    ours = factories.propose(gate.agent, "decline", thread="t-2")
    factories.decide(ours.request, gate.rita)
    run.run_execution(ours.executions.get().pk)
    deliveries.carry()
    receiver.requests.clear()
    settle.retry_execution(execution_id=execution.pk, person=gate.sue)
    settle.retry_execution(execution_id=ours.executions.get().pk, person=gate.sue)
    assert deliveries.carry() == 1
    (letter,) = receiver.payloads
    proposal = representation.find_proposal("riley", execution.proposal_id)
    assert proposal is not None
    described = representation.build_proposal_json(proposal)
    assert described["grant"] is not None
    assert (letter["type"], letter["data"]["status"]) == ("proposal.settled", "granted")
    assert letter["data"]["outcome"] == described["outcome"]


@pytest.mark.parametrize("when", ["offered", "redeemed", "failed"])
def test_what_is_offered_once_more_is_acknowledged_whenever_the_agent_comes_to_it(
    gate: Gate, when: str
) -> None:
    execution, token = deployment(gate)
    claim = redeem.redeem_grant(token=token, agent="riley")
    reported(execution, claim.fence, build_failure("busy", "not now"))
    settle.retry_execution(execution_id=execution.pk, person=gate.sue)
    described = told(execution)
    assert described["outcome"] is not None
    if when != "offered":
        claim = redeem.redeem_grant(token=described["grant"]["token"], agent="riley")
    if when == "failed":
        reported(execution, claim.fence, build_failure("busy", "not now"))
    acknowledgements.acknowledge_outcome(
        agent=gate.agent,
        proposal_id=execution.proposal_id,
        outcome=described["outcome"],
    )
    assert Acknowledgement.objects.get().outcome == described["outcome"]
    assert bool(told(execution)["acknowledged_at"]) == (when == "offered")


def told(execution: Execution) -> dict[str, Any]:
    proposal = representation.find_proposal("riley", execution.proposal_id)
    assert proposal is not None
    return representation.build_proposal_json(proposal)


def test_what_came_back_with_a_backup_and_was_refused_may_have_run(
    gate: Gate, receiver: Service
) -> None:
    """The letter says so, as the proposal does; of others it says nothing of it."""
    deliveries.register(gate.agent, receiver.url, gate.owen)
    before = factories.propose(gate.agent, "pay")
    now = clock.now()
    looked = {"asked_by": gate.sue.public_id, "by": gate.sam.public_id}
    Epoch.objects.create(
        number=2, noticed_at=now, why="behind", began_at=now, from_record=1, **looked
    )
    after = factories.propose(gate.agent, "pay", thread="t-2")
    for proposal in (before, after):
        factories.decide(proposal.request, gate.rita, "reject", reason_code="unsafe")
    deliveries.carry()
    said = {
        one["data"]["proposal"]: one["data"].get("may_have_run")
        for one in receiver.payloads
        if one["data"]["status"] == "rejected"
    }
    assert said == {before.pk: True, after.pk: None}


def test_a_reversal_is_told_to_the_agent_in_whose_name_it_is(
    gate: Gate, receiver: Service
) -> None:
    deliveries.register(gate.agent, receiver.url, gate.owen)
    paid = states.succeeded(gate)
    deliveries.carry()
    receiver.requests.clear()
    made = reversals.propose_reversal(
        execution_id=paid.pk, person=gate.tom, reason="wrong one"
    )
    factories.decide(made.request, gate.rita, "reject", reason_code="unsafe")
    assert deliveries.carry() == 2
    told = {one["data"]["proposal"] for one in receiver.payloads}
    assert told == {made.pk}


def test_places_that_nobody_has_heard_from_share_a_turn(
    gate: Gate, receiver: Service
) -> None:
    """An agent may name any number of them, and each may hang."""
    with ExitStack() as stack:
        others = [stack.enter_context(service.running()) for _ in range(2)]
        for number, place in enumerate([*others, *others]):
            url = f"{place.url}/{number}"
            factories.propose(gate.agent, "pay", thread=f"t-{number}", callback_url=url)
        deliveries.promised()
        first = lanes.list_due_deliveries()
        assert len(first) == 1
        assert delivery.claim_delivery(delivery_id=first[0]) is not None
        assert lanes.list_due_deliveries() == []
        Delivery.objects.update(busy_until=None)
        assert deliveries.carry() == 4
        slow = Endpoint.objects.filter(slow_since__isnull=False)
        assert not slow.exists(), "they have been heard from"


def test_places_of_one_agent_hold_one_worker(gate: Gate, receiver: Service) -> None:
    """Also when each answered well before: they could take turns to hang."""
    with ExitStack() as stack:
        places = [stack.enter_context(service.running()) for _ in range(3)]
        for turn in range(2):
            for number, place in enumerate(places):
                factories.propose(
                    gate.agent,
                    "pay",
                    thread=f"t-{turn}-{number}",
                    callback_url=f"{place.url}/{turn}",
                )
            if not turn:
                assert deliveries.carry() == 3
        deliveries.promised()
        (first,) = lanes.list_due_deliveries()
        assert delivery.claim_delivery(delivery_id=first) is not None
        for pk in Delivery.objects.filter(status="waiting").values_list(
            "pk", flat=True
        ):
            assert delivery.claim_delivery(delivery_id=pk) is None
        deliveries.register(gate.agent, receiver.url, gate.owen)
        factories.propose(gate.agent, "pay", thread="t-of-people")
        deliveries.promised()
        (other,) = lanes.list_due_deliveries()
        assert Delivery.objects.get(pk=other).url == receiver.url
        Delivery.objects.update(busy_until=None)
        delivery.attempt_delivery(first)
        assert len(lanes.list_next_in_lane(first)) == 1, (
            "whoever carries it goes on in its lane"
        )


def test_a_slow_place_keeps_none_that_answer_waiting(
    gate: Gate, receiver: Service
) -> None:
    with ExitStack() as stack:
        bad = stack.enter_context(service.running())
        for turn, place in enumerate((bad, receiver, bad, receiver)):
            bad.status = 200 if not turn else 500
            factories.propose(
                gate.agent, "pay", thread=f"t-{turn}", callback_url=f"{place.url}/x"
            )
            deliveries.carry()
        factories.propose(
            gate.agent, "pay", thread="t-well", callback_url=f"{receiver.url}/x"
        )
        deliveries.promised()
        deliveries.come_due()
        ours, slow = lanes.list_due_deliveries()
        assert delivery.claim_delivery(delivery_id=slow) is not None
        assert delivery.claim_delivery(delivery_id=ours) is not None


def test_slow_places_take_turns_by_agents(gate: Gate, receiver: Service) -> None:
    """One agent named many that nobody has heard from; another waits for one."""
    other = factories.agent(gate.owen, "ada")
    receiver.status = 500
    deliveries.register(other, receiver.url, gate.owen)
    factories.propose(other, "pay", thread="t-ada")
    deliveries.carry()
    with ExitStack() as stack:
        for number in range(5):
            place = stack.enter_context(service.running())
            place.status = 500
            factories.propose(
                gate.agent, "pay", thread=f"t-{number}", callback_url=place.url
            )
        deliveries.promised()
        deliveries.come_due()
        served = []
        for _ in range(3):
            (pk,) = lanes.list_due_deliveries()
            served.append(Delivery.objects.get(pk=pk).endpoint.agent.slug)
            delivery.attempt_delivery(pk)
            deliveries.come_due()
        assert served == ["riley", "ada", "riley"]


def test_what_proposals_name_takes_no_room_from_people(
    gate: Gate, receiver: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MAX_REGISTERED", 2)
    monkeypatch.setattr(endpoints, "MAX_NAMED", 1)
    deliveries.rejected(gate, callback_url=f"{receiver.url}/one")
    with pytest.raises(InvalidInput):
        factories.propose(gate.agent, "pay", callback_url="https://b.example/")
    for name in ("c", "d"):
        deliveries.register(gate.agent, f"https://{name}.example/", gate.owen)
    with pytest.raises(InvalidInput):
        deliveries.register(gate.agent, "https://e.example/", gate.owen)


def test_a_place_that_only_proposals_named_is_forgotten_with_them(
    gate: Gate, receiver: Service
) -> None:
    deliveries.rejected(gate, callback_url=f"{receiver.url}/one")
    deliveries.carry()
    assert retention.delete_unused_endpoints() == 0, "it is still needed"
    long_ago = clock.now() - timedelta(days=1000)
    Delivery.objects.update(ended_at=long_ago)
    tasks.prune()
    assert not Endpoint.objects.exists()


def test_no_end_goes_untold() -> None:
    """Every edge to an end has the event by which the agent hears of it, but for that
    of a canary, which no agent asked for."""
    ends = {*SETTLED, *ENDED}
    both = [*transitions.request.edges, *transitions.execution.edges]
    edges = [one for one in both if one.logged_as != "canary.revealed"]
    silent = [one for one in edges if one.target in ends and not one.webhook_event]
    assert silent == []
    told = {one.webhook_event for one in edges} - {""}
    assert told == set(get_args(WebhookEventOut.model_fields["type"].annotation))
