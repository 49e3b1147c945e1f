"""Several at one batch at once: one decision wins, on all items or on none."""

from __future__ import annotations

import copy
from functools import partial

import pytest

from journal import errors
from journal.models import LogRecord
from reviews.batches import decide, formation, membership
from reviews.choices import BatchStatus, RequestStatus
from reviews.decisions import decide as decisions
from reviews.executions import run
from reviews.holds import take as leases
from reviews.models import ApprovalRequest, Batch, Decision, Execution, Grant
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import propose
from tests.races.together import at_once, before, while_held
from tests.reviews.batches.batching import formed, members, proposed, said

pytestmark = [pytest.mark.django_db(transaction=True)]


def statuses() -> set[str]:
    return set(ApprovalRequest.objects.values_list("status", flat=True))


def test_of_two_people_one_decides_the_batch(gate: Gate) -> None:
    for number in range(5):
        batch = formed_anew(gate, number)
        calls = [
            partial(decide.decide_batch, said(batch, person, verdict))
            for person, verdict in ((gate.rita, "approve"), (gate.tom, "reject"))
        ]
        results = at_once(*calls)
        assert sorted(result.won for result in results) == [False, True]
        lost = next(one.refusal for one in results if one.refusal)
        assert isinstance(lost, errors.AlreadyDecided)
        asked = ApprovalRequest.objects.filter(batch_items__batch=batch)
        assert len(set(asked.values_list("status", flat=True))) == 1
        votes = Decision.objects.filter(request__in=asked)
        assert len({vote.reviewer_id for vote in votes}) == 1
        assert votes.count() == 3
    assert LogRecord.objects.filter(kind="batch.decided").count() == 5
    assert LogRecord.objects.filter(kind="batch.refused").count() == 5


def formed_anew(gate: Gate, number: int) -> Batch:
    for place in range(3):
        name = f"{number}-{place}"
        group = f"g-{number}"
        propose(gate.agent, "repay", customer=name, thread=name, group=group)
    formation.form_missed_batches()
    return Batch.objects.get(group=f"g-{number}")


def test_an_item_decided_while_the_list_is_read_decides_nothing(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = formed(gate)
    meant, one = said(batch, gate.rita), members(batch)[1].request
    alone = partial(decisions.decide_request, factories.said(one, gate.tom, "reject"))
    rival = before(monkeypatch, decide, "_record_verdict", alone)
    with pytest.raises(errors.BatchChanged):
        decide.decide_batch(meant)
    assert rival.result.won
    assert Decision.objects.count() == 1
    assert not Grant.objects.exists()


def test_a_decision_on_one_item_waits_for_the_batch_and_comes_late(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = formed(gate)
    meant, one = said(batch, gate.rita), members(batch)[1].request
    seen = factories.said(one, copy.copy(gate.tom), "reject")
    rival = while_held(
        monkeypatch,
        decide,
        "check_list_unchanged",
        partial(decisions.decide_request, seen),
    )
    decide.decide_batch(meant)
    assert isinstance(rival.result.refusal, errors.AlreadyDecided)
    assert statuses() == {RequestStatus.AUTHORIZED}


def test_a_replacement_waits_for_the_batch_and_is_too_late(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I5: what was approved is what was on the page, whatever the agent sends."""
    batch = formed(gate)
    meant, one = said(batch, gate.rita), members(batch)[1]
    args = {**one.version.revision.args, "amount": "70.00"}
    replace = partial(factories.revised, gate.agent, one.request.proposal, args)
    rival = while_held(monkeypatch, decide, "check_list_unchanged", replace)
    decide.decide_batch(meant)
    assert not rival.result.won
    granted = Grant.objects.get(proposal=one.request.proposal_id)
    assert granted.action_hash == one.request.action_hash


def test_who_joins_meanwhile_is_not_decided(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = formed(gate)
    meant = said(batch, gate.rita)
    later = proposed(gate, "9.00")[0]
    join = partial(formation.form_batch_around, later.pk)
    rival = while_held(monkeypatch, decide, "check_list_unchanged", join)
    decide.decide_batch(meant)
    assert rival.result.value == []  # the batch it was to join is decided
    later.refresh_from_db()
    assert later.status == RequestStatus.PENDING
    assert not later.batch_items.filter(left_at=None).exists()


def test_a_deadline_that_passes_under_the_lock_decides_nothing(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = formed(gate)
    meant, one = said(batch, gate.rita), members(batch)[2].request
    original = membership.load_members

    def late(*args, **kwargs):
        found = original(*args, **kwargs)
        if kwargs.get("requests"):
            factories.overdue(one)
        return found

    monkeypatch.setattr(membership, "load_members", late)
    with pytest.raises(errors.Conflict):
        decide.decide_batch(meant)
    assert not Decision.objects.exists()
    assert statuses() == {RequestStatus.PENDING}


def test_two_workers_form_one_batch(gate: Gate) -> None:
    proposed(gate, "7.00", "8.00", "9.00")
    at_once(*[formation.form_missed_batches] * 4)
    assert Batch.objects.get().items.count() == 3
    assert Batch.objects.get().status == BatchStatus.FORMING


def test_many_workers_run_a_batch_one_item_at_a_time(gate: Gate) -> None:
    worlds.WORLD["declined"] = {"C-2"}
    batch = formed(gate, *["7.00"] * 5)
    decide.decide_batch(said(batch, gate.rita))
    waiting = list(Execution.objects.values_list("pk", flat=True))
    for _ in range(6):
        at_once(*[partial(run.run_execution, pk) for pk in waiting])
    rows = Execution.objects.order_by("batch_position")
    done, no, waits = "succeeded", "failed", "queued"
    found = list(rows.values_list("status", flat=True))
    assert found == [done, done, no, waits, waits]
    assert len(worlds.effects()) == 2


def test_a_hold_taken_meanwhile_keeps_all_undecided(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = formed(gate)
    meant, one = said(batch, gate.rita), members(batch)[0].request
    take = partial(leases.take_hold, request_id=one.pk, person=gate.tom)
    rival = before(monkeypatch, decide, "_record_verdict", take)
    with pytest.raises(errors.HeldByAnother):
        decide.decide_batch(meant)
    assert rival.result.won
    assert statuses() == {RequestStatus.PENDING}
