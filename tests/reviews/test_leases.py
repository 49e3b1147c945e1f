"""Who is at a request: taken, renewed, given back, broken, handed over, lapsed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from journal import clock, errors
from journal.models import LogPayload, LogRecord, OutboxMessage
from policies.models import Person
from reviews import decisions, leases, recalls
from reviews.leases import break_hold, hand_over, release, renew, take
from reviews.models import ApprovalRequest, Decision, Lease
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose, said
from tests.reviews import states

pytestmark = pytest.mark.django_db


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request


def lapse(request: ApprovalRequest) -> None:
    """Move the end of a lease into the past; the clock is never moved."""
    past = clock.now() - timedelta(seconds=1)
    Lease.objects.filter(pk=request.pk).update(until=past)


def kinds(request: ApprovalRequest) -> list[str]:
    found = LogRecord.objects.filter(request=request.pk, kind__startswith="lease.")
    return list(found.order_by("pk").values_list("kind", flat=True))


def freed_for(request: ApprovalRequest) -> list[str]:
    found = OutboxMessage.objects.filter(topic="request.freed", subject=request.pk)
    return [str(message.facts["person"]) for message in found]


def held_by(request: ApprovalRequest) -> Person | None:
    lease = Lease.objects.filter(pk=request.pk).first()
    return lease.holder if lease else None


def test_taking_holds_for_five_minutes(gate: Gate, request_) -> None:
    hold = take(request_id=request_.pk, person=gate.rita)
    assert hold.mine
    assert hold.until is not None
    left = hold.until - clock.now()
    assert timedelta(minutes=4, seconds=50) < left <= timedelta(minutes=5)
    assert kinds(request_) == ["lease.taken"]


def test_taking_again_is_one_holding_with_a_new_token(gate: Gate, request_) -> None:
    first = take(request_id=request_.pk, person=gate.rita)
    again = take(request_id=request_.pk, person=gate.rita)
    assert again.mine
    assert again.token != first.token
    assert kinds(request_) == ["lease.taken"]


def test_another_only_hears_whose_it_is(gate: Gate, request_) -> None:
    take(request_id=request_.pk, person=gate.rita)
    hold = take(request_id=request_.pk, person=gate.tom)
    assert (hold.mine, hold.holder, hold.token) == (False, gate.rita, "")
    assert held_by(request_) == gate.rita


@pytest.mark.parametrize("name", ["otto", "adam", "owen"])
def test_who_may_not_decide_never_holds(gate: Gate, request_, name: str) -> None:
    with pytest.raises(errors.NotYours):
        take(request_id=request_.pk, person=gate.people[name])
    assert not Lease.objects.exists()


def test_what_is_settled_or_over_is_not_held(gate: Gate, request_) -> None:
    other = propose(gate.agent, customer="C-2").request
    decide(request_, gate.tom, "reject")
    with pytest.raises(errors.Decided):
        take(request_id=request_.pk, person=gate.rita)
    factories.overdue(other)
    with pytest.raises(errors.Expired):
        take(request_id=other.pk, person=gate.rita)


def test_a_lapsed_lease_is_anybodys(gate: Gate, request_) -> None:
    take(request_id=request_.pk, person=gate.rita)
    lapse(request_)
    assert take(request_id=request_.pk, person=gate.tom).mine
    assert kinds(request_) == ["lease.taken", "lease.lapsed", "lease.taken"]


def test_of_more_than_three_the_one_renewed_longest_ago_gives_way(gate: Gate) -> None:
    rows = [propose(gate.agent, customer=f"C-{n}").request for n in range(4)]
    for row in rows[:3]:
        take(request_id=row.pk, person=gate.rita)
    renew(request_id=rows[0].pk, person=gate.rita)
    take(request_id=rows[3].pk, person=gate.rita)
    assert [held_by(row) == gate.rita for row in rows] == [True, False, True, True]
    record = LogRecord.objects.get(kind="lease.released")
    assert record.request == rows[1].pk
    assert b'"cause":"room"' in bytes(record.leaf)


def test_renewing_moves_the_end_and_leaves_no_record(gate: Gate, request_) -> None:
    take(request_id=request_.pk, person=gate.rita)
    soon = clock.now() + timedelta(seconds=30)
    Lease.objects.filter(pk=request_.pk).update(until=soon)
    hold = renew(request_id=request_.pk, person=gate.rita)
    assert hold is not None
    assert hold.until is not None
    assert hold.until > soon + timedelta(minutes=4)
    assert kinds(request_) == ["lease.taken"]


def test_coming_back_to_a_lapsed_lease_that_nobody_took(gate: Gate, request_) -> None:
    take(request_id=request_.pk, person=gate.rita)
    lapse(request_)
    assert renew(request_id=request_.pk, person=gate.rita) is not None
    assert held_by(request_) == gate.rita


def test_a_beat_takes_nothing_that_was_given_back(gate: Gate, request_) -> None:
    take(request_id=request_.pk, person=gate.rita)
    assert release(request_id=request_.pk, person=gate.rita)
    assert renew(request_id=request_.pk, person=gate.rita) is None
    assert held_by(request_) is None
    assert kinds(request_) == ["lease.taken", "lease.released"]


def test_a_page_left_late_gives_back_its_own_taking_only(gate: Gate, request_) -> None:
    old = take(request_id=request_.pk, person=gate.rita).token
    new = take(request_id=request_.pk, person=gate.rita).token
    assert not release(request_id=request_.pk, person=gate.rita, token=old)
    assert not release(request_id=request_.pk, person=gate.tom)
    assert release(request_id=request_.pk, person=gate.rita, token=new)


def test_who_asked_hears_once_that_it_is_free(gate: Gate, request_) -> None:
    take(request_id=request_.pk, person=gate.rita)
    assert leases.ask(request_id=request_.pk, person=gate.tom)
    assert leases.ask(request_id=request_.pk, person=gate.tom)
    release(request_id=request_.pk, person=gate.rita)
    assert freed_for(request_) == [gate.tom.public_id]
    assert not leases.ask(request_id=request_.pk, person=gate.tom)


def test_the_sweep_frees_what_ran_out_while_somebody_waits(gate: Gate) -> None:
    rows = [propose(gate.agent, customer=f"C-{n}").request for n in range(2)]
    for row in rows:
        take(request_id=row.pk, person=gate.rita)
    leases.ask(request_id=rows[0].pk, person=gate.tom)
    assert leases.lapse_chunk() == 0
    for row in rows:
        lapse(row)
    assert leases.lapse_chunk() == 1
    assert kinds(rows[0]) == ["lease.taken", "lease.lapsed"]
    assert freed_for(rows[0]) == [gate.tom.public_id]
    assert kinds(rows[1]) == ["lease.taken"]


def test_a_supervisor_breaks_a_hold_and_says_why(gate: Gate, request_) -> None:
    take(request_id=request_.pk, person=gate.rita)
    leases.ask(request_id=request_.pk, person=gate.tom)
    break_hold(request_id=request_.pk, person=gate.sue, reason="gone to lunch")
    assert held_by(request_) is None
    record = LogRecord.objects.get(kind="lease.broken")
    assert record.actor_id == gate.sue.public_id
    assert b"lunch" not in bytes(record.leaf)
    payload = LogPayload.objects.get(record=record)
    assert payload.values == {"reason": "gone to lunch"}
    assert freed_for(request_) == [gate.tom.public_id]


def test_nobody_else_breaks_a_hold_nor_without_a_reason(gate: Gate, request_) -> None:
    take(request_id=request_.pk, person=gate.rita)
    for name in ("tom", "otto", "adam", "owen"):
        with pytest.raises(errors.NotYours):
            break_hold(
                request_id=request_.pk, person=gate.people[name], reason="mine now"
            )
    with pytest.raises(errors.Reason):
        break_hold(request_id=request_.pk, person=gate.sue, reason="  ")
    release(request_id=request_.pk, person=gate.rita)
    with pytest.raises(errors.Conflict):
        break_hold(request_id=request_.pk, person=gate.sue, reason="late")


def test_an_offer_stays_with_its_holder_until_it_is_taken(gate: Gate, request_) -> None:
    take(request_id=request_.pk, person=gate.rita)
    hand_over(request_id=request_.pk, person=gate.rita, to=gate.tom)
    assert held_by(request_) == gate.rita
    assert not take(request_id=request_.pk, person=gate.tom).mine
    assert not take(request_id=request_.pk, person=gate.sue, accept=True).mine
    assert take(request_id=request_.pk, person=gate.tom, accept=True).mine
    assert kinds(request_) == ["lease.taken", "lease.offered", "lease.handed_over"]
    message = OutboxMessage.objects.get(topic="request.offered")
    assert message.facts == {"person": gate.tom.public_id}


def test_what_is_offered_is_ones_own_and_to_who_can_decide(
    gate: Gate, request_
) -> None:
    for to in (gate.otto, gate.owen, gate.rita):
        with pytest.raises(errors.Invalid):
            hand_over(request_id=request_.pk, person=gate.rita, to=to)
    hand_over(request_id=request_.pk, person=gate.rita, to=gate.tom)
    assert held_by(request_) == gate.rita
    with pytest.raises(errors.Conflict):
        hand_over(request_id=request_.pk, person=gate.sue, to=gate.tom)
    with pytest.raises(errors.NotYours):
        hand_over(request_id=request_.pk, person=gate.otto, to=gate.tom)


def test_who_does_not_hold_it_decides_nothing(gate: Gate, request_) -> None:
    take(request_id=request_.pk, person=gate.rita)
    for verdict in ("approve", "reject", "escalate"):
        with pytest.raises(errors.Held, match="Rita Example is deciding this until"):
            decide(request_, gate.tom, verdict)
    assert not Decision.objects.exists()
    refused = LogRecord.objects.filter(kind="decision.refused")
    assert refused.count() == 3


def test_a_hold_that_somebody_took_over_is_said_so(gate: Gate, request_) -> None:
    token = take(request_id=request_.pk, person=gate.rita).token
    lapse(request_)
    take(request_id=request_.pk, person=gate.tom)
    with pytest.raises(errors.LeaseLapsed, match="Tom Example took it over at"):
        decide(request_, gate.rita, lease=token)


def test_so_is_one_under_which_another_decided_since(gate: Gate, request_) -> None:
    token = take(request_id=request_.pk, person=gate.rita).token
    mine = said(request_, gate.rita, "reject", lease=token)
    lapse(request_)
    take(request_id=request_.pk, person=gate.tom)
    decide(request_, gate.tom)
    with pytest.raises(errors.LeaseLapsed, match=r"Tom Example took it over: approved"):
        decisions.decide(mine)


def test_a_lapsed_lease_that_nobody_took_still_decides(gate: Gate, request_) -> None:
    token = take(request_id=request_.pk, person=gate.rita).token
    lapse(request_)
    decide(request_, gate.rita, lease=token)
    assert Decision.objects.get().authority["lease"] == token


def test_without_a_lease_a_decision_needs_a_free_request(gate: Gate, request_) -> None:
    decide(request_, gate.rita)
    assert "lease" not in Decision.objects.get().authority


def test_deciding_gives_it_back_for_the_second_person(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    take(request_id=request.pk, person=gate.sue)
    leases.ask(request_id=request.pk, person=gate.sam)
    decide(request, gate.sue)
    assert held_by(request) is None
    assert freed_for(request) == [gate.sam.public_id]
    assert take(request_id=request.pk, person=gate.sam).mine


def test_a_recall_gives_it_back_to_who_recalled(gate: Gate) -> None:
    request = states.recallable(gate)
    recalls.recall(request_id=request.pk, person=gate.rita)
    assert held_by(request) == gate.rita


def test_the_next_free_one_is_taken(gate: Gate) -> None:
    rows = [propose(gate.agent, customer=f"C-{n}").request for n in range(3)]
    take(request_id=rows[0].pk, person=gate.tom)
    decide(rows[1], gate.tom, "reject")
    ids = [row.pk for row in rows]
    assert leases.take_first(request_ids=ids, person=gate.rita) == rows[2].pk
    assert leases.take_first(request_ids=ids[:2], person=gate.rita) == ""
