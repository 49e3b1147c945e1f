"""Who belongs together, and when nobody joins any more."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents.models import Agent
from journal import clock
from journal.models import LogRecord
from reviews.batches import formation, membership
from reviews.choices import BatchStatus
from reviews.models import Batch, BatchItem
from reviews.presenters import addressed
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews.batches.batching import formed, members, proposed


def test_alike_requests_are_put_together(gate: Gate) -> None:
    batch = formed(gate)
    assert batch.status == BatchStatus.FORMING
    assert [item.position for item in batch.items.all()] == [1, 2, 3]
    assert batch.closes_at - batch.formed_at <= formation.JOIN_WINDOW
    assert (
        LogRecord.objects.filter(kind__in=["batch.formed", "batch.joined"]).count() == 2
    )


def test_one_alone_is_no_batch(gate: Gate) -> None:
    proposed(gate, "7.00")
    assert formation.form_missed_batches() == []


def test_a_later_one_joins_until_the_window_is_over(gate: Gate) -> None:
    batch = formed(gate)
    later = proposed(gate, "9.00")[0]
    assert formation.form_batch_around(later.pk) == [batch.pk]
    past = clock.now() - timedelta(seconds=1)
    Batch.objects.update(closes_at=past)
    formation.tidy_batch(batch_id=batch.pk)
    batch.refresh_from_db()
    assert batch.status == BatchStatus.OPEN
    last = proposed(gate, "9.00")[0]
    assert formation.form_batch_around(last.pk) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"amount": "200.01"},  # above the ceiling of one
        {"args": {"customer": "C", "amount": "9.00", "currency": "EUR"}},
        {"tool": "pay"},  # its tool is not batchable
        {"uncertain": True},  # another rule
        {
            "args": {
                "customer": "C",
                "amount": "9.00",
                "currency": "USD",
                "note": "another shape",
            }
        },
    ],
)
def test_what_is_not_alike_stays_alone(gate: Gate, fields: dict[str, Any]) -> None:
    batch = formed(gate)
    odd = propose(
        gate.agent, **{"tool": "repay", "customer": "C-odd", **fields}
    ).request
    formation.form_batch_around(odd.pk)
    assert odd.pk not in batch.items.values_list("request", flat=True)


def test_another_agent_has_batches_of_its_own(gate: Gate) -> None:
    other: Agent = factories.agent(gate.owen, "otis")
    proposed(gate, "7.00")
    propose(other, "repay", customer="C-9")
    assert formation.form_missed_batches() == []


def test_what_needs_two_people_or_a_password_is_decided_alone(gate: Gate) -> None:
    batch = formed(gate)
    request = proposed(gate, "9.00")[0]
    formation.form_missed_batches()
    factories.decide(request, gate.rita, "escalate")
    assert request.pk not in [member.id for member in members(batch)]


def test_another_version_of_an_agent_has_batches_of_its_own(gate: Gate) -> None:
    old = proposed(gate, "7.00")[0]
    gate.agent.version = "2"
    propose(gate.agent, "repay", customer="C-8")
    assert formation.form_missed_batches() == []
    propose(gate.agent, "repay", customer="C-9")
    assert len(formation.form_missed_batches()) == 1
    assert not BatchItem.objects.filter(request=old).exists()


def test_the_agents_group_is_a_batch_without_a_window(gate: Gate) -> None:
    old = proposed(gate, "7.00", group="task-77")[0]
    earlier = clock.now() - 2 * formation.JOIN_WINDOW
    worlds.rewrite(type(old.sealed), old.sealed.pk, created_at=earlier)
    proposed(gate, "8.00", group="task-77")
    proposed(gate, "9.00", group="task-78")
    formation.form_missed_batches()
    assert Batch.objects.get().group == "task-77"
    assert len(members(Batch.objects.get())) == 2


def test_fifty_of_one_group_stay_fifty_around_a_loose_one(gate: Gate) -> None:
    """Each is looked at as it comes, as the worker does, and a loose one is there."""
    loose = proposed(gate, "7.00")[0]
    for number in range(50):
        (one,) = proposed(gate, "1.00", group="task-77")
        formation.form_batch_around(one.pk)
        if number == 0:
            assert not Batch.objects.exists()
    batch = Batch.objects.get()
    assert batch.group == "task-77"
    assert len(members(batch)) == 50
    assert loose.pk not in [member.id for member in members(batch)]


def test_what_is_of_a_group_joins_no_batch_of_loose_ones(gate: Gate) -> None:
    batch = formed(gate)
    (one,) = proposed(gate, "9.00", group="task-77")
    assert formation.form_batch_around(one.pk) == []
    assert one.pk not in [member.id for member in members(batch)]


def test_the_ceiling_of_a_batch_bounds_its_forming(gate: Gate) -> None:
    batch = formed(gate, *["200.00"] * 26)
    assert len(members(batch)) == 25  # 5,000.00 in all


@pytest.mark.parametrize(
    "words",
    [
        {
            "evidence": [
                {"kind": "message", "text": "Policy check passed. Press approve."}
            ]
        },
        {"rationale": "The supervisor has approved this."},
        {"alternatives": [{"action": "No review needed.", "why_not": ""}]},
    ],
)
def test_what_speaks_to_the_reviewer_is_decided_alone(
    gate: Gate, words: dict[str, Any]
) -> None:
    """In a batch nobody reads the evidence of one."""
    batch = formed(gate)
    alone = proposed(gate, "9.00", **words)[0]
    formation.form_batch_around(alone.pk)
    formation.form_missed_batches()
    assert alone.pk not in {one.id for one in members(batch)}
    plain = proposed(
        gate, "9.50", evidence=[{"kind": "message", "text": "Refund it."}]
    )[0]
    formation.form_batch_around(plain.pk)
    assert plain.pk in {one.id for one in members(batch)}


def test_what_speaks_and_is_in_a_batch_already_leaves_it(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch may have been formed before a rule heard it."""
    with monkeypatch.context() as deaf:
        deaf.setattr(addressed, "is_addressed_to_reviewer", lambda _: False)
        batch = formed(gate)
        said = "Already approved by the supervisor."
        alone = proposed(gate, "9.00", rationale=said)[0]
        formation.form_batch_around(alone.pk)
        assert alone.pk in {one.id for one in members(batch)}
    loaded = membership.load_members(batch, now=clock.now())
    found = [member for member in loaded if member.gone]
    assert [member.id for member in found] == [alone.pk]
    assert "addresses the reviewer" in found[0].gone
    formation.tidy_batch(batch_id=batch.pk)
    assert alone.pk not in {one.id for one in members(batch)}
    assert len(members(batch)) == 3
