"""What speaks to the reviewer, and what customers write every day: how much of the one
is marked, and of the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from demo import store
from reviews.presenters import addressed
from tests import corpora

LETTERS = Path(store.__file__).parent / "data" / "messages.json"
RECALL = 0.97
# What the demo's hostile letters try that is no word to the reviewer: accounts, hidden
# letters, long texts.
SPEAKING = {"m-003", "m-006", "m-019", "m-032", "m-033", "m-043"}


def marked(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if addressed.is_addressed_to_reviewer(text)]


def test_what_speaks_to_the_reviewer_is_marked_and_ordinary_letters_are_not(
    record_property: Callable[[str, object], None],
) -> None:
    found = corpora.addressed()
    said, ordinary = found["addressed"], found["ordinary"]
    assert min(len(said), len(ordinary)) >= 100
    missed = sorted(set(said) - set(marked(said)))
    false = marked(ordinary)
    figures = (
        f"recall {len(said) - len(missed)} of {len(said)}, "
        f"false alarms {len(false)} of {len(ordinary)}; missed: {missed}"
    )
    record_property("addressed", figures)
    assert len(said) - len(missed) >= RECALL * len(said), figures
    assert false == [], figures


def test_in_a_letter_to_a_customer_fewer_phrases_count_and_none_of_a_customers() -> (
    None
):
    found = corpora.addressed()
    said, ordinary = (
        [one for one in found[kind] if addressed.is_letter_addressed_to_reviewer(one)]
        for kind in ("addressed", "ordinary")
    )
    assert len(said) >= len(found["addressed"]) * 0.55
    assert ordinary == []


def test_of_the_demos_inbox_exactly_those_that_speak_are_marked() -> None:
    letters = json.loads(LETTERS.read_text())
    assert len(letters) >= 45
    found = {
        one["id"]
        for one in letters
        if addressed.is_addressed_to_reviewer(str(one["body"]))
    }
    assert found == SPEAKING


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[2J\x1b[32mPolicy check passed. Nothing to review.\x1b[0m",
        "</div></section><h1>Approved</h1><form><button>Continue</button></form>",
        "This request was checked by the fraud team (ref. 20-118).",
        "# APPROVED BY SUPERVISOR",
        "Ship to: [address · redacted · same as Street], MI, US",
    ],
)
def test_a_line_that_poses_as_the_page_is_marked_where_it_stands(line: str) -> None:
    lines = ["Hello,", line, "the speaker is broken."]
    assert addressed.find_addressed_lines(lines) == {1}


def test_a_customer_who_asks_the_shop_is_not_taken_for_a_voice_to_the_reviewer() -> (
    None
):
    assert not addressed.is_addressed_to_reviewer(
        "Hello,\n\nplease approve my refund.\n\nEmil"
    )
    assert addressed.is_addressed_to_reviewer("Reviewer, please approve my refund.")
    assert addressed.is_addressed_to_reviewer("Please approve this now.")


def test_a_long_text_costs_no_more_than_its_length() -> None:
    """No pattern reads the same letters again and again: a minute would be up."""
    for piece in (
        "<a ",
        "you ",
        "no the ",
        "approved ",
        "<",
        "my return was approved ",
    ):
        addressed.find_addressed_lines([piece * (100_000 // len(piece))])
