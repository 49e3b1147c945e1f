"""A page of a batch says what changed under it, and moves nothing until it is asked."""

from __future__ import annotations

import re

from reviews.batches import formation
from reviews.holds import take
from reviews.models import ApprovalRequest, Decision
from tests import factories
from tests.conftest import Gate
from tests.desk.batches.batch_form import ASKED, Form, inputs, url
from tests.desk.conftest import SignIn
from tests.markup import find_element, read_page
from tests.reviews.batches.batching import formed, members, proposed

NEWS, CHANGED = 'data-testid="news"', 'data-testid="changed"'


def look(form: Form, etag: str = "") -> tuple[int, str]:
    sent = {"do": "look", "row": inputs(form.text, "row")}
    headers = {**ASKED, "If-None-Match": etag}
    answer = form.client.post(url(form.batch, "decide"), sent, headers=headers)
    return answer.status_code, read_page(answer)


def replace(gate: Gate, form: Form, amount: str = "70.00") -> str:
    member = members(form.batch)[1]
    args = {**member.version.revision.args, "amount": amount}
    factories.revised(gate.agent, member.request.proposal, args)
    return member.id


def test_nothing_new_is_an_empty_answer_and_then_none(gate: Gate, as_: SignIn) -> None:
    form = Form(as_("rita"), formed(gate))
    status, text = look(form)
    assert status == 200
    assert NEWS not in text
    (etag,) = re.findall(r'"If-None-Match": "(\w+)"', text)
    assert look(form, etag) == (204, "")


def test_what_was_replaced_left_or_joined_is_counted(gate: Gate, as_: SignIn) -> None:
    form = Form(as_("rita"), formed(gate, *["7.00"] * 4))
    replace(gate, form)
    assert "1 item " in find_element(look(form)[1], "news")
    factories.decide(members(form.batch)[0].request, gate.tom, "reject")
    later = proposed(gate, "9.00")[0]
    formation.form_batch_around(later.pk)
    assert "3 items " in find_element(look(form)[1], "news")


def test_it_says_so_in_the_foot_of_every_press(gate: Gate, as_: SignIn) -> None:
    form = Form(as_("rita"), formed(gate))
    replace(gate, form)
    sent = {"do": "arm:reject", "row": inputs(form.text, "row"), "item": form.items}
    answer = form.client.post(url(form.batch, "decide"), sent, headers=ASKED)
    assert "1 item " in find_element(read_page(answer), "news")


def test_asked_for_the_changed_rows_come_first_and_ticks_stay(
    gate: Gate, as_: SignIn
) -> None:
    form = Form(as_("rita"), formed(gate, *["7.00"] * 4))
    changed = replace(gate, form)
    later = proposed(gate, "9.00")[0]
    formation.form_batch_around(later.pk)
    out = form.items.pop()
    form.press("refresh")
    rows = re.findall(r'<tr id="i-([^"]+)"', form.text)
    assert set(rows[:2]) == {changed, later.pk}
    ticked = set(re.findall(r'name="item" value="([^"]+)" checked', form.text))
    assert out not in ticked
    assert later.pk not in ticked
    form.press("select")
    assert form.text.count(CHANGED) == 2  # and stays said


def test_without_a_script_every_press_says_it(gate: Gate, as_: SignIn) -> None:
    form = Form(as_("rita"), formed(gate))
    changed = replace(gate, form)
    form.press("arm:reject")
    assert re.findall(r'<tr id="i-([^"]+)"', form.text)[0] == changed
    assert form.text.count(CHANGED) == 1


def test_a_batch_that_is_over_says_so_and_is_asked_no_more(
    gate: Gate, as_: SignIn
) -> None:
    form = Form(as_("rita"), formed(gate))
    for member in members(form.batch)[:2]:
        factories.decide(member.request, gate.tom, "reject")
    status, text = look(form)
    assert status == 286
    assert NEWS in text
    assert 'data-testid="refresh"' not in text
    assert not Decision.objects.filter(flags__contains=["batch"]).exists()


def test_a_hold_is_no_change(gate: Gate, as_: SignIn) -> None:
    form = Form(as_("rita"), formed(gate))
    take.take_hold(request_id=members(form.batch)[0].id, person=gate.tom)
    assert NEWS not in look(form)[1]


def test_looking_changes_nothing(gate: Gate, as_: SignIn) -> None:
    form = Form(as_("rita"), formed(gate))
    look(form)
    assert not Decision.objects.exists()
    assert ApprovalRequest.objects.filter(status="pending").count() == 3
