"""Before and after: the fields of a record, and the lines of a text or a patch. Pure.

A field of the before-state that the arguments name is changed, added, removed or
unchanged; destructive rows come first. Arguments that the state does not contain are
`other` rows, and fields that no argument names are `now` rows. Lists of plain values
are compared as collections, in any order.

Of lines nothing is left out: every line of the new text, or of the patch, is present,
with the unchanged ones folded. A patch that cannot be parsed with certainty is not
parsed at all: `UnreadablePatch`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any

from . import addressed
from .arguments import Leaf, is_nothing, leaves
from .shapes import Cell, Change, ChangeKind, Row
from .views import Hunk, Line, Parts

_ORDER: dict[ChangeKind, int] = {"removed": 0, "changed": 1, "added": 2}
MakeCell = Callable[[Leaf], Cell]
MakeLabel = Callable[[str], str]


@dataclass(slots=True)
class Rows:
    """The rows of a comparison. Every leaf of the arguments is in `changes`,
    `unchanged` or `other`; `now` has the rest of the state."""

    changes: list[Change] = field(default_factory=list)
    unchanged: list[Row] = field(default_factory=list)
    other: list[Row] = field(default_factory=list)
    now: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How to write leaves as cells and labels, and which rows they become."""

    cell: MakeCell
    label: MakeLabel
    read: MakeCell  # writes a leaf that only the state has

    def rows(self, args: Mapping[str, Any], before: Mapping[str, Any] | None) -> Rows:
        """Compare the arguments with the state as read, if there is one."""
        rows, known = Rows(), before or {}
        for name, value in args.items():
            if name not in known:
                rows.other += map(self._row, leaves({name: value}))
            elif _is_collection(value) and _is_collection(known[name]):
                self._collections(rows, leaves({name: known[name]}), name, value)
            else:
                self._fields(rows, leaves({name: known[name]}), name, value)
        rest = {name: value for name, value in known.items() if name not in args}
        rows.now += map(self._read, leaves(rest))
        rows.changes.sort(key=lambda change: _ORDER[change.kind])
        return rows

    def change(self, old: Leaf | None, new: Leaf | None) -> Change:
        """Build one change. Either side may be None; both raise ValueError."""
        present = new or old
        if present is None:
            raise ValueError("a change has at least one side")
        before = None if old is None else self.cell(old)
        after = None if new is None else self.cell(new)
        if before and after and before.said == after.said:
            before, after = _told(before.exact), _told(after.exact)
        elif before and not (after and after.text == before.settled.text):
            before = _plain(before)
        kind, path = _kind(old, new), present.path
        return Change(kind, self.label(path), path, before, after)

    def _fields(self, rows: Rows, olds: list[Leaf], name: str, value: Any) -> None:
        old_of = {leaf.path: leaf for leaf in olds}
        for new in leaves({name: value}):
            self._place(rows, old_of.pop(new.path, None), new)
        gone = [leaf for leaf in old_of.values() if not is_nothing(leaf.value)]
        rows.changes += [self.change(leaf, None) for leaf in gone]

    def _collections(self, rows: Rows, olds: list[Leaf], name: str, value: Any) -> None:
        left = Counter(_mark(leaf.value) for leaf in olds)
        for new in leaves({name: value}):
            stays = left[_mark(new.value)] > 0
            left[_mark(new.value)] -= stays
            self._place(rows, new if stays else None, new)
        for old in olds:
            if left[_mark(old.value)] > 0:
                left[_mark(old.value)] -= 1
                rows.changes.append(self.change(old, None))

    def _place(self, rows: Rows, old: Leaf | None, new: Leaf) -> None:
        if old is not None and _mark(old.value) == _mark(new.value):
            rows.unchanged.append(self._row(new))
        else:
            rows.changes.append(self.change(old, new))

    def _row(self, leaf: Leaf) -> Row:
        return Row(self.label(leaf.path), leaf.path, self.cell(leaf))

    def _read(self, leaf: Leaf) -> Row:
        return Row(self.label(leaf.path), leaf.path, self.read(leaf))


def _kind(old: Leaf | None, new: Leaf | None) -> ChangeKind:
    if new is None or (is_nothing(new.value) and not _was_nothing(old)):
        return "removed"
    return "added" if old is None or is_nothing(old.value) else "changed"


def _told(cell: Cell) -> Cell:
    """Show the type whatever the schema says: the two sides differ in nothing else."""
    kind = "as text" if cell.kind == "text" else cell.kind
    return replace(cell, kind=kind, sure=False)


def _plain(cell: Cell) -> Cell:
    """Show any empty old value as `none`: no tool runs on an old value."""
    return cell.settled if cell.kind in ("nothing", "empty text") else cell


def _was_nothing(old: Leaf | None) -> bool:
    # An emptied group or list has no old leaf of its own: its old leaves were inside.
    return old is not None and is_nothing(old.value)


def _is_collection(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and not any(map(_is_group, value))


def _is_group(value: Any) -> bool:
    return isinstance(value, dict | list)


def _mark(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


CONTEXT = 3
# Beyond MOST_LINES only the equal lines at both ends are found. Words are marked if at
# most MOST_MARKED lines changed, in pairs of lines with at most MOST_MARKED pieces.
MOST_LINES, MOST_MARKED = 1200, 400
NO_NEWLINE = "No newline at the end of the file"

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")
_PIECES = re.compile(r"\w+|\s+|[^\w\s]")
_HEADER = re.compile(
    r"(index [0-9a-f]+\.\.[0-9a-f]+( [0-7]{6})?|(old|new|deleted file|new file) mode"
    r" [0-7]{6}|(similarity|dissimilarity) index \d+%|(rename|copy) (from|to) .+)"
)


class Unreadable(Exception):
    """The patch cannot be parsed with certainty; the message says why."""


@dataclass(slots=True)
class Patched:
    """One file of a parsed patch."""

    old: str = ""
    new: str = ""
    headers: list[str] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def path(self) -> str:
        return self.old if self.new == "/dev/null" else self.new


def compare(before: str, after: str) -> tuple[Hunk, ...]:
    """Compare two texts line by line; the unchanged lines between hunks are folded."""
    olds, news = _lines(before), _lines(after)
    found: list[Line] = []
    for tag, a, b, c, d in _blocks(olds, news):
        if tag == "equal":
            pairs = zip(range(a, b), range(c, d), strict=True)
            found += [Line("same", _whole(news[n]), o + 1, n + 1) for o, n in pairs]
            continue
        found += [Line("removed", _whole(olds[n]), n + 1) for n in range(a, b)]
        found += [Line("added", _whole(news[n]), None, n + 1) for n in range(c, d)]
    if after and not after.endswith("\n"):
        found.append(Line("about", _whole(NO_NEWLINE)))
    return tuple(_folded(_marked(found)))


def parse(patch: str) -> list[Patched]:
    """Parse a unified diff into its files. Raises `UnreadablePatch`."""
    found: list[Patched] = []
    lines = _lines(patch)
    at = 0
    while at < len(lines):
        if lines[at].startswith("@@ "):
            at = _hunk(lines, at, _current(found))
        elif lines[at].startswith("--- "):
            at = _names(lines, at, found)
        else:
            _header(lines[at], at, found)
            at += 1
    if not found or not all(_is_whole(one) for one in found):
        raise Unreadable("a file has no name or no change")
    return found


def rebuilt(files: Sequence[Patched]) -> str:
    """Write parsed files as a patch.

    The result equals the source exactly if the parser understood every byte of it.
    """
    signs = {"same": " ", "removed": "-", "added": "+", "about": ""}
    lines: list[str] = []
    for one in files:
        lines += one.headers
        for hunk in one.hunks:
            lines.append(hunk.title)
            lines += [signs[line.kind] + line.text for line in hunk.lines]
    return "".join(f"{line}\n" for line in lines)


def _header(line: str, at: int, found: list[Patched]) -> None:
    if line.startswith("diff --git "):
        found.append(Patched(headers=[line]))
    elif line.startswith(("Binary files ", "GIT binary patch")):
        raise Unreadable("it has a binary file")
    elif _HEADER.fullmatch(line):
        _current(found).headers.append(line)
    else:
        raise Unreadable(f"line {at + 1} is no part of a patch")


def stands_in(hunk: Hunk, lines: Sequence[str]) -> bool:
    """Whether the old lines of a hunk are in the file as read, at the same place."""
    olds = [line for line in hunk.lines if line.kind in ("same", "removed")]
    return all(
        line.old is not None
        and line.old <= len(lines)
        and lines[line.old - 1] == line.text
        for line in olds
    )


def _current(found: list[Patched]) -> Patched:
    if not found:
        raise Unreadable("it begins in the middle of a file")
    return found[-1]


def _names(lines: list[str], at: int, found: list[Patched]) -> int:
    if at + 1 >= len(lines) or not lines[at + 1].startswith("+++ "):
        raise Unreadable(f"line {at + 1} is no part of a patch")
    if not found or found[-1].new:
        found.append(Patched())
    found[-1].old = _name(lines[at][4:], "a/")
    found[-1].new = _name(lines[at + 1][4:], "b/")
    found[-1].headers += [lines[at], lines[at + 1]]
    return at + 2


def _name(text: str, prefix: str) -> str:
    name = text.partition("\t")[0]
    if name.startswith('"'):
        raise Unreadable("a file name is quoted")
    return name.removeprefix(prefix)


def _is_whole(one: Patched) -> bool:
    """Whether a file has a path and a change.

    Also sets the paths of a file without hunks, which is only renamed or changes its
    mode.
    """
    if not one.new:
        renamed = {
            way: header.partition(f"rename {way} ")[2]
            for header in one.headers
            for way in ("from", "to")
            if header.startswith(f"rename {way} ")
        }
        git = re.fullmatch(r"diff --git a/(\S+) b/(\S+)", one.headers[0])
        one.old = renamed.get("from") or (git[1] if git else "")
        one.new = renamed.get("to") or (git[2] if git else "")
        return bool(one.old and one.new and len(one.headers) > 1)
    return bool(one.hunks) and bool(one.path)


def _hunk(lines: list[str], at: int, file: Patched) -> int:
    """Parse exactly as many lines as the hunk announces; return the next index."""
    match = _HUNK.fullmatch(lines[at])
    if not match or not file.new:
        raise Unreadable(f"line {at + 1} is no part of a patch")
    old, new = int(match[1]), int(match[3])
    olds, news = int(match[2] or 1), int(match[4] or 1)
    found: list[Line] = []
    at += 1
    while at < len(lines) and (olds > 0 or news > 0 or lines[at].startswith("\\")):
        line = _line(lines[at], old, new, at)
        found.append(line)
        old, olds = old + (line.old is not None), olds - (line.old is not None)
        new, news = new + (line.new is not None), news - (line.new is not None)
        at += 1
    if olds or news:
        raise Unreadable("a hunk has another length than it says")
    file.hunks.append(Hunk(tuple(_marked(found)), title=match[0]))
    return at


def _line(text: str, old: int, new: int, at: int) -> Line:
    sign, rest = text[:1], text[1:]
    if sign == " " or text == "":
        return Line("same", _whole(rest), old, new)
    if sign == "-":
        return Line("removed", _whole(rest), old)
    if sign == "+":
        return Line("added", _whole(rest), None, new)
    if sign == "\\":
        return Line("about", _whole(text))
    raise Unreadable(f"line {at + 1} is no part of a patch")


def _lines(text: str) -> list[str]:
    """Split a text into lines, without the empty one after the last newline."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _blocks(
    olds: list[str], news: list[str]
) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield (tag, old start, old end, new start, new end) for two lists of lines.

    Equal lines at both ends are found first; the rest is compared unless it is too
    long.
    """
    start, most = 0, min(len(olds), len(news))
    while start < most and olds[start] == news[start]:
        start += 1
    end = 0
    while end < most - start and olds[-1 - end] == news[-1 - end]:
        end += 1
    old, new = len(olds) - end, len(news) - end
    yield "equal", 0, start, 0, start
    if old + new - 2 * start > MOST_LINES:
        yield "replace", start, old, start, new
    else:
        matcher = SequenceMatcher(None, olds[start:old], news[start:new], False)
        for tag, a, b, c, d in matcher.get_opcodes():
            yield tag, start + a, start + b, start + c, start + d
    yield "equal", old, len(olds), new, len(news)


def _folded(lines: list[Line]) -> Iterator[Hunk]:
    """Group the lines into hunks with context; the lines between them are folded."""
    near: set[int] = set()
    for place, line in enumerate(lines):
        if line.kind != "same":
            near.update(range(place - CONTEXT, place + CONTEXT + 1))
    start = 0
    while start < len(lines):
        inside, end = start in near, start
        while end < len(lines) and (end in near) == inside:
            end += 1
        yield Hunk(tuple(lines[start:end]), folded=not inside)
        start = end


def _marked(lines: list[Line]) -> list[Line]:
    """Mark the words that differ between a line and its replacement, and the added
    lines that address the reviewer."""
    found = list(lines)
    changed = sum(line.kind != "same" for line in lines)
    if changed <= MOST_MARKED:
        for removed, added in _pairs(lines):
            old, new = lines[removed], lines[added]
            one, other = _words(old.text, new.text)
            found[removed] = replace(old, parts=one)
            found[added] = replace(new, parts=other)
    news = [place for place, line in enumerate(lines) if line.kind == "added"]
    for number in addressed.speaking([lines[place].text for place in news]):
        found[news[number]] = replace(found[news[number]], speaks=True)
    return found


def _pairs(lines: list[Line]) -> Iterator[tuple[int, int]]:
    """Pair each removed line with the added line in its place, run by run."""
    place = 0
    while place < len(lines):
        removed = _run(lines, place, "removed")
        added = _run(lines, removed, "added")
        yield from zip(range(place, removed), range(removed, added), strict=False)
        place = max(added, place + 1)


def _run(lines: list[Line], start: int, kind: str) -> int:
    while start < len(lines) and lines[start].kind == kind:
        start += 1
    return start


def _words(old: str, new: str) -> tuple[Parts, Parts]:
    """Split both lines into pieces and mark those that differ.

    Lines with little in common are not marked.
    """
    olds, news = _PIECES.findall(old), _PIECES.findall(new)
    if len(olds) + len(news) > MOST_MARKED:
        return _whole(old), _whole(new)
    matcher = SequenceMatcher(None, olds, news, autojunk=False)
    if matcher.ratio() < 0.4:
        return _whole(old), _whole(new)
    codes = matcher.get_opcodes()
    one = tuple((t != "equal", "".join(olds[a:b])) for t, a, b, _, _ in codes if a < b)
    two = tuple((t != "equal", "".join(news[c:d])) for t, _, _, c, d in codes if c < d)
    return one or _whole(old), two or _whole(new)


def _whole(text: str) -> Parts:
    return ((False, text),)
