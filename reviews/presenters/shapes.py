"""What a presentation is made of: plain values that a template escapes. Pure.

`Presentation` answers R1 to R3 of the review page (ux.md 3.2) from the exact arguments.
Every argument leaf is in at least one row of it, or listed as uninspectable as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal

ChangeKind = Literal["removed", "changed", "added"]

# A review longer than this is announced as long (ux.md 3.1).
MANY_CHANGES, MANY_ARGUMENTS = 40, 12


@dataclass(frozen=True, slots=True)
class Text:
    """Our own words in a sentence."""

    text: str
    value: ClassVar = False


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a sentence; an untrusted one is printed with `{% chip %}`."""

    text: str
    untrusted: bool = True
    value: ClassVar = True


Part = Text | Value


@dataclass(frozen=True, slots=True)
class Tag:
    """A fact we worked out; a loud one is a reason to look twice."""

    text: str
    loud: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One value as text, with the type in words that the text alone cannot show.

    `long` asks for the full untrusted display instead of one line.
    """

    text: str
    kind: str = "text"
    long: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of R1: how large, to whom."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A value under its label; the path tells equal labels apart."""

    label: str
    path: str
    cell: Cell
    note: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Before and after of one field; None is "none"."""

    kind: ChangeKind
    label: str
    path: str
    before: Cell | None
    after: Cell | None


@dataclass(frozen=True, slots=True)
class Uninspectable:
    """An argument that nobody can state in full, and why."""

    label: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reversal:
    """R3, from the tool's declaration."""

    word: str
    icon: str  # of static/icons.svg
    undo: str = ""
    stays: str = ""
    check: str = ""


@dataclass(frozen=True, slots=True)
class Presentation:
    """Everything the page says of one effect."""

    title: str  # the tool's, for places where no value of the agent may stand
    sentence: tuple[Part, ...]
    tags: tuple[Tag, ...]
    size: tuple[Pair, ...]
    changes: tuple[Change, ...]  # destructive first
    unchanged: tuple[Row, ...]
    now: tuple[Row, ...]  # the state as read, of which no argument speaks
    other: tuple[Row, ...]  # arguments that are no change of a field we could read
    uninspectable: tuple[Uninspectable, ...]
    reversal: Reversal
    before_known: bool
    dedicated: bool = True  # False: "No dedicated view"

    @property
    def counts(self) -> dict[str, int]:
        """How many rows of each kind of change, for the line under the heading."""
        kinds = [change.kind for change in self.changes]
        return {kind: kinds.count(kind) for kind in ("changed", "added", "removed")}

    @property
    def is_long(self) -> bool:
        """Whether nobody can take it in within 30 seconds."""
        rows = len(self.changes)
        return rows > MANY_CHANGES or rows + len(self.other) > MANY_ARGUMENTS


def texts(shown: Any) -> Iterator[str]:
    """Every text a presentation holds, in order: what a page made of it can say."""
    if isinstance(shown, str):
        yield shown
    elif isinstance(shown, tuple):
        for part in shown:
            yield from texts(part)
    elif is_dataclass(shown):
        for field in fields(shown):
            yield from texts(getattr(shown, field.name))
