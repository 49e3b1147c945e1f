"""Letters that nobody needs any more are forgotten, and nothing is told again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from agents import acknowledgements, proposals, representation, retention, tasks
from agents.choices import ThreadResult
from agents.models import (
    Acknowledgement,
    Callback,
    Checkpoint,
    Delivery,
    DeliveryAttempt,
    Thread,
)
from agents.webhooks import redelivery
from journal import clock, errors, log
from journal.models import LogRecord, OutboxMessage
from journal.state_machine import PROPOSAL_TOLD
from reviews.alarms import standing
from reviews.executions import claims, record, settle
from reviews.models import Alarm, Execution, Proposal
from reviews.tool_services.executors import EffectOutcome
from tests import factories
from tests.agents.webhooks import deliveries
from tests.conftest import Gate
from tests.races.together import at_once, before, while_held
from tests.reviews.service import Service

pytestmark = pytest.mark.django_db
DAYS = 90


def age(days: int = DAYS + 1, **where: Any) -> None:
    """Move the end of letters into the past."""
    past = clock.now() - timedelta(days=days)
    Delivery.objects.filter(ended_at__isnull=False, **where).update(ended_at=past)


def told(gate: Gate, receiver: Service, **fields: Any) -> Proposal:
    """A rejected proposal whose endpoint took both letters about it."""
    deliveries.register(gate.agent, receiver.url, gate.owen)
    proposal = deliveries.rejected(gate, **fields)
    deliveries.carry()
    assert set(Delivery.objects.values_list("status", flat=True)) == {"delivered"}
    return proposal


def resumed(proposal: Proposal) -> Any:
    """What the agent is told of it when it comes back."""
    loaded = representation.find_proposal("riley", proposal.pk)
    assert loaded is not None
    return representation.build_proposal_json(loaded)


def test_old_letters_go_with_their_tries_and_the_log_stays(
    gate: Gate, receiver: Service
) -> None:
    told(gate, receiver)
    records = LogRecord.objects.count()
    age(DAYS - 1)
    assert retention.delete_old_deliveries() == 0
    age(DAYS + 1)
    assert tasks.prune() == 2
    assert not Delivery.objects.exists()
    assert not DeliveryAttempt.objects.exists()
    assert LogRecord.objects.count() == records


def test_what_an_agent_has_is_not_told_again(gate: Gate, receiver: Service) -> None:
    proposal = told(gate, receiver)
    before = resumed(proposal)
    assert before["acknowledged_at"]
    age()
    assert retention.delete_old_deliveries() == 2
    assert resumed(proposal) == before
    heard = len(receiver.requests)
    OutboxMessage.objects.filter(
        topic=PROPOSAL_TOLD, facts__event="proposal.settled"
    ).update(done_at=None)
    assert deliveries.carry() == 0
    assert len(receiver.requests) == heard
    outcome = representation.compute_settled_id(proposal.pk)
    acknowledgements.acknowledge_outcome(
        agent=gate.agent, proposal_id=proposal.pk, outcome=outcome
    )
    assert Acknowledgement.objects.get().pk == outcome


def test_what_may_be_promised_again_stays(gate: Gate, receiver: Service) -> None:
    """Who wrote the letters died before the promise was taken for kept."""
    told(gate, receiver)
    age()
    promises = OutboxMessage.objects.filter(topic=PROPOSAL_TOLD)
    promises.update(done_at=None)
    assert retention.delete_old_deliveries() == 0
    assert deliveries.carry() == 0
    assert retention.delete_old_deliveries() == 2


def test_what_waits_stays_however_old(gate: Gate, receiver: Service) -> None:
    receiver.status = 500
    deliveries.register(gate.agent, receiver.url, gate.owen)
    deliveries.rejected(gate)
    deliveries.carry()
    past = clock.now() - timedelta(days=1000)
    Delivery.objects.update(created_at=past)
    assert retention.delete_old_deliveries() == 0
    assert Delivery.objects.filter(status="waiting").count() == 2


def dead(gate: Gate, receiver: Service, letters: int = 2) -> None:
    """Letters that nobody took for three days."""
    receiver.status = 500
    deliveries.register(gate.agent, receiver.url, gate.owen)
    for number in range(letters):
        deliveries.rejected(gate, thread=f"t-{number}", customer=f"C-{number}")
    deliveries.promised()
    Delivery.objects.update(give_up_at=clock.now())
    while Delivery.objects.filter(status="waiting").exists():
        deliveries.come_due()
        deliveries.carry()
    age()


def test_the_letter_that_an_alarm_leads_to_stays_until_it_is_closed(
    gate: Gate, receiver: Service
) -> None:
    dead(gate, receiver)
    alarm = Alarm.objects.get()
    assert retention.delete_old_deliveries() == 3
    assert Delivery.objects.get().pk == alarm.data["delivery"]
    standing.close_alarm(alarm_id=alarm.pk, person=gate.sue, note="told them")
    assert retention.delete_old_deliveries() == 1
    assert not Delivery.objects.exists()


def test_a_callback_goes_with_the_last_letter_about_it(
    gate: Gate, receiver: Service
) -> None:
    deliveries.rejected(gate, callback_url=receiver.url)
    deliveries.carry()
    age(kind="request.opened")
    assert retention.delete_old_deliveries() == 1
    assert Callback.objects.count() == 1
    age()
    assert retention.delete_old_deliveries() == 1
    assert not Callback.objects.exists()


def test_a_callback_stays_while_something_may_still_come(
    gate: Gate, receiver: Service
) -> None:
    """A person says a year later what became of it, and the agent hears of that."""
    proposal = factories.propose(
        gate.agent, "pay_opaque", callback_url=receiver.url, customer="C-1"
    )
    factories.decide(proposal.request, gate.rita)
    execution = lost(proposal)
    deliveries.carry()
    age()
    assert retention.delete_old_deliveries() > 0
    assert Callback.objects.count() == 1
    heard = len(receiver.requests)
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=True, reason="seen"
    )
    assert deliveries.carry() == 1
    assert len(receiver.requests) == heard + 1
    age()
    assert retention.delete_old_deliveries() == 1
    assert not Callback.objects.exists()


def lost(proposal: Proposal) -> Execution:
    """Its effect may have happened."""
    execution = Execution.objects.get(proposal=proposal)
    claim = claims.claim_execution(
        execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR
    )
    assert claim is not None
    return record.record_outcome(
        execution_id=execution.pk,
        fence=claim.fence,
        outcome=EffectOutcome("unknown", code="lost"),
        actor=claims.EXECUTOR_ACTOR,
    )


def test_it_goes_a_piece_at_a_time(
    gate: Gate, receiver: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(gate, receiver)
    age()
    monkeypatch.setattr(retention, "CHUNK", 1)
    assert [retention.delete_old_deliveries() for _ in range(3)] == [1, 1, 0]


@pytest.mark.django_db(transaction=True)
def test_a_letter_is_sent_again_or_forgotten_never_both(
    gate: Gate, receiver: Service
) -> None:
    dead(gate, receiver, letters=4)
    Alarm.objects.update(data={})
    letters = list(Delivery.objects.values_list("pk", flat=True))
    calls: list[Callable[[], Any]] = [
        partial(redelivery.send_again, delivery_id=pk, by=gate.adam) for pk in letters
    ]
    results = at_once(*calls, retention.delete_old_deliveries)
    again = [pk for pk, one in zip(letters, results, strict=False) if one.won]
    refused = {type(one.refusal) for one in results if one.refusal}
    assert refused <= {errors.NotFound}
    left = Delivery.objects.values_list("pk", "status")
    assert dict(left) == dict.fromkeys(again, "waiting")
    assert results[-1].value == len(letters) - len(again)


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_a_letter_that_is_being_forgotten_finds_nothing(
    gate: Gate, receiver: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead(gate, receiver, letters=1)
    Alarm.objects.update(data={})
    letter = Delivery.objects.first()
    assert letter is not None
    again = partial(redelivery.send_again, delivery_id=letter.pk, by=gate.adam)
    rival = while_held(monkeypatch, retention, "_delete_callbacks", again)
    retention.delete_old_deliveries()
    assert isinstance(rival.result.refusal, errors.NotFound)


def sealed(gate: Gate, name: str, *, days: int) -> Thread:
    """A run that left a blob, and finished so many days ago."""
    checkpoint = {"summary": "x", "blob": "c2VjcmV0", "resume_at": "execute"}
    factories.propose(gate.agent, thread=name, checkpoint=checkpoint)
    proposals.finish_thread(agent=gate.agent, name=name, result=ThreadResult.COMPLETED)
    at = clock.now() - timedelta(days=days)
    Thread.objects.filter(name=name).update(finished_at=at)
    return Thread.objects.get(name=name)


def test_what_a_finished_run_sealed_is_destroyed_with_its_key(
    gate: Gate, settings: Any
) -> None:
    keep = settings.COUNTERSEAL.keep_blobs_days
    old = sealed(gate, "old", days=keep + 1)
    young = sealed(gate, "young", days=keep - 1)
    assert (tasks.prune(), tasks.prune()) == (1, 0)
    for thread, there in ((old, False), (young, True)):
        thread.refresh_from_db()
        blobs = Checkpoint.objects.filter(thread=thread).values_list("blob", flat=True)
        assert (thread.wrapped_key is not None) is there
        assert [blob is not None for blob in blobs] == [there]
    assert LogRecord.objects.get(kind="thread.erased").thread == "old"


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_once_destroy_a_key_once(
    gate: Gate, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed(gate, "old", days=settings.COUNTERSEAL.keep_blobs_days + 1)
    rival = before(monkeypatch, log, "append_many", retention.erase_blobs)
    assert (retention.erase_blobs(), rival.result.value) == (1, 0)
    assert LogRecord.objects.filter(kind="thread.erased").count() == 1
