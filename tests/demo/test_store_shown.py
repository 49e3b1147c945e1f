"""Foreign text on the store's own pages."""

from __future__ import annotations

import pytest

from demo.store.shown import HEAD, TAIL, visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("re\u200bfund", "re⟨U+200B⟩fund"),
        ("\u202eabc\u202c", "⟨U+202E⟩abc⟨U+202C⟩"),
        ("\x1b[2K", "⟨U+001B⟩[2K"),
        ("a\u2028b", "a⟨U+2028⟩b"),
        ("Grüße, Ægir", "Grüße, Ægir"),
        ("x\nx\nx\nx", "x\nx\n⟨2 more lines like this⟩"),
    ],
)
def test_every_character_is_seen(text, expected):
    assert visible(text) == expected


def test_padding_hides_no_last_line():
    shown = visible("start\n" + ".\n" * 10_000 + "the end")
    assert shown.startswith("start\n")
    assert shown.endswith("the end")
    assert len(shown) < 100


def test_a_long_text_shows_its_start_and_its_end():
    shown = visible("a" * 20_000 + "the end")
    assert shown.endswith("the end")
    assert len(shown) < HEAD + TAIL + 100
