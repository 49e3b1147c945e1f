"""Two who want the same request: one holds it, and only who holds it decides."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from journal import clock, errors
from journal.models import LogRecord
from policies.choices import Role
from reviews import deadlines, locks
from reviews.decisions import decide
from reviews.holds import rows, take
from reviews.holds.take import take_hold
from reviews.models import ApprovalRequest, Decision, Hold
from tests import factories
from tests.conftest import Gate
from tests.factories import propose, said
from tests.races.together import at_once, before, while_held

pytestmark = [pytest.mark.django_db(transaction=True)]


def request_of(gate: Gate, number: int = 1) -> ApprovalRequest:
    return propose(gate.agent, customer=f"C-{number}", thread=f"t-{number}").request


def lapse(request: ApprovalRequest) -> None:
    past = clock.now() - timedelta(seconds=1)
    Hold.objects.filter(pk=request.pk).update(until=past)


def test_of_eight_who_open_it_at_once_one_holds_it(gate: Gate, crowd) -> None:
    people = crowd(8, Role.REVIEWER)
    for number in range(4):
        request = request_of(gate, number)
        if number % 2:
            take_hold(request_id=request.pk, person=gate.tom)
            lapse(request)
        found = at_once(
            *[partial(take_hold, request_id=request.pk, person=p) for p in people]
        )
        holds = [result.value for result in found]
        assert [hold.own for hold in holds].count(True) == 1
        assert len({hold.holder for hold in holds}) == 1
        taken = LogRecord.objects.filter(request=request.pk, kind="hold.taken")
        assert taken.count() == 1 + number % 2


def test_one_who_opens_many_at_once_holds_three(gate: Gate) -> None:
    rows = [request_of(gate, number) for number in range(6)]
    calls = [partial(take_hold, request_id=row.pk, person=gate.rita) for row in rows]
    assert all(result.won for result in at_once(*calls))
    held = Hold.objects.filter(holder=gate.rita, until__gt=clock.now())
    assert held.count() == take.MAX_HOLDS


def test_a_lease_taken_right_before_the_lock_stops_the_decision(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of(gate)
    mine = said(request, gate.rita)
    rival = before(
        monkeypatch,
        locks,
        "lock_request_or_canary",
        partial(take_hold, request_id=request.pk, person=gate.tom),
    )
    with pytest.raises(errors.HeldByAnother):
        decide.decide_request(mine)
    assert rival.result.value.own
    assert not Decision.objects.exists()


def test_a_lease_asked_for_during_a_decision_comes_too_late(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of(gate)
    mine = said(request, gate.rita)
    rival = while_held(
        monkeypatch,
        rows,
        "check_hold",
        partial(take_hold, request_id=request.pk, person=gate.tom),
    )
    decide.decide_request(mine)
    assert isinstance(rival.result.refusal, errors.AlreadyDecided)
    assert not Hold.objects.filter(holder__isnull=False).exists()


def test_a_decision_and_a_taking_at_once_are_one_or_the_other(gate: Gate) -> None:
    for number in range(12):
        request = request_of(gate, number)
        decided, taken = at_once(
            partial(decide.decide_request, said(request, gate.rita)),
            partial(take_hold, request_id=request.pk, person=gate.tom),
        )
        if decided.won:
            assert isinstance(taken.refusal, errors.AlreadyDecided)
        else:
            assert isinstance(decided.refusal, errors.HeldByAnother)
            assert taken.value.own
        held = Hold.objects.filter(pk=request.pk, holder=gate.tom).exists()
        assert held != decided.won


def test_a_break_and_a_decision_at_once_leave_nothing_held(gate: Gate) -> None:
    for number in range(8):
        request = request_of(gate, number)
        token = take_hold(request_id=request.pk, person=gate.rita).token
        broken, decided = at_once(
            partial(
                take.break_hold,
                request_id=request.pk,
                person=gate.sue,
                reason="x",
            ),
            partial(decide.decide_request, said(request, gate.rita, hold=token)),
        )
        assert decided.won
        assert broken.won or isinstance(broken.refusal, errors.Conflict)
        assert not Hold.objects.filter(pk=request.pk, holder__isnull=False).exists()


def offered(gate: Gate, number: int = 1) -> ApprovalRequest:
    request = request_of(gate, number)
    take.offer_hold(request_id=request.pk, person=gate.rita, to=gate.tom)
    return request


def test_a_renewal_and_an_acceptance_at_once_leave_it_with_who_accepted(
    gate: Gate,
) -> None:
    for number in range(8):
        request = offered(gate, number)
        accepted, renewed = at_once(
            partial(take_hold, request_id=request.pk, person=gate.tom, accept=True),
            partial(take.renew_hold, request_id=request.pk, person=gate.rita),
        )
        assert accepted.value.own
        assert renewed.won
        assert Hold.objects.get(pk=request.pk).holder == gate.tom


def test_a_retaking_during_an_offer_does_not_lose_it(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of(gate)
    take_hold(request_id=request.pk, person=gate.rita)
    rival = before(
        monkeypatch,
        locks,
        "lock_request_or_canary",
        partial(take.offer_hold, request_id=request.pk, person=gate.rita, to=gate.tom),
    )
    take_hold(request_id=request.pk, person=gate.rita)
    assert rival.result.won
    assert Hold.objects.get().offered_to == gate.tom


def test_of_a_decision_and_an_acceptance_at_once_one_counts(gate: Gate) -> None:
    for number in range(8):
        request = offered(gate, number)
        decided, accepted = at_once(
            partial(decide.decide_request, said(request, gate.rita)),
            partial(take_hold, request_id=request.pk, person=gate.tom, accept=True),
        )
        assert decided.won != accepted.won
        if decided.won:
            assert isinstance(accepted.refusal, errors.AlreadyDecided)
        else:
            assert isinstance(decided.refusal, errors.HeldByAnother)
            assert accepted.value.own


def test_of_withdrawing_and_accepting_at_once_one_counts(gate: Gate) -> None:
    for number in range(8):
        request = offered(gate, number)
        withdrawn, accepted = at_once(
            partial(take.withdraw_offer, request_id=request.pk, person=gate.rita),
            partial(take_hold, request_id=request.pk, person=gate.tom, accept=True),
        )
        assert withdrawn.won != accepted.won
        refusal = withdrawn.refusal or accepted.refusal
        assert isinstance(refusal, errors.Conflict)
        holder = gate.rita if withdrawn.won else gate.tom
        assert Hold.objects.get(pk=request.pk).holder == holder


def test_an_acceptance_after_the_deadline_comes_too_late(gate: Gate) -> None:
    request = offered(gate)
    factories.overdue(request)
    expired, accepted = at_once(
        deadlines.expire_chunk,
        partial(take_hold, request_id=request.pk, person=gate.tom, accept=True),
    )
    assert expired.won
    assert isinstance(accepted.refusal, errors.RequestExpired | errors.AlreadyDecided)
    assert Hold.objects.get().holder != gate.tom
