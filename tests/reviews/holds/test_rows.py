"""Given back, run out, or over with the decision."""

from __future__ import annotations

from functools import partial

import pytest

from reviews.holds import rows as hold_rows
from reviews.holds import take
from reviews.holds.rows import release_hold
from reviews.holds.take import take_hold
from reviews.models import Hold
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews.holds.holds import freed_for, held_by, kinds, lapse

pytestmark = pytest.mark.django_db


def test_a_page_left_late_gives_back_its_own_taking_only(gate: Gate, request_) -> None:
    old = take_hold(request_id=request_.pk, person=gate.rita).token
    new = take_hold(request_id=request_.pk, person=gate.rita).token
    assert not release_hold(request_id=request_.pk, person=gate.rita, token=old)
    assert not release_hold(request_id=request_.pk, person=gate.tom)
    assert release_hold(request_id=request_.pk, person=gate.rita, token=new)


def test_the_sweep_frees_what_ran_out_while_somebody_waits(gate: Gate) -> None:
    rows = [propose(gate.agent, customer=f"C-{n}").request for n in range(2)]
    for row in rows:
        take_hold(request_id=row.pk, person=gate.rita)
    take.record_waiting_person(request_id=rows[0].pk, person=gate.tom)
    assert hold_rows.free_lapsed_holds() == 0
    for row in rows:
        lapse(row)
    assert hold_rows.free_lapsed_holds() == 1
    assert kinds(rows[0]) == ["hold.taken", "hold.lapsed"]
    assert freed_for(rows[0]) == [gate.tom.public_id]
    assert kinds(rows[1]) == ["hold.taken"]


def test_deciding_gives_it_back_for_the_second_person(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    take_hold(request_id=request.pk, person=gate.sue)
    take.record_waiting_person(request_id=request.pk, person=gate.sam)
    decide(request, gate.sue)
    assert held_by(request) is None
    assert freed_for(request) == [gate.sam.public_id]
    assert take_hold(request_id=request.pk, person=gate.sam).own


def test_the_first_that_nobody_else_holds_is_found_and_not_taken(gate: Gate) -> None:
    ids = [propose(gate.agent, customer=f"C-{n}").request.pk for n in range(3)]
    take_hold(request_id=ids[0], person=gate.tom)
    take_hold(request_id=ids[1], person=gate.rita)
    found = partial(hold_rows.find_first_free, person=gate.rita)
    assert found(request_ids=ids) == ids[1]
    assert found(request_ids=[ids[0], ids[2]]) == ids[2]
    assert found(request_ids=ids[:1]) == ""
    assert not Hold.objects.filter(pk=ids[2]).exists()
