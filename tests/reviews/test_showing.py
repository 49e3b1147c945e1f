"""From stored rows to what the page says: evidence in HTML, and the newest reading."""

from __future__ import annotations

import pytest

from reviews.queries import showing
from tests.conftest import Gate
from tests.factories import propose

MAIL = "<p>Hello <b>Dana</b></p><a href='https://x.example'>pay</a>"


def item(gate: Gate, text: str) -> showing.Evidence:
    evidence = [{"kind": "email", "source": "inbox", "text": text}]
    (found,) = showing.evidence(propose(gate.agent, evidence=evidence).current)
    return found


@pytest.mark.django_db(transaction=True)
def test_evidence_in_html_is_its_text_and_says_what_is_left_out(gate: Gate) -> None:
    found = item(gate, MAIL)
    assert found.text == "Hello Dana\npay"
    assert found.note == "HTML not shown: 1 link, 0 images"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "text",
    [
        *("in <module>", "a < b", "<p>\u202ehidden</p>", "<p>x</p> <odd>"),
        # Of this nothing would be left.
        "<form action=/decide/><input name=verdict value=approve></form>",
    ],
)
def test_evidence_that_reading_would_change_stays_as_it_is(
    gate: Gate, text: str
) -> None:
    found = item(gate, text)
    assert (found.text, found.note) == (text, "")
