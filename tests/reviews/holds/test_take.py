"""Taking a request up, staying there, and what another finds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from journal import clock, errors
from journal.models import LogRecord
from reviews.decisions import recall
from reviews.holds.rows import release_hold
from reviews.holds.take import renew_hold, take_hold
from reviews.models import Hold
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.holds.holds import held_by, kinds, lapse

pytestmark = pytest.mark.django_db


def test_taking_holds_for_five_minutes(gate: Gate, request_) -> None:
    hold = take_hold(request_id=request_.pk, person=gate.rita)
    assert hold.own
    assert hold.until is not None
    left = hold.until - clock.now()
    assert timedelta(minutes=4, seconds=50) < left <= timedelta(minutes=5)
    assert kinds(request_) == ["hold.taken"]


def test_taking_again_is_one_holding_with_a_new_token(gate: Gate, request_) -> None:
    first = take_hold(request_id=request_.pk, person=gate.rita)
    again = take_hold(request_id=request_.pk, person=gate.rita)
    assert again.own
    assert again.token != first.token
    assert kinds(request_) == ["hold.taken"]


def test_another_only_hears_whose_it_is(gate: Gate, request_) -> None:
    take_hold(request_id=request_.pk, person=gate.rita)
    hold = take_hold(request_id=request_.pk, person=gate.tom)
    assert (hold.own, hold.holder, hold.token) == (False, gate.rita, "")
    assert held_by(request_) == gate.rita


@pytest.mark.parametrize("name", ["otto", "adam", "owen"])
def test_who_may_not_decide_never_holds(gate: Gate, request_, name: str) -> None:
    with pytest.raises(errors.NotPermitted):
        take_hold(request_id=request_.pk, person=gate.people[name])
    assert not Hold.objects.exists()


def test_what_is_settled_or_over_is_not_held(gate: Gate, request_) -> None:
    other = propose(gate.agent, customer="C-2").request
    decide(request_, gate.tom, "reject")
    with pytest.raises(errors.AlreadyDecided):
        take_hold(request_id=request_.pk, person=gate.rita)
    factories.overdue(other)
    with pytest.raises(errors.RequestExpired):
        take_hold(request_id=other.pk, person=gate.rita)


def test_a_lapsed_hold_is_anybodys(gate: Gate, request_) -> None:
    take_hold(request_id=request_.pk, person=gate.rita)
    lapse(request_)
    assert take_hold(request_id=request_.pk, person=gate.tom).own
    assert kinds(request_) == ["hold.taken", "hold.lapsed", "hold.taken"]


def test_of_more_than_three_the_one_renewed_longest_ago_gives_way(gate: Gate) -> None:
    rows = [propose(gate.agent, customer=f"C-{n}").request for n in range(4)]
    for row in rows[:3]:
        take_hold(request_id=row.pk, person=gate.rita)
    renew_hold(request_id=rows[0].pk, person=gate.rita)
    take_hold(request_id=rows[3].pk, person=gate.rita)
    assert [held_by(row) == gate.rita for row in rows] == [True, False, True, True]
    record = LogRecord.objects.get(kind="hold.released")
    assert record.request == rows[1].pk
    assert b'"cause":"room"' in bytes(record.leaf)


def test_renewing_moves_the_end_and_leaves_no_record(gate: Gate, request_) -> None:
    take_hold(request_id=request_.pk, person=gate.rita)
    soon = clock.now() + timedelta(seconds=30)
    Hold.objects.filter(pk=request_.pk).update(until=soon)
    hold = renew_hold(request_id=request_.pk, person=gate.rita)
    assert hold is not None
    assert hold.until is not None
    assert hold.until > soon + timedelta(minutes=4)
    assert kinds(request_) == ["hold.taken"]


def test_coming_back_to_a_lapsed_hold_that_nobody_took(gate: Gate, request_) -> None:
    take_hold(request_id=request_.pk, person=gate.rita)
    lapse(request_)
    assert renew_hold(request_id=request_.pk, person=gate.rita) is not None
    assert held_by(request_) == gate.rita


def test_a_beat_takes_nothing_that_was_given_back(gate: Gate, request_) -> None:
    take_hold(request_id=request_.pk, person=gate.rita)
    assert release_hold(request_id=request_.pk, person=gate.rita)
    assert renew_hold(request_id=request_.pk, person=gate.rita) is None
    assert held_by(request_) is None
    assert kinds(request_) == ["hold.taken", "hold.released"]


def test_a_recall_gives_it_back_to_who_recalled(gate: Gate) -> None:
    request = states.recallable(gate)
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    assert held_by(request) == gate.rita
