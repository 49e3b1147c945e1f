"""What others do with a hold: ask for it, break it, take what is offered."""

from __future__ import annotations

import json

import pytest

from journal import errors
from journal.models import LogPayload, LogRecord, OutboxMessage
from policies.models import Person
from reviews.holds import take
from reviews.holds.rows import release_hold
from reviews.holds.take import (
    break_hold,
    decline_offer,
    offer_hold,
    renew_hold,
    take_hold,
    withdraw_offer,
)
from reviews.models import ApprovalRequest, Hold
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews.holds.holds import freed_for, held_by, kinds, lapse

pytestmark = pytest.mark.django_db


@pytest.fixture
def offered(gate: Gate, request_: ApprovalRequest) -> ApprovalRequest:
    """Rita claimed it and offers it to Tom."""
    take_hold(request_id=request_.pk, person=gate.rita)
    offer_hold(request_id=request_.pk, person=gate.rita, to=gate.tom)
    return request_


def offered_to(request: ApprovalRequest) -> Person | None:
    return Hold.objects.get(pk=request.pk).offered_to


def other_in(kind: str) -> dict[str, str]:
    record = LogRecord.objects.get(kind=kind)
    return dict(json.loads(bytes(record.leaf))["data"])


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
    record = LogRecord.objects.get(kind="hold.broken")
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
    assert not take_hold(request_id=request_.pk, person=gate.tom).own
    with pytest.raises(errors.Conflict, match="no longer offered to you"):
        take_hold(request_id=request_.pk, person=gate.sue, accept=True)
    assert take_hold(request_id=request_.pk, person=gate.tom, accept=True).own
    assert kinds(request_) == ["hold.taken", "hold.offered", "hold.handed_over"]
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


def test_a_renewal_keeps_the_offer(gate: Gate, offered: ApprovalRequest) -> None:
    renew_hold(request_id=offered.pk, person=gate.rita)
    assert offered_to(offered) == gate.tom
    take_hold(request_id=offered.pk, person=gate.rita)
    assert offered_to(offered) == gate.tom
    assert take_hold(request_id=offered.pk, person=gate.tom, accept=True).own
    assert offered_to(offered) is None


def test_an_offer_ends_with_its_hold(gate: Gate, offered: ApprovalRequest) -> None:
    lapse(offered)
    renew_hold(request_id=offered.pk, person=gate.rita)
    assert held_by(offered) == gate.rita
    assert offered_to(offered) is None
    with pytest.raises(errors.Conflict, match="Rita Example has claimed it"):
        take_hold(request_id=offered.pk, person=gate.tom, accept=True)
    offer_hold(request_id=offered.pk, person=gate.rita, to=gate.tom)
    release_hold(request_id=offered.pk, person=gate.rita)
    assert offered_to(offered) is None


def test_what_was_offered_and_ran_out_is_taken_as_any_free_request(
    gate: Gate, offered: ApprovalRequest
) -> None:
    lapse(offered)
    assert take_hold(request_id=offered.pk, person=gate.tom, accept=True).own
    assert kinds(offered)[2:] == ["hold.lapsed", "hold.taken"]


def test_who_declines_leaves_it_with_its_holder_who_is_told(
    gate: Gate, offered: ApprovalRequest
) -> None:
    decline_offer(request_id=offered.pk, person=gate.tom)
    assert held_by(offered) == gate.rita
    assert offered_to(offered) is None
    assert Hold.objects.get().declined_by == gate.tom
    assert other_in("hold.declined") == {"from": gate.rita.public_id}
    assert LogRecord.objects.get(kind="hold.declined").actor_id == gate.tom.public_id
    message = OutboxMessage.objects.get(topic="request.declined")
    assert message.facts == {"person": gate.rita.public_id}
    renew_hold(request_id=offered.pk, person=gate.rita)
    assert Hold.objects.get().declined_by == gate.tom
    offer_hold(request_id=offered.pk, person=gate.rita, to=gate.sue)
    assert Hold.objects.get().declined_by is None


def test_only_a_standing_offer_is_declined_and_only_by_its_reader(
    gate: Gate, offered: ApprovalRequest
) -> None:
    for person in (gate.rita, gate.sue):
        with pytest.raises(errors.Conflict, match="no longer offered to you"):
            decline_offer(request_id=offered.pk, person=person)
    lapse(offered)
    with pytest.raises(errors.Conflict):
        decline_offer(request_id=offered.pk, person=gate.tom)


def test_an_offer_is_taken_back_by_its_holder_alone(
    gate: Gate, offered: ApprovalRequest
) -> None:
    with pytest.raises(errors.Conflict, match="You do not offer this"):
        withdraw_offer(request_id=offered.pk, person=gate.tom)
    withdraw_offer(request_id=offered.pk, person=gate.rita)
    assert held_by(offered) == gate.rita
    assert other_in("hold.offer_withdrawn") == {"to": gate.tom.public_id}
    with pytest.raises(errors.Conflict):
        withdraw_offer(request_id=offered.pk, person=gate.rita)
    with pytest.raises(errors.Conflict):
        take_hold(request_id=offered.pk, person=gate.tom, accept=True)


def test_another_offer_withdraws_the_first(
    gate: Gate, offered: ApprovalRequest
) -> None:
    offer_hold(request_id=offered.pk, person=gate.rita, to=gate.tom)
    offer_hold(request_id=offered.pk, person=gate.rita, to=gate.sue)
    assert offered_to(offered) == gate.sue
    offer = ["hold.offered", "hold.offer_withdrawn", "hold.offered"]
    assert kinds(offered) == ["hold.taken", "hold.offered", *offer]


def test_leaving_the_page_keeps_what_was_offered(
    gate: Gate, offered: ApprovalRequest
) -> None:
    assert not release_hold(request_id=offered.pk, person=gate.rita, leaving=True)
    assert offered_to(offered) == gate.tom
    withdraw_offer(request_id=offered.pk, person=gate.rita)
    assert release_hold(request_id=offered.pk, person=gate.rita, leaving=True)


def test_what_is_offered_makes_room_last(gate: Gate, offered: ApprovalRequest) -> None:
    others = [propose(gate.agent, customer=f"C-{n}").request for n in range(2, 5)]
    for one in others:
        take_hold(request_id=one.pk, person=gate.rita)
    assert offered_to(offered) == gate.tom
    assert [held_by(one) for one in others] == [None, gate.rita, gate.rita]


def test_a_decision_of_the_holder_ends_the_offer(
    gate: Gate, offered: ApprovalRequest
) -> None:
    decide(offered, gate.rita, "reject")
    assert offered_to(offered) is None
    with pytest.raises(errors.AlreadyDecided):
        take_hold(request_id=offered.pk, person=gate.tom, accept=True)
    with pytest.raises(errors.Conflict):
        decline_offer(request_id=offered.pk, person=gate.tom)
