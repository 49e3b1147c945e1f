"""What others do with a hold: ask for it, break it, take what is offered."""

from __future__ import annotations

import pytest

from journal import errors
from journal.models import LogPayload, LogRecord, OutboxMessage
from reviews.holds import take
from reviews.holds.rows import release_hold
from reviews.holds.take import break_hold, offer_hold, take_hold
from tests.conftest import Gate
from tests.reviews.holds.holds import freed_for, held_by, kinds

pytestmark = pytest.mark.django_db


def test_who_asked_hears_once_that_it_is_free(gate: Gate, request_) -> None:
    take_hold(request_id=request_.pk, person=gate.rita)
    assert take.record_waiting_person(request_id=request_.pk, person=gate.tom)
    assert take.record_waiting_person(request_id=request_.pk, person=gate.tom)
    release_hold(request_id=request_.pk, person=gate.rita)
    assert freed_for(request_) == [gate.tom.public_id]
    assert not take.record_waiting_person(request_id=request_.pk, person=gate.tom)


def test_a_supervisor_breaks_a_hold_and_says_why(gate: Gate, request_) -> None:
    take_hold(request_id=request_.pk, person=gate.rita)
    take.record_waiting_person(request_id=request_.pk, person=gate.tom)
    break_hold(request_id=request_.pk, person=gate.sue, reason="gone to lunch")
    assert held_by(request_) is None
    record = LogRecord.objects.get(kind="lease.broken")
    assert record.actor_id == gate.sue.public_id
    assert b"lunch" not in bytes(record.leaf)
    payload = LogPayload.objects.get(record=record)
    assert payload.values == {"reason": "gone to lunch"}
    assert freed_for(request_) == [gate.tom.public_id]


def test_nobody_else_breaks_a_hold_nor_without_a_reason(gate: Gate, request_) -> None:
    take_hold(request_id=request_.pk, person=gate.rita)
    for name in ("tom", "otto", "adam", "owen"):
        with pytest.raises(errors.NotPermitted):
            break_hold(
                request_id=request_.pk, person=gate.people[name], reason="mine now"
            )
    with pytest.raises(errors.ReasonMissing):
        break_hold(request_id=request_.pk, person=gate.sue, reason="  ")
    release_hold(request_id=request_.pk, person=gate.rita)
    with pytest.raises(errors.Conflict):
        break_hold(request_id=request_.pk, person=gate.sue, reason="late")


def test_an_offer_stays_with_its_holder_until_it_is_taken(gate: Gate, request_) -> None:
    take_hold(request_id=request_.pk, person=gate.rita)
    offer_hold(request_id=request_.pk, person=gate.rita, to=gate.tom)
    assert held_by(request_) == gate.rita
    assert not take_hold(request_id=request_.pk, person=gate.tom).mine
    assert not take_hold(request_id=request_.pk, person=gate.sue, accept=True).mine
    assert take_hold(request_id=request_.pk, person=gate.tom, accept=True).mine
    assert kinds(request_) == ["lease.taken", "lease.offered", "lease.handed_over"]
    message = OutboxMessage.objects.get(topic="request.offered")
    assert message.facts == {"person": gate.tom.public_id}


def test_what_is_offered_is_ones_own_and_to_who_can_decide(
    gate: Gate, request_
) -> None:
    for to in (gate.otto, gate.owen, gate.rita):
        with pytest.raises(errors.InvalidInput):
            offer_hold(request_id=request_.pk, person=gate.rita, to=to)
    offer_hold(request_id=request_.pk, person=gate.rita, to=gate.tom)
    assert held_by(request_) == gate.rita
    with pytest.raises(errors.Conflict):
        offer_hold(request_id=request_.pk, person=gate.sue, to=gate.tom)
    with pytest.raises(errors.NotPermitted):
        offer_hold(request_id=request_.pk, person=gate.otto, to=gate.tom)
