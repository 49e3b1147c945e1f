"""A redacted value says when it is one that the page shows in the clear, and nothing
where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from desk.components import page_evidence
from desk.components import regions as components_regions
from desk.components.regions import Regions
from reviews import redaction
from reviews.models import ApprovalRequest
from reviews.presenters import inert
from reviews.presenters.shapes import (
    Cell,
    FieldChange,
    Presentation,
    Reversibility,
    ValueRow,
)
from reviews.redaction import redactor
from tests import factories
from tests.conftest import Gate

KEY = bytes(range(32))
LETTER = (
    "Please send it to my new address instead:\n\n"
    "Ship to: 12 Copper Beech Road, Fernhollow, WA 00991, US"
)
ASKED = {"line1": "12 Copper Beech Road", "city": "Fernhollow", "postcode": "00991"}
LABELS = {"line1": "Street", "city": "City", "postcode": "Postcode"}


def shown(
    after: dict[str, str],
    before: dict[str, str] | None = None,
    *,
    kind: str = "text",
    other: tuple[ValueRow, ...] = (),
) -> Presentation:
    """A page that changes an address."""
    changes = tuple(
        FieldChange("changed", LABELS[name], name, cell(before, name), Cell(text, kind))
        for name, text in after.items()
    )
    return Presentation(
        title="",
        sentence=(),
        tags=(),
        changes=changes,
        other=other,
        reversal=Reversibility("", ""),
        before_known=True,
    )


def cell(values: dict[str, str] | None, name: str) -> Cell | None:
    return Cell(values[name]) if values and name in values else None


def names(page: Presentation, letter: str = LETTER) -> list[str]:
    """What the chips of the letter say, in the order of the letter."""
    text = redaction.redact_text(letter, key=KEY).text
    found = components_regions.label_equal_values(page, [text], KEY)
    return [found.get(chip, "") for chip in redaction.list_chips(text)]


def test_a_redacted_value_says_what_of_the_page_it_is_equal_to() -> None:
    assert names(shown(ASKED)) == ["Street after", "City after", "Postcode after"]


def test_what_differs_in_one_letter_is_not_said_to_be_equal() -> None:
    other = {**ASKED, "line1": "12 Copper Beach Road", "postcode": "00919"}
    assert names(shown(other)) == ["", "City after", ""]


def test_a_part_of_a_value_is_not_the_value() -> None:
    longer = {**ASKED, "line1": "12 Copper Beech Road, Rear building"}
    assert names(shown(longer))[0] == ""
    assert names(shown({**ASKED, "line1": "Copper Beech Road"}))[0] == ""


def test_the_proposed_value_is_named_before_the_one_that_it_replaces() -> None:
    same = shown({"city": "Fernhollow"}, {"city": "Fernhollow"})
    assert names(same) == ["", "City after", ""]
    old = shown({"line1": "9 Elm Street"}, {"line1": "12 Copper Beech Road"})
    assert names(old) == ["Street before", "", ""]


def test_spelling_counts_as_little_as_for_the_redactor() -> None:
    spelt = {"line1": "12  copper beech ROAD", "city": "FERNHOLLOW"}
    assert names(shown(spelt)) == ["Street after", "City after", ""]


def test_a_concealed_value_is_never_named() -> None:
    hidden = {
        name: redaction.format_chip("sensitive", text, KEY)
        for name, text in ASKED.items()
    }
    assert names(shown(hidden, kind="sensitive")) == ["", "", ""]
    assert names(shown(ASKED, kind="sensitive")) == ["", "", ""]


def test_addresses_of_mail_and_phones_are_compared_too() -> None:
    rows = (
        ValueRow("To 1", "to", Cell("Casey@Example.net")),
        ValueRow("Phone", "phone", Cell("+1 (202) 555-0143")),
    )
    page = shown({}, other=rows)
    letter = "From: Casey <casey@example.net>\nCall me at 202-555-0143."
    assert names(page, letter) == ["To 1", "Phone"]


def test_a_tag_that_two_values_share_names_neither(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        redaction, "format_chip", lambda kind, *_: f"[{kind} · redacted · #0000]"
    )
    assert set(names(shown(ASKED))) == {""}


def test_the_label_of_a_value_is_printed_as_untrusted_text() -> None:
    chip = "[address · redacted · #5f71]"
    (line,) = inert.build_display(f"to {chip}", same={chip: "a\u202eb"}).head
    assert isinstance(line, inert.TextLine)
    assert [one.kind for one in line.segments] == ["plain", "same"]
    assert line.segments[1].text == "[address · redacted · same as "


@pytest.mark.django_db(transaction=True)
def test_the_page_of_a_payment_says_it_in_evidence_and_in_the_agents_words(
    gate: Gate,
) -> None:
    """The stored text keeps its tag; another run's page knows nothing of it."""
    said = "Write to casey.lindholm@example.net about it."
    proposal = factories.propose(
        gate.agent,
        args=_paying("casey.lindholm@example.net"),
        rationale=said,
        evidence=[{"kind": "message", "source": "inbox", "text": said}],
    )
    words = _page(gate, proposal.request)
    assert words.count("redacted · same as ") == 2
    assert "[e-mail · redacted · #" not in words
    assert "same as" not in str(proposal.current.evidence)
    other = factories.propose(
        gate.agent, args=_paying("another@example.net"), rationale=said
    )
    assert "[e-mail · redacted · #" in _page(gate, other.request)


def _paying(note: str) -> dict[str, Any]:
    return {"customer": "C-1", "amount": "40.00", "currency": "USD", "note": note}


def _page(gate: Gate, request: ApprovalRequest) -> str:
    sealed = page_evidence.find_version(request.pk, request.version)
    assert sealed is not None
    regions = Regions(gate.sue, sealed)
    assert redactor.load_redactor(regions.agent, regions.thread).key
    return page_evidence.render_regions(regions).parts[2]
