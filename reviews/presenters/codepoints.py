"""Which characters a reader would not see, or would see as something else. Pure.

Default-ignorable, control, format, private and unassigned code points, line and
paragraph separators, every space but the plain one, and letters that draw nothing
(proof.md 4.1). They are shown as tokens and never removed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby

# Format characters that do draw something: they enclose the digits that follow.
_DRAWN = frozenset(
    [*range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD]
)
# Letters, marks and symbols that draw nothing although their category says otherwise.
_BLANK = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC),
        *(0x16FE4, 0x1D159, *range(0x180B, 0x1810)),
        *(*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
    ]
)
# Our own signs round a token: an agent that types them would forge one.
_BRACKETS = frozenset("\u27e6\u27e7")
# What a terminal would obey: it is one token with its parameters, not a token and
# some stray letters.
_ANSI = re.compile(
    r"(?:\x1b\[[0-?]{0,32}|\x9b[0-?]{1,32})[ -/]{0,4}[@-~]|\x1b[()][0-B]"
)
# A Thai or Hebrew letter carries up to three marks; more climb over the lines above.
MOST_MARKS = 3
# More spaces than any indentation push the end of a line out of sight.
MOST_SPACES = 32


# What is obeyed and not read, but for the breaks of lines and tabs of any text.
_OBEYED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
    "|[\U000e0000-\U000e007f]"
)


def controls(text: str) -> bool:
    """Whether a text tries to steer a terminal or a direction, or hides letters. What
    ordinary mail brings along, a space that does not break, is none of it."""
    return _OBEYED.search(text) is not None


@lru_cache(maxsize=8192)
def is_hidden(char: str) -> bool:
    """Whether this one character must be shown as a token."""
    if " " <= char <= "~":
        return False
    code, category = ord(char), unicodedata.category(char)
    if category[0] == "C":
        return code not in _DRAWN
    if category in ("Zl", "Zp", "Zs") or char in _BRACKETS:
        return True
    return code in _BLANK


def spans(text: str, plain: str = "") -> Iterator[tuple[bool, str]]:
    """The text in runs: (whether to show it as a token, the run).

    Characters in `plain` are never hidden. The runs joined are the text.
    """
    flags = _flags(text, plain)
    position = 0
    for hidden, run in groupby(flags):
        length = sum(1 for _ in run)
        yield hidden, text[position : position + length]
        position += length


def name(run: str) -> str:
    """What a token says of its run: `U+202E U+200B x12`, at most six kinds."""
    if set(run) == {" "}:
        return f"{len(run)} spaces"
    kinds = [
        "".join(same) if typed else _counted(char, len(list(same)))
        for (typed, char), same in groupby(run, key=_kind)
    ]
    if len(kinds) <= 6:
        return " ".join(kinds)
    return " ".join([*kinds[:5], f"and {len(kinds) - 5} more"])


def _kind(char: str) -> tuple[bool, str]:
    """What makes neighbours in a token one: the parameters of a terminal's command are
    printed as they are."""
    typed = "!" <= char <= "~"
    return typed, "" if typed else char


def _counted(char: str, times: int) -> str:
    code = f"U+{ord(char):04X}"
    return code if times == 1 else f"{code} x{times}"


def _flags(text: str, plain: str) -> list[bool]:
    flags = [is_hidden(char) and char not in plain for char in text]
    for match in _ANSI.finditer(text):
        flags[match.start() : match.end()] = [True] * len(match.group())
    if text.isascii():
        return flags
    marks = 0
    for index, char in enumerate(text):
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        flags[index] = flags[index] or marks > MOST_MARKS
    return flags
