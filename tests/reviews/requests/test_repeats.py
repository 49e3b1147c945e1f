from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from agents import keys
from agents.models import Checkpoint
from assurance import second_reviews
from journal import clock, errors
from journal.models import LogRecord
from policies.models import Observation
from reviews.choices import RequestStatus, SampleCause, StopMode
from reviews.executions import run
from reviews.models import ApprovalRequest, Decision, Execution, Proposal, Stop
from reviews.stops import stops
from tests import factories
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.markup import read_page, read_text


@pytest.fixture
def caller(gate: Gate) -> Caller:
    return Caller(keys.issue_key(agent=gate.agent, by=gate.owen), itertools.count())


def reject_new(gate: Gate, number: int, **fields: Any) -> Proposal:
    """A proposal with arguments of its own, rejected by Rita."""
    proposal = propose(gate.agent, customer=f"C-{number}", **fields)
    decide(proposal.request, gate.rita, "reject")
    return proposal


def standing_pause(thread: str = "t-1") -> Stop | None:
    key = stops.build_thread_key("riley", thread)
    return Stop.objects.filter(key=key, lifted_at__isnull=True).first()


def test_a_second_call_joins_the_open_request(caller: Caller) -> None:
    first, second, third = (caller.propose() for _ in range(3))
    assert [one.status_code for one in (first, second, third)] == [201, 200, 200]
    found = third.json()
    assert found["id"] == first.json()["id"]
    assert (found["joined"], found["status"]) == (2, "pending")
    assert ApprovalRequest.objects.get().joined == 2
    kinds = LogRecord.objects.filter(kind="request.joined")
    assert kinds.filter(proposal=found["id"]).count() == 2


def test_the_queue_the_page_and_the_api_count_the_calls(
    gate: Gate, client: Any
) -> None:
    request = propose(gate.agent).request
    for _ in range(13):
        propose(gate.agent)
    client.force_login(gate.rita)
    row = client.get("/queue/").content.decode()
    page = client.get(f"/requests/{request.pk}/").content.decode()
    listed = client.get(f"/api/v1/requests/{request.pk}").json()
    assert row.count("Proposed 14 times") == 1
    assert "Proposed 14 times" in page
    assert listed["joined"] == 13


def test_a_joined_call_keeps_its_checkpoint_and_its_callback(
    gate: Gate, networks: Any
) -> None:
    networks(factories.LOOPBACK)
    first = propose(gate.agent)
    suspended = {"summary": "asks again", "resume_at": "pay"}
    address = "https://127.0.0.1/hook"
    again = propose(gate.agent, checkpoint=suspended, callback_url=address)
    assert again == first
    assert Checkpoint.objects.get().proposal == first.pk
    assert again.has_listener


@pytest.mark.parametrize(
    "fields",
    [
        {"thread": "t-2"},
        {"amount": "40.01"},
        {"uncertain": 0.9},
        {"on_behalf_of": {"kind": "user", "id": "rita"}},
    ],
)
def test_another_action_or_another_author_is_asked_by_itself(
    gate: Gate, fields: dict[str, Any]
) -> None:
    first, other = propose(gate.agent), propose(gate.agent, **fields)
    assert first != other
    assert other.request.joined == 0


def test_a_settled_request_is_not_joined(gate: Gate) -> None:
    first = propose(gate.agent)
    decide(first.request, gate.rita)
    run.run_execution(first.executions.get().pk)
    second = propose(gate.agent)
    assert second != first
    assert second.request.status == RequestStatus.PENDING


def test_a_call_that_supersedes_the_request_does_not_join_it(gate: Gate) -> None:
    first = propose(gate.agent)
    second = propose(gate.agent, supersedes=first.pk)
    assert second != first
    assert second.request.status == RequestStatus.PENDING


def test_a_call_that_means_one_more_effect_is_asked_by_itself(
    caller: Caller, gate: Gate, client: Any
) -> None:
    first = caller.propose()
    again = [caller.propose(again=True) for _ in range(2)]
    assert [one.status_code for one in again] == [201, 201]
    ids = [one.json()["id"] for one in (first, *again)]
    assert len(set(ids)) == 3
    assert caller.propose().json()["id"] in ids, "without it, a call joins"
    records = LogRecord.objects.filter(kind="proposal.submitted").order_by("pk")
    said = [json.loads(bytes(one.leaf))["data"].get("again") for one in records]
    assert said == [None, True, True]
    requests = [ApprovalRequest.objects.get(proposal=pk) for pk in ids]
    assert Observation.objects.values("proposal").distinct().count() == 3
    client.force_login(gate.rita)
    page = client.get(f"/requests/{requests[0].pk}/")
    assert 'data-testid="same-action"' not in read_page(page)
    decide(requests[0], gate.rita)
    run.run_execution(Execution.objects.get().pk)
    page = client.get(f"/requests/{requests[2].pk}/")
    told = read_text(page, "same-action")
    assert told.startswith("This run proposed the same action before.")
    assert "is still open. That of" in told
    assert told.endswith("was performed.")
    for earlier in requests[:2]:
        assert f'href="/requests/{earlier.pk}/"' in read_page(page)
    decision = Decision.objects.get()
    second_reviews.choose_decision(decision_id=decision.pk, cause=SampleCause.SAMPLE)
    client.force_login(gate.tom)
    told = read_text(client.get(f"/requests/{requests[2].pk}/"), "same-action")
    assert "was performed" not in told, "he may review the first one a second time"
    decide(requests[1], gate.rita, "reject")
    assert caller.propose(again=True).json()["status"] == "rejected"


def test_the_same_action_gets_the_rejection_it_had(caller: Caller, gate: Gate) -> None:
    first = caller.propose().json()
    request = ApprovalRequest.objects.get()
    decide(request, gate.rita, "reject", reason="Wrong customer.")
    again = caller.propose()
    found = again.json()
    assert (again.status_code, found["status"]) == (201, "rejected")
    assert found["id"] != first["id"]
    assert found["repeats"] == first["id"]
    assert found["request"] is None
    assert found["decision"]["reason"] == "Wrong customer."
    assert found["decision"]["reason_code"] == "not_needed"
    assert found["outcome"]
    assert ApprovalRequest.objects.get() == request
    assert LogRecord.objects.get(kind="proposal.repeated").proposal == found["id"]
    listed = caller.get("/proposals?status=rejected").json()["items"]
    assert [one["id"] for one in listed] == [found["id"], first["id"]]


def test_a_repeat_does_not_weigh_in_sums(gate: Gate) -> None:
    reject_new(gate, 1)
    repeat = propose(gate.agent, customer="C-1")
    assert not Observation.objects.filter(proposal=repeat.pk).exists()


def test_the_page_of_a_rejection_counts_its_repeats(gate: Gate, client: Any) -> None:
    request = reject_new(gate, 1).request
    for _ in range(2):
        propose(gate.agent, customer="C-1")
    client.force_login(gate.rita)
    page = client.get(f"/requests/{request.pk}/").content.decode()
    assert "Proposed 2 more times; rejected automatically" in page


def test_the_run_shows_what_was_rejected_without_asking(
    gate: Gate, client: Any
) -> None:
    reject_new(gate, 1)
    propose(gate.agent, customer="C-1")
    client.force_login(gate.sue)
    page = client.get("/threads/riley/t-1/").content.decode()
    assert "Rejected without asking again" in page


def test_what_the_policy_blocks_is_blocked_and_no_repeat(gate: Gate) -> None:
    reject_new(gate, 1)
    document = factories.document_of_tests()
    then = {"block": True}
    rule = {
        "id": "no.pay",
        "text": "no",
        "tools": ["pay"],
        "when": "true",
        "then": then,
    }
    factories.policy(gate.people, document | {"rules": [rule]})
    again = propose(gate.agent, customer="C-1")
    assert (again.blocked_by, again.repeats) == ("no.pay", "")


@pytest.fixture
def limit_of_three(gate: Gate) -> None:
    document = factories.document_of_tests() | {"rejections_in_a_row": 3}
    factories.policy(gate.people, document)


@pytest.mark.usefixtures("limit_of_three")
def test_a_run_is_paused_after_rejections_in_a_row(gate: Gate) -> None:
    for number in range(2):
        reject_new(gate, number)
    assert standing_pause() is None
    propose(gate.agent, customer="C-1")  # gets the rejection of the second
    pause = standing_pause()
    assert pause is not None
    assert (pause.mode, pause.by) == (StopMode.PAUSED, stops.SYSTEM)
    record = LogRecord.objects.get(kind="stop.raised")
    assert (record.actor_kind, record.thread) == ("system", "t-1")
    with pytest.raises(errors.AgentStopped, match="3 of its proposals in a row"):
        propose(gate.agent, customer="C-9")
    assert propose(gate.agent, thread="t-2").request.status == RequestStatus.PENDING


@pytest.mark.usefixtures("limit_of_three")
def test_an_approval_or_a_resumption_begins_the_count_again(gate: Gate) -> None:
    for number in range(2):
        reject_new(gate, number)
    decide(propose(gate.agent, customer="C-5").request, gate.rita)
    for number in range(10, 12):
        reject_new(gate, number)
    assert standing_pause() is None
    reject_new(gate, 13)
    pause = standing_pause()
    assert pause is not None
    stops.lift_stop(stop_id=pause.pk, person=gate.sue, reason="It is fixed.")
    reject_new(gate, 14)
    assert standing_pause() is None


@pytest.mark.usefixtures("limit_of_three")
def test_a_pause_that_a_person_set_still_lets_the_run_propose(gate: Gate) -> None:
    stops.pause_run(
        agent="riley",
        thread="t-1",
        person=gate.sue,
        now=clock.now(),
        reason="wait",
        reason_code="",
    )
    for number in range(4):
        reject_new(gate, number)
    pause = standing_pause()
    assert pause is not None
    assert pause.by == gate.sue.public_id


def test_a_limit_of_zero_never_pauses(gate: Gate) -> None:
    document = factories.document_of_tests() | {"rejections_in_a_row": 0}
    factories.policy(gate.people, document)
    for number in range(7):
        reject_new(gate, number)
    assert standing_pause() is None


@pytest.mark.usefixtures("limit_of_three")
def test_the_page_says_why_the_run_is_paused(gate: Gate, client: Any) -> None:
    for number in range(3):
        reject_new(gate, number)
    client.force_login(gate.sue)
    page = client.get("/threads/riley/t-1/").content.decode()
    assert "By Counterseal: 3 of its proposals in a row were rejected." in page
