"""Taking back what a batch approved while its windows are open."""

from __future__ import annotations

from datetime import timedelta

import pytest

from journal import clock, errors
from reviews import deadlines
from reviews.batches import follow_up, formation
from reviews.choices import BatchStatus, ExecutionStatus, RequestStatus
from reviews.decisions import recall
from reviews.models import ApprovalRequest, Batch, BatchItem, Execution
from tests import factories, worlds
from tests.conftest import Gate
from tests.reviews import states
from tests.reviews.batches.batching import decide, formed, ran, statuses


def test_a_recall_window_holds_all_of_them(gate: Gate) -> None:
    states.recall_windows(gate)
    batch = decide(formed(gate), gate.rita)
    assert set(statuses()) == {RequestStatus.RECALLABLE}
    assert follow_up.recall_batch(batch_id=batch.pk, person=gate.rita) == 3
    assert set(statuses()) == {RequestStatus.PENDING}
    assert not Execution.objects.exists()
    formation.form_missed_batches()
    assert Batch.objects.filter(status=BatchStatus.FORMING).count() == 1
    with pytest.raises(errors.AlreadyRunning):
        follow_up.recall_batch(batch_id=batch.pk, person=gate.rita)


def test_after_the_window_all_run_in_their_order(gate: Gate) -> None:
    states.recall_windows(gate)
    batch = decide(formed(gate), gate.rita)
    past = clock.now() - timedelta(seconds=1)
    ApprovalRequest.objects.update(recall_until=past)
    deadlines.close_recall_windows()
    assert ran(batch) == [ExecutionStatus.SUCCEEDED] * 3
    assert [args["customer"] for _, _, args in worlds.effects()] == [
        "C-0",
        "C-1",
        "C-2",
    ]


def test_one_recalled_alone_may_be_put_with_others_again(gate: Gate) -> None:
    states.recall_windows(gate)
    batch = decide(formed(gate), gate.rita)
    request = batch.items.get(position=1).request
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    formation.tidy_open_batches()
    assert BatchItem.objects.get(request=request).left_at is not None
    factories.decide(request, gate.rita)
    factories.window_over(request)
    alone = Execution.objects.get(proposal=request.proposal_id)
    assert alone.batch_id is None
