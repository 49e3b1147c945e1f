"""The page of a queue in the past, and of what its panel offers."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import cast

import pytest
from django.http import HttpResponse
from django.test import Client

from journal import clock
from reviews.models import QueuePreset
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import PASSWORD, propose
from tests.markup import find_element, read_page, read_shown, read_text

pytestmark = pytest.mark.django_db


def test_the_page_asks_for_a_moment_of_the_past(gate: Gate, as_: SignIn) -> None:
    otto, page = as_("otto"), "/queues/mail/past/"
    assert "Could decide" not in read_page(otto.get(page))
    for wrong in ("", "soon", "2199-01-01T00:00", "2099-01-01T00:00"):
        assert otto.get(page, {"at": wrong}).status_code == 422
    at = f"{clock.now():%Y-%m-%dT%H:%M:%S}"
    assert "Rita Example" in read_text(otto.get(page, {"at": at}), "staff")
    assert otto.get("/queues/nowhere/past/").status_code == 404
    assert as_("rita").get(page).status_code == 403


def test_before_the_log_begins_nobody_knows(gate: Gate, as_: SignIn) -> None:
    otto, page = as_("otto"), "/queues/mail/past/"
    day = f"{clock.now() - timedelta(days=2):%Y-%m-%dT%H:%M}"
    early = otto.get(page, {"at": day})
    assert "The log begins on" in read_text(early, "too-early")
    assert 'data-testid="staff"' not in read_page(early)
    offered = re.search(r'name="at"[^>]* value="([^"]+)"', read_page(otto.get(page)))
    assert offered is not None  # of what the page offers, it knows
    assert "Rita Example" in read_text(otto.get(page, {"at": offered[1]}), "staff")


PLACES = {
    "place.approve.verified": "1",
    "place.approve.other": "2",
    "place.modify.wrong_amount": "1",
    "place.reject.duplicate": "2",
    "place.reject.unsafe": "1",
    "place.escalate.policy": "1",
}
SENT = {**PLACES, "texts.0": "Ask for the <b>receipt</b>.", "reason": "Fewer."}
PRESET = "/queues/money/"


def save(client: Client, **fields: str) -> HttpResponse:
    sent = {**SENT, "password": PASSWORD, **fields}
    return cast(HttpResponse, client.post(PRESET, sent))


def test_an_administrator_sets_what_the_panel_offers(gate: Gate, as_: SignIn) -> None:
    adam = as_("adam")
    assert 'name="place.reject.unsafe"' in read_page(adam.get(PRESET))
    answer = save(adam)
    assert (answer.status_code, answer["Location"]) == (302, PRESET)
    page = read_page(adam.get(PRESET))
    assert "Ask for the &lt;b&gt;receipt&lt;/b&gt;." in page
    request = propose(gate.agent).request
    panel = read_page(as_("rita").get(f"/requests/{request.pk}/decide/?arm=reject"))
    codes = re.findall(r'name="reason_code" value="(\w+)"', panel)
    assert codes == ["unsafe", "duplicate"]
    assert "Ask for the &lt;b&gt;receipt&lt;/b&gt;." in panel


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"password": ""}, "Enter your password."),
        ({"password": "wrong"}, "password"),
        ({"reason": ""}, "Enter why."),
        (
            {"place.reject.unsafe": "", "place.reject.duplicate": ""},
            "Offer at least one reason: number it.",
        ),
        ({"place.reject.unsafe": "x"}, "Enter a whole number."),
        ({"place.reject.unsafe": "100"}, "less than or equal to 99"),
        ({"texts.1": "y" * 501}, "at most 500 characters"),
        ({"texts.1": SENT["texts.0"]}, "There already; leave one of the two empty."),
    ],
)
def test_a_refused_change_keeps_what_was_typed(
    gate: Gate, as_: SignIn, fields: dict[str, str], error: str
) -> None:
    answer = save(as_("adam"), **fields)
    assert answer.status_code == 422
    page = read_page(answer)
    assert error in page
    assert "Ask for the &lt;b&gt;receipt&lt;/b&gt;." in page
    assert not QueuePreset.objects.exists()


def test_others_see_it_or_not_and_change_nothing(gate: Gate, as_: SignIn) -> None:
    assert "<button" not in find_element(read_page(as_("otto").get(PRESET)), "preset")
    assert save(as_("otto")).status_code == 403
    for name in ("rita", "sue"):
        assert as_(name).get(PRESET).status_code == 403
        assert save(as_(name)).status_code == 403
    assert as_("adam").get("/queues/nowhere/").status_code == 404
    assert not QueuePreset.objects.exists()


def test_who_did_not_read_the_newest_preset_changes_nothing(
    gate: Gate, as_: SignIn
) -> None:
    adam, alma = as_("adam"), as_("alma")
    drawn = read_shown(adam.get(PRESET))
    first = {"place.reject.unsafe": "", "texts.0": "Of <i>Alma</i>."}
    assert save(alma, shown=drawn, **first).status_code == 302
    answer = save(adam, shown=drawn)
    assert answer.status_code == 422
    page = read_page(answer)
    meanwhile = find_element(page, "meanwhile")
    assert "<dt>The reasons to reject</dt><dd>Duplicate</dd>" in meanwhile
    assert "<dt>Text 1</dt><dd>Of &lt;i&gt;Alma&lt;/i&gt;.</dd>" in meanwhile
    assert "Text 2" not in meanwhile
    assert "Ask for the &lt;b&gt;receipt&lt;/b&gt;." in page
    assert QueuePreset.objects.get().texts == ["Of <i>Alma</i>."]
    assert save(adam, shown=read_shown(answer)).status_code == 302
    assert QueuePreset.objects.get().texts == [SENT["texts.0"]]


def test_another_error_says_too_what_changed_meanwhile(gate: Gate, as_: SignIn) -> None:
    adam = as_("adam")
    drawn = read_shown(adam.get(PRESET))
    assert save(as_("alma"), shown=drawn).status_code == 302
    page = read_page(save(adam, shown=drawn, password="wrong"))
    assert "Text 1" in find_element(page, "meanwhile")
    fresh = read_shown(adam.get(PRESET))
    page = read_page(save(adam, shown=fresh, password="wrong"))
    assert "meanwhile" not in page
