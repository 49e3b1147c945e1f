"""From stored rows to what the page says: evidence in HTML, and the newest reading."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.template.loader import render_to_string

from reviews.effects import describe
from tests.conftest import Gate
from tests.factories import propose

MAIL = "<p>Hello <b>Dana</b></p><a href='https://x.example'>pay</a>"


def item(gate: Gate, text: str) -> describe.EvidenceItem:
    evidence = [{"kind": "email", "source": "inbox", "text": text}]
    (found,) = describe.list_evidence(propose(gate.agent, evidence=evidence).current)
    return found


@pytest.mark.django_db(transaction=True)
def test_evidence_in_html_is_its_text_and_says_what_is_left_out(gate: Gate) -> None:
    found = item(gate, MAIL)
    assert found.text == "Hello Dana\npay"
    assert found.note == "HTML shown as text, without 1 link"


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


@pytest.mark.django_db(transaction=True)
def test_when_a_piece_of_evidence_is_from_is_a_moment_where_it_is_one(
    gate: Gate,
) -> None:
    # As Python writes it, and as JavaScript does.
    given = [
        "2026-11-24T13:05:18.312952+00:00",
        "2026-11-24T13:05:18Z",
        "yesterday",
        "2026-11-24",
    ]
    evidence = [{"kind": "email", "text": "Hello.", "at": at} for at in given]
    found = describe.list_evidence(propose(gate.agent, evidence=evidence).current)
    assert [one.when for one in found] == [
        datetime(2026, 11, 24, 13, 5, 18, tzinfo=UTC),
        datetime(2026, 11, 24, 13, 5, 18, tzinfo=UTC),
        None,
        None,
    ]
    pieces = {"evidence": found, "redactions": 0, "same": {}}
    page = render_to_string("desk/components/_evidence.html", {"page": pieces})
    assert ">13:05:18 UTC, 24\xa0November\xa02026</time>" in page
    assert ">2026-11-24T13:05:18" not in page
    assert "yesterday" in page
