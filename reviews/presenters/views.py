"""The parts that dedicated views are made of: groups of rows, steps, differences. Pure.

Every view says how many lines there are to read that are no argument of their own.
`template` is the partial that draws it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from .shapes import Row

LineKind = Literal["same", "removed", "added", "about"]
Parts = tuple[tuple[bool, str], ...]  # (whether this piece differs, the piece)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under a heading of ours: the headers of a mail, the query of a call."""

    template: ClassVar = "reviews/_view_group.html"
    lines: ClassVar = 0

    title: str
    rows: tuple[Row, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a command, exactly as the program receives it."""

    text: str
    means: str
    warns: tuple[str, ...] = ()
    declared: str = ""  # what the tool's reader says of it, untrusted text


@dataclass(frozen=True, slots=True)
class Step:
    """One program of a command; `joined` says when it runs."""

    joined: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Inside:
    """A text that a command carries: a heredoc, a `-c` string, a substitution."""

    title: str
    text: str
    steps: tuple[Step, ...] = ()
    problem: str = ""  # why it is not opened into steps


@dataclass(frozen=True, slots=True)
class Command:
    """A command as numbered steps, and what it carries opened as blocks."""

    template: ClassVar = "reviews/_view_command.html"

    title: str
    steps: tuple[Step, ...]
    inside: tuple[Inside, ...] = ()
    problem: str = ""
    covers: str = ""  # path of the argument that it states in full

    @property
    def lines(self) -> int:
        steps = [*self.steps, *(step for one in self.inside for step in one.steps)]
        texts = [one.text for one in self.inside if not one.steps]
        words = sum(len(step.tokens) for step in steps)
        return words + sum(text.count("\n") + 1 for text in texts)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a difference; `parts` mark the words that differ."""

    kind: LineKind
    parts: Parts
    old: int | None = None
    new: int | None = None
    speaks: bool = False  # to the reviewer

    @property
    def text(self) -> str:
        return "".join(piece for _, piece in self.parts)


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that belong together. A folded one is unchanged; all of it is there."""

    lines: tuple[Line, ...]
    folded: bool = False
    title: str = ""  # where a patch says it belongs, untrusted text

    @property
    def runs(self) -> list[tuple[bool, list[Line]]]:
        """(whether it is a change, its lines): what stands side by side."""
        found: list[tuple[bool, list[Line]]] = []
        for line in self.lines:
            changes = line.kind in ("removed", "added")
            if not found or found[-1][0] != changes:
                found.append((changes, []))
            found[-1][1].append(line)
        return found


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happens to one file."""

    path: str
    hunks: tuple[Hunk, ...] = ()
    was: str = ""  # the path before a rename
    marks: tuple[str, ...] = ()  # our words, each a reason to look twice
    headers: tuple[str, ...] = ()  # of a patch, as they were sent
    facts: tuple[Row, ...] = ()  # mode, owner, type: what is no line of text
    folded: bool = False  # too long to stand open

    @property
    def added(self) -> int:
        return self._count("added")

    @property
    def removed(self) -> int:
        return self._count("removed")

    @property
    def size(self) -> int:
        return sum(len(hunk.lines) for hunk in self.hunks)

    def _count(self, kind: LineKind) -> int:
        lines = (line for hunk in self.hunks for line in hunk.lines)
        return sum(line.kind == kind for line in lines)


@dataclass(frozen=True, slots=True)
class Difference:
    """Files line by line, the ones to look at twice first."""

    template: ClassVar = "reviews/_view_difference.html"

    title: str
    files: tuple[FileChange, ...]
    covers: str  # path of the argument that it states in full
    note: str = ""

    @property
    def lines(self) -> int:
        return sum(one.added + one.removed for one in self.files)


View = Group | Command | Difference
