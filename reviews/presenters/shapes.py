"""What a presentation is made of: plain values that a template escapes. Pure.

`Presentation` answers R1 to R3 of the review page (ux.md 3.2) from the exact arguments.
Every argument leaf is in at least one row or view of it, or listed as uninspectable as
well. The parts of the dedicated views are in `views`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime
from math import ceil
from typing import Any, ClassVar, Literal, Protocol

ChangeKind = Literal["removed", "changed", "added"]

# A review longer than this is announced as long (ux.md 3.1).
MANY_CHANGES, MANY_ARGUMENTS, MANY_WORDS = 40, 12, 400
# How long a careful person looks, in seconds: at a row, at a line, at a word.
A_ROW, A_LINE, A_WORD = 5, 3, 0.3
LONG_WORD = 12  # letters; what is longer takes as long as several words


@dataclass(frozen=True, slots=True)
class Text:
    """Our own words in a sentence."""

    text: str
    value: ClassVar = False


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a sentence; an untrusted one is printed with `{% chip %}`.

    `parts` are those of a value of several, such as an address: `text` joins them.
    """

    text: str
    untrusted: bool = True
    parts: tuple[str, ...] = ()
    value: ClassVar = True


Part = Text | Value


@dataclass(frozen=True, slots=True)
class Tag:
    """A fact we worked out; a loud one is a reason to look twice."""

    text: str
    loud: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One value as text, with its type in words: `5` and `none` may be a text too.

    `long` asks for the full untrusted display instead of one line. `sure` says that the
    type needs no telling: the schema allows no other, or nothing will run on it.
    Where the text says a value in words, `raw` is the value, and `at` the moment or
    the day that it is.
    """

    text: str
    kind: str = "text"
    long: bool = False
    sure: bool = False
    raw: str = ""
    at: datetime | date | None = None

    @property
    def hides(self) -> bool:
        """Whether the text is a chip of ours that stands for the value."""
        return self.kind == "sensitive"

    @property
    def badge(self) -> str:
        """The type, where the text alone cannot show it."""
        return "" if self.sure or self.kind == "text" else self.kind

    @property
    def settled(self) -> Cell:
        """The same where nothing runs on it: an empty text is none, like all that is
        empty."""
        if self.kind == "sensitive":
            return self
        empty = self.kind == "empty text"
        return replace(self, text="none" if empty else self.text, sure=True)

    @property
    def exact(self) -> Cell:
        """The same to the letter."""
        return replace(self, text=self.raw, raw="", at=None) if self.raw else self

    @property
    def said(self) -> str:
        """Both as one text, for where a badge cannot stand beside it."""
        return f"{self.text} ({self.badge})" if self.badge else self.text


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of R1: how large, to whom."""

    label: str
    value: str
    note: str = ""
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A value under its label; the path tells equal labels apart.

    `note` and `warns` are our own words, never the agent's; a warning is loud. `also`
    is what a note speaks of, a host or a domain, and untrusted as the cell is.
    """

    label: str
    path: str
    cell: Cell
    note: str = ""
    warns: tuple[str, ...] = ()
    also: str = ""


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
    argument: str = ""  # the name that the schema knows it by


@dataclass(frozen=True, slots=True)
class Reversal:
    """R3, from the tool's declaration."""

    word: str
    icon: str  # of static/icons.svg
    undo: str = ""
    stays: str = ""
    check: str = ""


class View(Protocol):
    """A part of a dedicated view; `views` has them."""

    @property
    def lines(self) -> int: ...  # to read, beside the arguments themselves


@dataclass(frozen=True, slots=True)
class DryRun:
    """What the tool itself says would happen; `problem` when it could not say."""

    rows: tuple[Row, ...] = ()
    source: str = ""
    at: str = ""  # ISO 8601
    problem: str = ""

    @property
    def clock(self) -> str:
        """The time of day in UTC."""
        try:
            return f"{datetime.fromisoformat(self.at):%H:%M:%S} UTC"
        except ValueError:
            return ""


@dataclass(frozen=True, slots=True)
class Presentation:
    """Everything the page says of one effect."""

    title: str  # the tool's, for places where no value of the agent may stand
    sentence: tuple[Part, ...]
    tags: tuple[Tag, ...]
    size: tuple[Pair, ...]
    changes: tuple[Change, ...]  # destructive first
    unchanged: tuple[Row, ...]
    now: tuple[Row, ...]  # the rest of the state as read, of which no argument speaks
    other: tuple[Row, ...]  # arguments that are no change of a field we could read
    uninspectable: tuple[Uninspectable, ...]
    reversal: Reversal
    before_known: bool
    dedicated: bool = True  # False: "No dedicated view"
    views: tuple[View, ...] = ()  # in the order of the page
    dry_run: DryRun | None = None
    arguments: int = 0  # that are not as before
    top: tuple[Row, ...] = ()  # of the state as read: what decides
    gone: str = "none"  # what a removed field says afterwards
    makes: str = ""  # what comes to be, where there is nothing to compare it with
    headline: tuple[str, ...] = ()  # arguments that the figures on top state

    @property
    def counts(self) -> dict[str, int]:
        """How many rows of each kind of change, for the line under the heading."""
        kinds = [change.kind for change in self.changes]
        return {kind: kinds.count(kind) for kind in ("changed", "added", "removed")}

    @property
    def compared(self) -> str:
        """What the comparison came to, where it has no row."""
        if self.makes or not self.before_known:
            return self.makes or "Nothing to compare"
        if self.unchanged:
            return "No field of the record changes"
        return "Nothing in the record to compare with"

    @property
    def beside(self) -> tuple[Row, ...]:
        """The other arguments without those of the headline."""
        return tuple(row for row in self.other if row.path not in self.headline)

    @property
    def stated(self) -> tuple[Row, ...]:
        """Those of the headline, exactly as they were sent."""
        return tuple(row for row in self.other if row.path in self.headline)

    @property
    def lines(self) -> int:
        """How many changed lines there are to read."""
        return len(self.changes) + sum(view.lines for view in self.views)

    @property
    def is_long(self) -> bool:
        """Whether nobody can take it in within 30 seconds."""
        many = self.lines > MANY_CHANGES or self.arguments > MANY_ARGUMENTS
        return many or self.words > MANY_WORDS

    @property
    def words(self) -> int:
        """How many words the long texts have."""
        return sum(len(row.cell.text.split()) for row in self.other if row.cell.long)

    @property
    def minutes(self) -> int:
        """How long a long review takes, roughly; at least two."""
        rows = self.arguments * A_ROW + self.lines * A_LINE
        texts = [row.cell.text for row in self.other if row.cell.long]
        return max(2, ceil((rows + sum(map(_seconds, texts))) / 60))


def _seconds(text: str) -> float:
    """How long a text takes to read. A run of lines without a letter, or of lines that
    were read before, is seen at a glance, however many they are."""
    seconds, glanced = 0.0, False
    known: set[str] = set()
    for line in map(str.strip, text.splitlines()):
        words = [word for word in line.split() if any(map(str.isalnum, word))]
        if words and line not in known:
            seconds += A_WORD * sum(ceil(len(word) / LONG_WORD) for word in words)
            known.add(line)
            glanced = False
        elif line and not glanced:
            seconds += A_LINE
            glanced = True
    return seconds


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
