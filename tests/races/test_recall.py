"""Taking an approval back against the end of its window: it is one or the other."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from journal import clock, errors
from journal.models import LogRecord
from reviews import deadlines, locks
from reviews.choices import RequestStatus
from reviews.decisions import decide as decisions
from reviews.decisions import recall as recalls
from reviews.decisions import votes
from reviews.models import ApprovalRequest, Grant
from reviews.requests import versions
from tests.conftest import Gate
from tests.factories import decide, new_thread, propose, said
from tests.races.together import at_once, before, while_held
from tests.reviews import states
from tests.stack import wait_until

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _windows(gate: Gate) -> None:
    states.recall_windows(gate)


def recallable(gate: Gate, number: int = 1) -> ApprovalRequest:
    request = propose(gate.agent, customer=f"C-{number}", thread=new_thread()).request
    decide(request, gate.rita)
    return request


def closes_in(request: ApprovalRequest, seconds: float) -> None:
    moment = clock.now() + timedelta(seconds=seconds)
    open_now = ApprovalRequest.objects.filter(pk=request.pk, status="recallable")
    open_now.update(recall_until=moment)


def recall(request: ApprovalRequest, gate: Gate) -> ApprovalRequest:
    return recalls.recall_approval(request_id=request.pk, person=gate.rita)


def check(request: ApprovalRequest, *, recalled: bool) -> None:
    """Recalled means asked again and nothing granted; else granted once."""
    request.refresh_from_db()
    expected = RequestStatus.PENDING if recalled else RequestStatus.AUTHORIZED
    assert request.status == expected
    grants = Grant.objects.filter(proposal=request.proposal_id)
    assert grants.count() == int(not recalled)


def test_a_recall_wins_or_the_window_closes_never_both(gate: Gate) -> None:
    for number in range(15):
        request = recallable(gate, number)
        closes_in(request, 0.003 * (number % 5))
        result, _ = at_once(
            partial(recall, request, gate), deadlines.close_recall_windows
        )
        assert result.won or isinstance(result.refusal, errors.AlreadyRunning)
        deadlines.close_recall_windows()
        if not result.won:
            closes_in(request, -1)
            deadlines.close_recall_windows()
        check(request, recalled=result.won)


def test_a_window_that_closes_right_before_the_lock_is_over(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = recallable(gate)

    def close() -> None:
        closes_in(request, -1)
        deadlines.close_recall_windows()

    before(monkeypatch, locks, "lock_request_shown_to", close)
    with pytest.raises(errors.AlreadyRunning):
        recall(request, gate)
    check(request, recalled=False)


def test_the_sweep_passes_over_what_is_being_recalled(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for no lock that somebody holds, and a recall in time stands, even when
    the window closes before its commit."""
    request = recallable(gate)
    closes_in(request, 1.5)

    def sweep_when_over() -> list[str]:
        wait_until(over.exists, 5)
        return deadlines.close_recall_windows()

    over = ApprovalRequest.objects.filter(recall_until__lt=clock.ClockTimestamp())
    rival = before(monkeypatch, versions, "seal_version", sweep_when_over)
    recall(request, gate)
    assert rival.result.value == []
    check(request, recalled=True)


def test_two_sweeps_authorize_each_request_once(gate: Gate) -> None:
    for number in range(8):
        closes_in(recallable(gate, number), -1)
    found = at_once(*[deadlines.close_recall_windows] * 4)
    moved = [proposal for result in found for proposal in result.value]
    assert len(moved) == len(set(moved)) == Grant.objects.count() == 8
    assert LogRecord.objects.filter(kind="request.authorized").count() == 8


def test_two_recalls_at_once_are_one(gate: Gate) -> None:
    for number in range(6):
        request = recallable(gate, number)
        results = at_once(*[partial(recall, request, gate)] * 3)
        assert [r.won for r in results].count(True) == 1
        request.refresh_from_db()
        assert request.version == 2
        check(request, recalled=True)


def test_a_rejection_in_the_window_against_its_end(gate: Gate) -> None:
    """I7: deny wins as long as nothing is granted."""
    for number in range(10):
        request = recallable(gate, number)
        no = partial(decisions.decide_request, said(request, gate.tom, "reject"))
        closes_in(request, -1 if number % 2 else 0.004)
        result, _ = at_once(no, deadlines.close_recall_windows)
        closed = {RequestStatus.AUTHORIZED, RequestStatus.RECALLABLE}
        request.refresh_from_db()
        assert (request.status == RequestStatus.REJECTED) == result.won
        assert result.won or request.status in closed
        assert result.won or isinstance(result.refusal, errors.AlreadyDecided)


def test_a_rejection_waits_for_the_approval_and_still_wins(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = propose(gate.agent).request
    no = partial(decisions.decide_request, said(request, gate.tom, "reject"))
    rival = while_held(monkeypatch, votes, "_build_log_entry", no)
    decide(ApprovalRequest.objects.get(pk=request.pk), gate.rita)
    assert rival.result.won
    request.refresh_from_db()
    assert request.status == RequestStatus.REJECTED
    assert not Grant.objects.exists()
