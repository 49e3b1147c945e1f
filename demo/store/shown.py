"""Foreign text on our pages: every character of it seen, none of it acted on."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterator

HEAD, TAIL = 6000, 2000
"""Characters shown of a long text: its start, and its end, where things hide."""

KEPT = "\n\t"
HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
ALIKE = 2
"""Equal lines in a row that are shown; the rest of the run is counted."""


def visible(text: str) -> str:
    """The text with control, invisible and direction characters spelled out."""
    return "".join(_spelled(character) for character in _cut(_collapsed(text)))


def _spelled(character: str) -> str:
    if character in KEPT or unicodedata.category(character) not in HIDDEN:
        return character
    return f"⟨U+{ord(character):04X}⟩"


def _collapsed(text: str) -> str:
    """Runs of equal lines as the first ones and a count: padding hides nothing."""
    return "\n".join(_runs(text.split("\n")))


def _runs(lines: list[str]) -> Iterator[str]:
    for line, run in itertools.groupby(lines):
        length = sum(1 for _ in run)
        yield from [line] * min(length, ALIKE)
        if length > ALIKE:
            yield f"⟨{length - ALIKE:,} more lines like this⟩"


def _cut(text: str) -> str:
    left_out = len(text) - HEAD - TAIL
    if left_out <= 0:
        return text
    return f"{text[:HEAD]}\n⟨{left_out:,} characters not shown⟩\n{text[-TAIL:]}"
