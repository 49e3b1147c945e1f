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
from itertools import zip_longest
from typing import Any

from . import addressed
from .arguments import Leaf, collect_leaves, is_empty_value
from .shapes import Cell, ChangeKind, FieldChange, ValueRow
from .views import DiffLine, DiffLineKind, Hunk, LineParts

_ORDER: dict[ChangeKind, int] = {"removed": 0, "changed": 1, "added": 2}
MakeCell = Callable[[Leaf], Cell]
MakeLabel = Callable[[str], str]


@dataclass(slots=True)
class ComparedRows:
    """The rows of a comparison. Every leaf of the arguments is in `changes`,
    `unchanged` or `other`; `now` has the rest of the state."""

    changes: list[FieldChange] = field(default_factory=list)
    unchanged: list[ValueRow] = field(default_factory=list)
    other: list[ValueRow] = field(default_factory=list)
    now: list[ValueRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How to write leaves as cells and labels, and which rows they become."""

    cell: MakeCell
    label: MakeLabel
    read: MakeCell  # writes a leaf that only the state has

    def rows(
        self, args: Mapping[str, Any], before: Mapping[str, Any] | None
    ) -> ComparedRows:
        """Compare the arguments with the state as read, if there is one."""
        rows, known = ComparedRows(), before or {}
        for name, value in args.items():
            if name not in known:
                rows.other += map(self._row, collect_leaves({name: value}))
                continue
            olds, news = (collect_leaves({name: v}) for v in (known[name], value))
            if _is_collection(value) and _is_collection(known[name]):
                self._collections(rows, olds, news)
            else:
                self._fields(rows, olds, news)
        rest = {name: value for name, value in known.items() if name not in args}
        rows.now += map(self._read, collect_leaves(rest))
        rows.changes.sort(key=lambda change: _ORDER[change.kind])
        return rows

    def differences(
        self, args: Mapping[str, Any], before: Mapping[str, Any]
    ) -> list[FieldChange]:
        """List every difference between two versions of the arguments, destructive ones
        first: each leaf that is new, gone, different or at another place of a list."""
        changes: list[FieldChange] = []
        for name in dict.fromkeys([*args, *before]):
            olds, news = (
                collect_leaves({name: version[name]}) if name in version else []
                for version in (before, args)
            )
            lists = all(_is_collection(version.get(name)) for version in (before, args))
            pairs = _pair_entries(olds, news) if lists else _pair_fields(olds, news)
            changes += [self.change(old, new) for old, new in pairs]
        return sorted(changes, key=lambda change: _ORDER[change.kind])

    def change(self, old: Leaf | None, new: Leaf | None) -> FieldChange:
        """Build one change. Either side may be None; both raise ValueError."""
        present = new or old
        if present is None:
            raise ValueError("a change has at least one side")
        before = None if old is None else self.cell(old)
        after = None if new is None else self.cell(new)
        if before and after and before.typed_text == after.typed_text:
            before, after = (_force_type_badge(cell.exact) for cell in (before, after))
        elif (
            before
            and before.kind in ("nothing", "empty text")
            and not (after and after.text == before.settled.text)
        ):
            before = before.settled  # any empty one as `none`: no tool runs on it
        kind, path = _compute_change_kind(old, new), present.path
        return FieldChange(kind, self.label(path), path, before, after)

    def _fields(self, rows: ComparedRows, olds: list[Leaf], news: list[Leaf]) -> None:
        old_of = {leaf.path: leaf for leaf in olds}
        for new in news:
            self._place(rows, old_of.pop(new.path, None), new)
        gone = [leaf for leaf in old_of.values() if not is_empty_value(leaf.value)]
        rows.changes += [self.change(leaf, None) for leaf in gone]

    def _collections(
        self, rows: ComparedRows, olds: list[Leaf], news: list[Leaf]
    ) -> None:
        left = Counter(_serialise_value(leaf.value) for leaf in olds)
        for new in news:
            stays = left[_serialise_value(new.value)] > 0
            left[_serialise_value(new.value)] -= stays
            self._place(rows, new if stays else None, new)
        for old in olds:
            if left[_serialise_value(old.value)] > 0:
                left[_serialise_value(old.value)] -= 1
                rows.changes.append(self.change(old, None))

    def _place(self, rows: ComparedRows, old: Leaf | None, new: Leaf) -> None:
        if old is not None and _is_same_value(old, new):
            rows.unchanged.append(self._row(new))
        else:
            rows.changes.append(self.change(old, new))

    def _row(self, leaf: Leaf) -> ValueRow:
        return ValueRow(self.label(leaf.path), leaf.path, self.cell(leaf))

    def _read(self, leaf: Leaf) -> ValueRow:
        return ValueRow(self.label(leaf.path), leaf.path, self.read(leaf))


def _pair_fields(
    olds: list[Leaf], news: list[Leaf]
) -> Iterator[tuple[Leaf | None, Leaf | None]]:
    old_of = {leaf.path: leaf for leaf in olds}
    for new in news:
        old = old_of.pop(new.path, None)
        if old is None or not _is_same_value(old, new):
            yield old, new
    for old in old_of.values():
        inside = (f"{old.path}.", f"{old.path}[")
        filled = any(new.path.startswith(inside) for new in news)
        if not (filled and is_empty_value(old.value)):
            yield old, None


def _pair_entries(
    olds: list[Leaf], news: list[Leaf]
) -> Iterator[tuple[Leaf | None, Leaf | None]]:
    """Pair the entries of two lists that differ, around those that stay in order."""
    old_texts, new_texts = (
        [_serialise_value(leaf.value) for leaf in leaves] for leaves in (olds, news)
    )
    for tag, a, b, c, d in _compute_opcodes(old_texts, new_texts):
        if tag != "equal":
            yield from zip_longest(olds[a:b], news[c:d])


def _compute_change_kind(old: Leaf | None, new: Leaf | None) -> ChangeKind:
    # An emptied group or list has no old leaf of its own: its old leaves were inside.
    was_empty = old is not None and is_empty_value(old.value)
    if new is None or (is_empty_value(new.value) and not was_empty):
        return "removed"
    return "added" if old is None or was_empty else "changed"


def _force_type_badge(cell: Cell) -> Cell:
    """Show the type whatever the schema says: the two sides differ in nothing else."""
    kind = "as text" if cell.kind == "text" else cell.kind
    return replace(cell, kind=kind, sure=False)


def _is_collection(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return not any(isinstance(item, dict | list) for item in value)


def _is_same_value(old: Leaf, new: Leaf) -> bool:
    return _serialise_value(old.value) == _serialise_value(new.value)


def _serialise_value(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


CONTEXT_LINES = 3
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


class UnreadablePatch(Exception):
    """The patch cannot be parsed with certainty; the message says why."""


@dataclass(slots=True)
class PatchedFile:
    """One file of a parsed patch."""

    old: str = ""
    new: str = ""
    headers: list[str] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def path(self) -> str:
        return self.old if self.new == "/dev/null" else self.new


def compare_texts(
    before: str, after: str, *, outgoing: bool = False
) -> tuple[Hunk, ...]:
    """Compare two texts line by line; the unchanged lines between hunks are folded."""
    olds, news = _split_lines(before), _split_lines(after)
    lines: list[DiffLine] = []
    for tag, a, b, c, d in _compute_opcodes(olds, news):
        if tag == "equal":
            pairs = zip(range(a, b), range(c, d), strict=True)
            lines += [_build_line("same", news[n], o + 1, n + 1) for o, n in pairs]
            continue
        lines += [_build_line("removed", olds[n], n + 1) for n in range(a, b)]
        lines += [_build_line("added", news[n], None, n + 1) for n in range(c, d)]
    if after and not after.endswith("\n"):
        lines.append(_build_line("about", NO_NEWLINE))
    return tuple(_group_hunks(_mark_differences(lines, outgoing)))


def parse_patch(patch: str) -> list[PatchedFile]:
    """Parse a unified diff into its files. Raises `UnreadablePatch`."""
    files: list[PatchedFile] = []
    lines = _split_lines(patch)
    at = 0
    while at < len(lines):
        if lines[at].startswith("@@ "):
            at = _parse_hunk(lines, at, _require_current_file(files))
        elif lines[at].startswith("--- "):
            at = _parse_path_lines(lines, at, files)
        else:
            _parse_git_header(lines[at], at, files)
            at += 1
    if not files or not all(_is_complete_file(file) for file in files):
        raise UnreadablePatch("a file has no name or no change")
    return files


def rebuild_patch(files: Sequence[PatchedFile]) -> str:
    """Write parsed files as a patch, which equals the source exactly if the parser
    understood every byte of it."""
    signs = {"same": " ", "removed": "-", "added": "+", "about": ""}
    lines: list[str] = []
    for file in files:
        lines += file.headers
        for hunk in file.hunks:
            lines.append(hunk.title)
            lines += [signs[line.kind] + line.text for line in hunk.lines]
    return "".join(f"{line}\n" for line in lines)


def _parse_git_header(line: str, at: int, files: list[PatchedFile]) -> None:
    if line.startswith("diff --git "):
        files.append(PatchedFile(headers=[line]))
    elif line.startswith(("Binary files ", "GIT binary patch")):
        raise UnreadablePatch("it has a binary file")
    elif _HEADER.fullmatch(line):
        _require_current_file(files).headers.append(line)
    else:
        raise UnreadablePatch(f"line {at + 1} is not part of a patch")


def can_apply_hunk(hunk: Hunk, lines: Sequence[str]) -> bool:
    """Whether the old lines of a hunk are in the file as read, at the same place."""
    olds = [line for line in hunk.lines if line.kind in ("same", "removed")]
    return all(
        line.old is not None
        and line.old <= len(lines)
        and lines[line.old - 1] == line.text
        for line in olds
    )


def _require_current_file(files: list[PatchedFile]) -> PatchedFile:
    if not files:
        raise UnreadablePatch("it begins in the middle of a file")
    return files[-1]


def _parse_path_lines(lines: list[str], at: int, files: list[PatchedFile]) -> int:
    if at + 1 >= len(lines) or not lines[at + 1].startswith("+++ "):
        raise UnreadablePatch(f"line {at + 1} is not part of a patch")
    if not files or files[-1].new:
        files.append(PatchedFile())
    files[-1].old = _strip_path_prefix(lines[at][4:], "a/")
    files[-1].new = _strip_path_prefix(lines[at + 1][4:], "b/")
    files[-1].headers += [lines[at], lines[at + 1]]
    return at + 2


def _strip_path_prefix(text: str, prefix: str) -> str:
    name = text.partition("\t")[0]
    if name.startswith('"'):
        raise UnreadablePatch("a file name is quoted")
    return name.removeprefix(prefix)


def _is_complete_file(file: PatchedFile) -> bool:
    """Whether a file has a path and a change. Also sets the paths of a file without
    hunks, which is only renamed or changes its mode."""
    if not file.new:
        renamed = {
            way: header.partition(f"rename {way} ")[2]
            for header in file.headers
            for way in ("from", "to")
            if header.startswith(f"rename {way} ")
        }
        git = re.fullmatch(r"diff --git a/(\S+) b/(\S+)", file.headers[0])
        file.old = renamed.get("from") or (git[1] if git else "")
        file.new = renamed.get("to") or (git[2] if git else "")
        return bool(file.old and file.new and len(file.headers) > 1)
    return bool(file.hunks) and bool(file.path)


def _parse_hunk(lines: list[str], at: int, file: PatchedFile) -> int:
    """Parse exactly as many lines as the hunk announces; return the next index."""
    match = _HUNK.fullmatch(lines[at])
    if not match or not file.new:
        raise UnreadablePatch(f"line {at + 1} is not part of a patch")
    old, new = int(match[1]), int(match[3])
    olds, news = int(match[2] or 1), int(match[4] or 1)
    parsed: list[DiffLine] = []
    at += 1
    while at < len(lines) and (olds > 0 or news > 0 or lines[at].startswith("\\")):
        line = _parse_hunk_line(lines[at], old, new, at)
        parsed.append(line)
        old, olds = old + (line.old is not None), olds - (line.old is not None)
        new, news = new + (line.new is not None), news - (line.new is not None)
        at += 1
    if olds or news:
        raise UnreadablePatch("a hunk's length differs from its header")
    file.hunks.append(Hunk(tuple(_mark_differences(parsed)), title=match[0]))
    return at


def _parse_hunk_line(text: str, old: int, new: int, at: int) -> DiffLine:
    sign, rest = text[:1], text[1:]
    if sign == " " or text == "":
        return _build_line("same", rest, old, new)
    if sign == "-":
        return _build_line("removed", rest, old)
    if sign == "+":
        return _build_line("added", rest, None, new)
    if sign == "\\":
        return _build_line("about", text)
    raise UnreadablePatch(f"line {at + 1} is not part of a patch")


def _split_lines(text: str) -> list[str]:
    """Split a text into lines, without the empty one after the last newline."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _compute_opcodes(
    olds: list[str], news: list[str]
) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield (tag, old start, old end, new start, new end) for two lists of lines: equal
    lines at both ends first, then the rest unless it is too long to compare."""
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


def _group_hunks(lines: list[DiffLine]) -> Iterator[Hunk]:
    near: set[int] = set()
    for place, line in enumerate(lines):
        if line.kind != "same":
            near.update(range(place - CONTEXT_LINES, place + CONTEXT_LINES + 1))
    start = 0
    while start < len(lines):
        inside, end = start in near, start
        while end < len(lines) and (end in near) == inside:
            end += 1
        yield Hunk(tuple(lines[start:end]), folded=not inside)
        start = end


def _mark_differences(lines: list[DiffLine], outgoing: bool = False) -> list[DiffLine]:
    """Mark the words that differ between a line and its replacement, and the added
    lines that address the reviewer."""
    marked = list(lines)
    changed = sum(line.kind != "same" for line in lines)
    if changed <= MOST_MARKED:
        for removed, added in _pair_replaced_lines(lines):
            old, new = lines[removed], lines[added]
            old_parts, other = _mark_words(old.text, new.text)
            marked[removed] = replace(old, parts=old_parts)
            marked[added] = replace(new, parts=other)
    news = [place for place, line in enumerate(lines) if line.kind == "added"]
    texts = [lines[place].text for place in news]
    for number in addressed.find_addressed_lines(texts, outgoing=outgoing):
        marked[news[number]] = replace(marked[news[number]], speaks=True)
    return marked


def _pair_replaced_lines(lines: list[DiffLine]) -> Iterator[tuple[int, int]]:
    """Pair each removed line with the added line in its place, run by run."""
    place = 0
    while place < len(lines):
        removed = _find_run_end(lines, place, "removed")
        added = _find_run_end(lines, removed, "added")
        yield from zip(range(place, removed), range(removed, added), strict=False)
        place = max(added, place + 1)


def _find_run_end(lines: list[DiffLine], start: int, kind: str) -> int:
    while start < len(lines) and lines[start].kind == kind:
        start += 1
    return start


def _mark_words(old: str, new: str) -> tuple[LineParts, LineParts]:
    """Mark the pieces that differ, unless the lines have little in common."""
    olds, news = _PIECES.findall(old), _PIECES.findall(new)
    unmarked = _build_unmarked_parts(old), _build_unmarked_parts(new)
    if len(olds) + len(news) > MOST_MARKED:
        return unmarked
    matcher = SequenceMatcher(None, olds, news, autojunk=False)
    if matcher.ratio() < 0.4:
        return unmarked
    codes = matcher.get_opcodes()
    old_parts = tuple(
        (t != "equal", "".join(olds[a:b])) for t, a, b, *_ in codes if a < b
    )
    new_parts = tuple(
        (t != "equal", "".join(news[c:d])) for t, _, _, c, d in codes if c < d
    )
    return old_parts or unmarked[0], new_parts or unmarked[1]


def _build_line(
    kind: DiffLineKind, text: str, old: int | None = None, new: int | None = None
) -> DiffLine:
    return DiffLine(kind, _build_unmarked_parts(text), old, new)


def _build_unmarked_parts(text: str) -> LineParts:
    return ((False, text),)
