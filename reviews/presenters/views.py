"""The parts of dedicated views: groups of rows, commands, differences. Pure.

The `lines` of a view is the number of lines to read that are not arguments themselves;
`template` is the partial that draws it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Literal

from .shapes import ValueRow

DiffLineKind = Literal["same", "removed", "added", "about"]
LineParts = tuple[tuple[bool, str], ...]  # (whether this piece differs, the piece)


@dataclass(frozen=True, slots=True)
class GroupView:
    """Rows under one of Counterseal's headings: the headers of a mail, the query of a
    call."""

    template: ClassVar = "desk/components/_view_group.html"
    lines: ClassVar = 0

    title: str
    rows: tuple[ValueRow, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class CommandToken:
    """One word of a command, exactly as the program receives it."""

    text: str
    means: str
    warns: tuple[str, ...] = ()
    declared: str = ""  # the tool reader's description, untrusted text


@dataclass(frozen=True, slots=True)
class CommandStep:
    """One program of a command; `joined` says in words when it runs."""

    joined: str
    tokens: tuple[CommandToken, ...]


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """A text inside a command: a heredoc, a `-c` string, a substitution."""

    title: str
    text: str
    steps: tuple[CommandStep, ...] = ()
    problem: str = ""  # why it was not parsed into steps


@dataclass(frozen=True, slots=True)
class CommandView:
    """A command as numbered steps, and the texts inside it as blocks."""

    template: ClassVar = "desk/components/_view_command.html"

    title: str
    steps: tuple[CommandStep, ...]
    inside: tuple[EmbeddedText, ...] = ()
    problem: str = ""
    covers: str = ""  # path of the argument that it states in full

    @property
    def lines(self) -> int:
        steps = [*self.steps, *(step for text in self.inside for step in text.steps)]
        texts = [text.text for text in self.inside if not text.steps]
        words = sum(len(step.tokens) for step in steps)
        return words + sum(text.count("\n") + 1 for text in texts)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a difference; `parts` mark the words that differ."""

    kind: DiffLineKind
    parts: LineParts
    old: int | None = None
    new: int | None = None
    speaks: bool = False  # whether it addresses the reviewer

    @property
    def text(self) -> str:
        return "".join(piece for _, piece in self.parts)


@dataclass(frozen=True, slots=True)
class Hunk:
    """Consecutive lines of a difference. A folded hunk is unchanged but complete."""

    lines: tuple[DiffLine, ...]
    folded: bool = False
    title: str = ""  # the @@ line of a patch, untrusted text

    @property
    def runs(self) -> list[tuple[bool, list[DiffLine]]]:
        """The lines in runs: (whether the run is a change, its lines). The side-by-side
        layout puts the lines of one run next to each other."""
        runs = groupby(self.lines, lambda line: line.kind in ("removed", "added"))
        return [(changes, list(lines)) for changes, lines in runs]


@dataclass(frozen=True, slots=True)
class FileChange:
    """Everything that happens to one file."""

    path: str
    hunks: tuple[Hunk, ...] = ()
    was: str = ""  # the path before a rename
    marks: tuple[str, ...] = ()  # Counterseal's words, each a reason to look closer
    headers: tuple[str, ...] = ()  # header lines of a patch, as sent
    facts: tuple[ValueRow, ...] = ()  # what is not a line of text
    folded: bool = False  # too long to be shown open

    @property
    def added(self) -> int:
        return self._count("added")

    @property
    def removed(self) -> int:
        return self._count("removed")

    @property
    def size(self) -> int:
        return sum(len(hunk.lines) for hunk in self.hunks)

    def _count(self, kind: DiffLineKind) -> int:
        lines = (line for hunk in self.hunks for line in hunk.lines)
        return sum(line.kind == kind for line in lines)


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """Changed files, line by line."""

    template: ClassVar = "desk/components/_view_difference.html"

    title: str
    files: tuple[FileChange, ...]
    covers: str  # path of the argument that it states in full
    note: str = ""

    @property
    def lines(self) -> int:
        return sum(file.added + file.removed for file in self.files)


DedicatedView = GroupView | CommandView | DifferenceView
