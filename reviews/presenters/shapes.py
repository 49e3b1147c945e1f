"""The data classes that make up a presentation: plain values, escaped by templates.
Pure.

`Presentation` answers R1 to R3 of the review page from the exact arguments.
Every leaf of the arguments is in at least one of its rows or views; a leaf that nobody
can inspect is also listed as uninspectable. The parts of dedicated views are in
`views`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime
from enum import Enum
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from .views import DedicatedView

ChangeKind = Literal["removed", "changed", "added"]

# A review longer than this is announced as long, and left out of the usual times.
MANY_CHANGES, MANY_ARGUMENTS, MANY_WORDS = 40, 12, 400
# Seconds that a careful reader needs for a row, a line and a word.
A_ROW, A_LINE, A_WORD = 5, 3, 0.3
EMPTY_KINDS = {"nothing", "empty list", "empty group"}  # of cells
LONG_WORD = 12  # letters; a longer word takes the time of several


@dataclass(frozen=True, slots=True)
class TextPart:
    """Counterseal's own words in a sentence."""

    text: str
    value: ClassVar = False


@dataclass(frozen=True, slots=True)
class ValuePart:
    """A value in a sentence; an untrusted one is printed with `{% chip %}`. `parts` are
    the parts of a compound value, such as an address; `text` joins them."""

    text: str
    untrusted: bool = True
    parts: tuple[str, ...] = ()
    value: ClassVar = True


SentencePart = TextPart | ValuePart


class RiskIndicator(Enum):
    """What Counterseal itself found about a request and does not leave to a glance: an
    approval may need a written answer (`attention_checks.written_questions`)."""

    CONTRADICTION = "contradiction"
    IMITATED_DOMAIN = "imitated_domain"
    FIRST_PAYMENT = "first_payment"
    UNUSUAL_AMOUNT = "unusual_amount"


@dataclass(frozen=True, slots=True)
class Tag:
    """A fact that Counterseal worked out; a loud one is a reason to look closer.
    `indicator` says that it is a risk indicator, and `values` are then the exact texts
    it is about: untrusted."""

    text: str
    loud: bool = False
    indicator: RiskIndicator | None = None
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One value as text, with its type in words: `5` and `none` may be strings.

    `long` asks for the full untrusted display instead of one line. `sure` means that
    the type need not be shown: the schema allows no other, or no tool runs on the
    value. If `text` is the value in other words, `raw` is the exact value; `at` is the
    moment or the day that the value names.
    """

    text: str
    kind: str = "text"
    long: bool = False
    sure: bool = False
    raw: str = ""
    at: datetime | date | None = None
    outgoing: bool = False  # for a reader to whom the effect sends it
    imitates: bool = False  # it contains a domain that looks like one of ours

    @property
    def hides(self) -> bool:
        """Whether the text is a redaction chip in place of the value."""
        return self.kind == "sensitive"

    @property
    def repeats_kind(self) -> bool:
        """Whether the text says no more than the type, as `none` of a null does: it is
        then shown in place of the type."""
        return bool(self.badge and self.text) and self.kind in EMPTY_KINDS

    @property
    def badge(self) -> str:
        """The type, if the text alone does not show it."""
        return "" if self.sure or self.kind == "text" else self.kind

    @property
    def settled(self) -> Cell:
        """The cell of a value that no tool runs on: without its type, and an empty text
        as `none`. A concealed value stays as it is."""
        if self.kind == "sensitive":
            return self
        empty = self.kind == "empty text"
        return replace(self, text="none" if empty else self.text, sure=True)

    @property
    def exact(self) -> Cell:
        """The cell with the exact value instead of words."""
        return replace(self, text=self.raw, raw="", at=None) if self.raw else self

    @property
    def typed_text(self) -> str:
        """Text and type in one string, for places that have no room for a badge."""
        return f"{self.text} ({self.badge})" if self.badge else self.text


@dataclass(frozen=True, slots=True)
class SizeFigure:
    """A figure of region R1, such as how much or to whom."""

    label: str
    value: str
    note: str = ""
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A value under its label; the path distinguishes rows with equal labels. `note`
    and `warns` are Counterseal's words, never the agent's; warnings are loud. `also` is
    the host or domain that a note refers to, as untrusted as the cell."""

    label: str
    path: str
    cell: Cell
    note: str = ""
    warns: tuple[str, ...] = ()
    also: str = ""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field before and after; a side that is None is shown as `none`."""

    kind: ChangeKind
    label: str
    path: str
    before: Cell | None
    after: Cell | None


@dataclass(frozen=True, slots=True)
class UninspectableArgument:
    """An argument that nobody can state in full, and the reason."""

    label: str
    path: str
    reason: str
    argument: str = ""  # its name in the schema


@dataclass(frozen=True, slots=True)
class Reversibility:
    """Region R3: whether the effect can be undone, as the tool declares."""

    word: str
    icon: str  # of static/icons.svg
    undo: str = ""
    stays: str = ""
    check: str = ""


@dataclass(frozen=True, slots=True)
class DryRun:
    """What the tool itself says would happen; `problem` says why it could not."""

    rows: tuple[ValueRow, ...] = ()
    source: str = ""
    at: str = ""  # ISO 8601
    problem: str = ""

    @property
    def clock(self) -> str:
        """The time of day in UTC; empty if `at` is not an ISO 8601 time."""
        try:
            return f"{datetime.fromisoformat(self.at):%H:%M:%S} UTC"
        except ValueError:
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """Everything that the review page says about one effect."""

    title: str  # the tool's, for places that show no value from the agent
    sentence: tuple[SentencePart, ...]
    tags: tuple[Tag, ...]
    size: tuple[SizeFigure, ...] = ()
    changes: tuple[FieldChange, ...] = ()  # destructive first
    unchanged: tuple[ValueRow, ...] = ()
    now: tuple[
        ValueRow, ...
    ] = ()  # the rest of the state as read; no argument names it
    other: tuple[ValueRow, ...] = ()  # arguments that the state does not contain
    uninspectable: tuple[UninspectableArgument, ...] = ()
    reversal: Reversibility
    before_known: bool
    dedicated: bool = True  # False: "No dedicated view"
    views: tuple[DedicatedView, ...] = ()  # in the order of the page
    dry_run: DryRun | None = None
    arguments: int = 0  # how many leaves differ from the state
    top: tuple[ValueRow, ...] = ()  # facts of the state that the policy names
    gone: str = "none"  # what is shown after a removed field
    makes: str = ""  # what the effect creates, if there is no state to compare
    headline: tuple[str, ...] = ()  # paths of the arguments that the figures show
    unreadable: bool = False  # nothing of the effect is shown

    @property
    def counts(self) -> dict[str, int]:
        """How many rows there are of each kind of change, for the line under the
        heading."""
        kinds = [change.kind for change in self.changes]
        return {kind: kinds.count(kind) for kind in ("changed", "added", "removed")}

    @property
    def compared(self) -> str:
        """The result of the comparison in words, if it has no rows."""
        if self.makes or not self.before_known:
            return self.makes or "Nothing to compare"
        if self.unchanged:
            return "No field of the record changes"
        return "Nothing in the record to compare with"

    @property
    def beside(self) -> tuple[ValueRow, ...]:
        """The other arguments, without those of the headline."""
        return tuple(row for row in self.other if row.path not in self.headline)

    @property
    def stated(self) -> tuple[ValueRow, ...]:
        """The arguments of the headline, exactly as sent."""
        return tuple(row for row in self.other if row.path in self.headline)

    @property
    def lines(self) -> int:
        """How many changed lines there are to read."""
        return len(self.changes) + sum(view.lines for view in self.views)

    @property
    def is_long(self) -> bool:
        """Whether nobody can understand the effect within 30 seconds."""
        many = self.lines > MANY_CHANGES or self.arguments > MANY_ARGUMENTS
        return many or self.words > MANY_WORDS

    @property
    def words(self) -> int:
        """How many words the long texts contain."""
        return sum(len(row.cell.text.split()) for row in self.other if row.cell.long)

    @property
    def minutes(self) -> int:
        """A rough reading time for a long review in minutes; at least two."""
        rows = self.arguments * A_ROW + self.lines * A_LINE
        texts = [row.cell.text for row in self.other if row.cell.long]
        return max(2, ceil((rows + sum(map(_compute_reading_seconds, texts))) / 60))


def _compute_reading_seconds(text: str) -> float:
    """Estimate how long a text takes to read, in seconds. A run of lines that have no
    letters or digits, or that occurred before, takes the time of one line, however long
    the run is."""
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


def collect_texts(shown: Any) -> Iterator[str]:
    """Yield every text in a presentation, in order: all that a page made of it can
    say."""
    if isinstance(shown, str):
        yield shown
    elif isinstance(shown, tuple):
        for part in shown:
            yield from collect_texts(part)
    elif is_dataclass(shown):
        for field in fields(shown):
            yield from collect_texts(getattr(shown, field.name))
