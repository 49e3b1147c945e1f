"""A decision on many takes as many statements as one on few, and leaves of each item
what a decision on it alone would leave."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from journal import clock, errors
from journal.models import LogRecord, OutboxMessage
from reviews.batches import decide, formation
from reviews.choices import BatchStatus, RequestStatus
from reviews.decisions import tally, verdicts
from reviews.decisions.votes import StepVote
from reviews.governance import readings
from reviews.holds import take
from reviews.models import ApprovalRequest, Batch, Decision, Grant, Hold
from reviews.tool_services import readers
from tests import factories, worlds
from tests.conftest import Gate
from tests.reviews import states
from tests.reviews.batches.batching import formed, members, proposed, said, statuses

FEW, MANY = 20, 50
MOST = {"approve": 37, "reject": 31}  # statements, whatever the number of items
MOST_EACH = 6  # more for each item that is escalated: every one is asked in its own way


def statements(gate: Gate, count: int, verdict: str) -> int:
    """What deciding a new batch of so many takes; three are held, all were read again
    after they were proposed."""
    proposed(gate, *["7.00"] * count)
    formation.form_missed_batches()
    taking = (BatchStatus.FORMING, BatchStatus.OPEN)
    batch = Batch.objects.get(status__in=taking)
    for member in members(batch):
        reading = readers.ToolReading(clock.now(), before={"amount": "5.00"})
        readings.create_reading(member.version.revision, reading, cause="opened")
    for member in members(batch)[:3]:
        take.take_hold(request_id=member.id, person=gate.rita)
        take.record_waiting_person(request_id=member.id, person=gate.tom)
    meant = said(batch, gate.rita, verdict, reason_code=factories.reason_for(verdict))
    assert len(meant.items) == count
    with CaptureQueriesContext(connection) as taken:
        decide.decide_batch(meant)
    return len(taken)


@pytest.mark.parametrize("window", [0, 60])
@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_statements_do_not_grow_with_the_items(
    gate: Gate, verdict: str, window: int
) -> None:
    states.recall_windows(gate, window)
    statements(gate, 2, verdict)  # what a process asks once, it asks here
    few, many = statements(gate, FEW, verdict), statements(gate, MANY, verdict)
    assert few == many <= MOST[verdict]


def test_an_escalation_takes_few_statements_an_item(gate: Gate) -> None:
    statements(gate, 2, "escalate")
    few, many = statements(gate, FEW, "escalate"), statements(gate, MANY, "escalate")
    assert many - few <= MOST_EACH * (MANY - FEW)


def test_each_leaves_the_records_of_a_decision_on_it_alone(gate: Gate) -> None:
    (alone,) = proposed(gate, "7.00")
    factories.decide(alone, gate.rita)
    batch = formed(gate, *["7.00"] * 5)
    ids = [member.id for member in members(batch)]
    decide.decide_batch(said(batch, gate.rita))
    assert len(kinds(alone.pk)) == 5
    assert {tuple(kinds(pk)) for pk in ids} == {tuple(kinds(alone.pk))}
    first = LogRecord.objects.filter(request__in=ids, kind="decision.recorded")
    assert list(first.order_by("pk").values_list("request", flat=True)) == ids
    settled = OutboxMessage.objects.filter(topic="request.settled", subject__in=ids)
    assert set(settled.values_list("subject", flat=True)) == set(ids)
    queued = OutboxMessage.objects.filter(topic="execution.queued")
    assert queued.count() == Grant.objects.count() == len(ids) + 1


def kinds(request: str) -> list[str]:
    records = LogRecord.objects.filter(request=request).order_by("pk")
    return list(records.values_list("kind", flat=True))


def test_what_was_held_is_free_and_who_asked_hears_of_it(gate: Gate) -> None:
    statements(gate, 3, "escalate")
    assert not Hold.objects.filter(holder__isnull=False).exists()
    freed = OutboxMessage.objects.filter(topic="request.freed")
    assert {one.facts["person"] for one in freed} == {gate.tom.public_id}
    assert freed.values("subject").distinct().count() == 3


@pytest.mark.parametrize("change", ["late", "other"])
def test_one_that_moves_during_the_decision_refuses_all(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The guard of each is asked at the write itself: version, bytes and deadline."""
    batch = formed(gate)

    def moved(votes: list[StepVote]) -> None:
        request = votes[1].case.request
        if change == "late":
            factories.overdue(request)
        else:
            other = "sha256:" + "0" * 64
            worlds.rewrite(ApprovalRequest, request.pk, action_hash=other)
        tally.tally_votes(votes)

    monkeypatch.setattr(verdicts, "tally_votes", moved)
    with pytest.raises(errors.Conflict):
        decide.decide_batch(said(batch, gate.rita))
    assert set(statuses()) == {RequestStatus.PENDING}
    assert not Decision.objects.exists()
    assert not Grant.objects.exists()
