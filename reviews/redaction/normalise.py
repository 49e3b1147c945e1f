"""Folds a text to the form that recognisers read, in which lookalikes are equal.

Folding removes invisible characters and maps wide, styled and foreign digits, letters,
dashes and spaces to ASCII. A `FoldedText` maps positions back to the original text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache

MASK = "\0"  # replaces what was found; no pattern matches it

# Default-ignorable characters outside the categories Cf, Mn and Me.
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0")
_DASHES = frozenset("\u2212\u2043\u02d7")
# NFKC keeps the ideographic full stop, which browsers treat as a dot in a domain.
_LOOKALIKES = {
    "\u3002": ".",
    "\uff61": ".",
    "\u2019": "'",
    "\u2018": "'",
    "\u201c": '"',
    "\u201d": '"',
}
# Signs that a person reads between figures as a dot, a dash or a space.
_DOTS = (
    "\u00b7\u0387\u2022\u2023\u2024\u2027\u2219\u22c5\u25aa\u25ab\u25cf\u25cb\u25e6"
    "\u2e31\u2e33\u30fb\uff65\ua78f\ufe52\u06d4\u2981\u26ab"
)
_LINES = "\u00af\u02c9\u02cd\u02dc\u203e\u223c\u23af\u2500\u2501\u2796"
_LINES += "\u30fc\uff70\u3161\u4e00"
_SIGNS = {**dict.fromkeys(_DOTS, "."), **dict.fromkeys(_LINES, "-"), "\u2800": " "}
_BETWEEN_FIGURES = re.compile(
    rf"(?:(?<=\d)|(?<=\d[ \t]))[{''.join(_SIGNS)}](?=[ \t]?\d)"
)
# In evidence that is itself JSON, a line break is written as two characters.
_SPELT_BREAK = re.compile(r"\\[nrt]")


class FoldedText:
    """The folded text and the origin of each position."""

    def __init__(self, text: str, folded: list[int], origins: list[int]) -> None:
        self.text = text
        self._folded = folded  # positions at which the offset to the original changes
        self._origins = origins

    def origin(self, place: int) -> int:
        """Where the character at `place` begins in the original text."""
        at = bisect_right(self._folded, place) - 1
        return self._origins[at] + (place - self._folded[at])

    def origin_end(self, place: int) -> int:
        """Where the character before `place` ends in the original text."""
        return self.origin(place - 1) + 1 if place else 0


def fold_text(text: str) -> FoldedText:
    """Fold a text. Linear in its length; ASCII costs next to nothing."""
    text = _SPELT_BREAK.sub(" \n", text)
    if text.isascii():
        return FoldedText(text, [0], [0])
    seen_as = {char: _fold_char(char) for char in set(text) if not char.isascii()}
    text = text.translate({ord(char): to for char, to in seen_as.items() if to})
    gone = "".join(char for char, to in seen_as.items() if not to)
    return _remove_chars(text, gone) if gone else FoldedText(text, [0], [0])


def fold_signs(view: str) -> str:
    """The text with a plain dot, dash or space for what looks so between figures."""
    if view.isascii():
        return view
    return _BETWEEN_FIGURES.sub(lambda match: _SIGNS[match[0]], view)


def _remove_chars(text: str, chars: str) -> FoldedText:
    parts: list[str] = []
    folded, origins = [0], [0]
    length = position = 0
    for match in re.finditer(f"[{re.escape(chars)}]+", text):
        parts.append(text[position : match.start()])
        length += match.start() - position
        position = match.end()
        folded.append(length)
        origins.append(position)
    parts.append(text[position:])
    return FoldedText("".join(parts), folded, origins)


@lru_cache(maxsize=4096)
def _fold_char(char: str) -> str:
    category = unicodedata.category(char)
    if category in {"Cf", "Mn", "Me"} or char in _INVISIBLE:
        return ""
    if category == "Nd":
        return str(unicodedata.digit(char))
    if category == "Pd" or char in _DASHES:
        return "-"
    if category in {"Zs", "Zl", "Zp"}:
        return " " if category == "Zs" else "\n"
    if char in _LOOKALIKES:
        return _LOOKALIKES[char]
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 else char
