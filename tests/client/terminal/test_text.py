"""Text on a terminal: nothing in it acts, everything in it is shown."""

from __future__ import annotations

import io
import sys

import pytest

from counterseal_client.terminal.text import (
    Line,
    Screen,
    Style,
    escape_text,
    measure_text,
    render_line,
    wrap_text,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Zoë \x1b[1m\u202e\n", "Zoë \\x1b[1m\\u202e\\n"),
        ("a\r\tb\x9b2J", "a\\r\\tb\\x9b2J"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("\u2066x\u2069\u200f", "\\u2066x\\u2069\\u200f"),
        ("pay\u200bpal\ufeff", "pay\\u200bpal\\ufeff"),
        ("a\u3164b\u2800c\u034fd", "a\\u3164b\\u2800c\\u034fd"),
        ("a\xa0b\u3000c", "a\\xa0b\\u3000c"),
        ("v\ufe0f\U000e0101", "v\\ufe0f\\U000e0101"),
        ("\ud800", "\\ud800"),
        ("日本 é \u00e9", "日本 é \u00e9"),
    ],
)
def test_what_could_act_or_hide_becomes_an_escape(text: str, shown: str) -> None:
    assert escape_text(text) == shown


def test_every_character_of_ascii_that_acts_is_escaped() -> None:
    acting = [chr(code) for code in (*range(32), 127)]
    assert all(escape_text(character).startswith("\\") for character in acting)


@pytest.mark.parametrize("width", [2, 5, 11, 80])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "one two three four",
        "x" * 100,
        "日本語" * 20,
        "a    b" * 9,
        " lead",
        "e\u0301" * 40,
    ],
)
def test_lines_fit_and_no_word_is_lost(text: str, width: int) -> None:
    lines = list(wrap_text(text, width))
    assert all(measure_text(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_a_line_is_cut_at_a_space() -> None:
    assert list(wrap_text("one two three", 8)) == ["one two", "three"]


def test_a_bar_stands_before_every_line_of_a_quoted_text() -> None:
    words = "Approved by Rita. " * 10
    shown = list(render_line(Line(words, indent=2, quoted=True), 40))
    assert len(shown) > 3
    assert all(line.startswith("  | ") for line in shown)
    assert all(len(line) <= 40 for line in shown)


def test_a_command_stays_in_one_line() -> None:
    command = "counterseal review approve " + "r" * 60
    assert list(render_line(Line(command, copied=True), 40)) == [command]


def test_colours_are_for_this_programs_own_marks_only() -> None:
    line = Line("\x1b[31mred", style=Style.ADDED)
    assert list(render_line(line, 80)) == ["\\x1b[31mred"]
    assert list(render_line(line, 80, colour=True)) == ["\x1b[32m\\x1b[31mred\x1b[0m"]


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours_follow_the_environment(
    environment: dict[str, str], colour: bool
) -> None:
    assert Screen(FakeTerminal(), environment=environment).colour is colour


def test_elsewhere_a_line_is_one_line_without_colours() -> None:
    stream = io.StringIO()
    screen = Screen(stream, environment={})
    screen.print_line(Line("word " * 100, style=Style.STRONG))
    assert (screen.colour, screen.width) == (False, sys.maxsize)
    assert stream.getvalue().count("\n") == 1


def test_another_encoding_gets_escapes() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Screen(stream, environment={}).print_line("Zoë")
    assert raw.getvalue() == b"Zo\\xeb\n"
