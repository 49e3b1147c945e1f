"""Who decides second sees nothing of the first: no name, answer, note or time, on no
page and in no fragment."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import product

import pytest

from desk.components.log_sentences import SENTENCES
from journal import clock
from reviews.models import Decision
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import panel, url
from tests.factories import PASSWORD, propose
from tests.markup import read_page
from tests.stack import wait_until

NOTE = "I rang the customer myself"
READERS = ["sam", "rita", "tom"]


def pass_second() -> None:
    """A page's own clock shows another second than what was stored until now."""
    over = clock.now() + timedelta(seconds=1)
    wait_until(lambda: clock.now() > over, 1)


@pytest.fixture
def first(gate: Gate, as_: SignIn) -> Decision:
    """Sue has approved on her page, with a note; one more is asked."""
    request = propose(gate.agent, amount="899.00").request
    pass_second()
    client = as_("sue")
    client.post(url(request, "hold"))
    sent = panel(request, "approve", "sue", reason=NOTE, password=PASSWORD)
    assert client.post(url(request, "decide"), sent).status_code == 303
    return Decision.objects.get()


def addresses(decision: Decision) -> list[str]:
    request = decision.request
    return [
        url(request),
        url(request, "live"),
        url(request, "decide") + "?arm=approve",
        url(request, "decide") + "?arm=reject",
        url(request, "versions", "1"),
        url(request, "as-seen", str(decision.pk)),
        "/queue/",
        "/escalations/",
        "/log/",
        f"/log/?q={request.pk}",
        f"/api/v1/requests/{request.pk}",
    ]


def stands(word: str, source: str) -> bool:
    """A name by itself: its three letters also come up within tokens of chance."""
    if word.isalpha():
        return bool(re.search(rf"\b{word}\b", source))
    return word in source


def test_the_second_approver_sees_nothing_of_the_first(
    first: Decision, as_: SignIn
) -> None:
    pass_second()
    hidden = [
        "Sue",
        NOTE,
        first.reviewer.public_id,
        f"{first.at:%H:%M:%S}",
        "Approved",
        "</b> approved",
        SENTENCES["hold.taken"].removeprefix("{who} "),
    ]
    for name, headers in product(READERS, ({}, HTMX)):
        client = as_(name, **headers)
        for path in addresses(first):
            source = read_page(client.get(path))
            assert [word for word in hidden if stands(word, source)] == [], (name, path)


def test_the_second_approver_is_told_how_many_and_that_it_is_hidden(
    first: Decision, as_: SignIn
) -> None:
    source = read_page(as_("sam").get(url(first.request)))
    assert "1 of 2" in source
    assert "hidden until the request is decided" in source
    assert "verb-approve" in source


def test_the_first_approver_sees_that_one_of_two_is_given(
    first: Decision, as_: SignIn
) -> None:
    source = read_page(as_("sue").get(url(first.request)))
    assert "1 of 2" in source
    assert "Your approval is recorded. One more supervisor must approve." in source
    assert "Someone else must decide" not in source
    assert "verb-approve" not in source
    assert as_("sue").get(addresses(first)[5]).status_code == 200


def test_after_it_is_settled_both_are_shown_with_their_pages(
    gate: Gate, first: Decision, as_: SignIn
) -> None:
    factories.decide(first.request, gate.sam, "reject", reason_code="unsafe")
    source = read_page(as_("sam").get(url(first.request)))
    assert "Sue Example" in source
    assert addresses(first)[5] in source
    votes = Decision.objects.filter(request=first.request).order_by("at")
    said = [(one.verdict, one.counts, one.version) for one in votes]
    assert said == [("approve", True, 1), ("reject", False, 1)]
