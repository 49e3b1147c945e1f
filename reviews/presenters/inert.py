"""Untrusted text as inert data, which is all that a template may print of it. Pure.

Every character is shown or named: nothing is removed, hidden, joined or obeyed. The
stored bytes are untouched (ux.md 3.5).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from types import MappingProxyType
from typing import Literal

from . import addressed, unicode

HEAD, TAIL = 12, 4  # blocks that are always in sight, if they fit
HEAD_ROWS, TAIL_ROWS = 24, 8  # rows of a page that they may take
ROW = 84  # characters of a row at its widest
CHIP = 60  # characters of a chip
WHOLE = 160  # characters of a value of several parts, shown whole
# A longer line is split, so that it cannot push the end of the text out of sight.
WIDTH = 400
WORD = 60  # characters; a longer word may be split
BLANK_LINES = 3  # from this number on they are counted, not shown

# What redaction puts in the place of a value (ux.md 3.6).
_REDACTED = re.compile(r"\[[A-Za-z][A-Za-z -]{0,30} · redacted · #[0-9a-f]{4}\]")
# Text that programs which obey these characters show from right to left.
_REVERSED = re.compile("\u202e([^\u202c-\u202e\n]*)")
FEWEST_REVERSED = 3  # letters and digits; no reading of a shorter run is shown
_PADDING = re.compile(f" {{{unicode.MOST_SPACES + 1},}}")
_PIECES = re.compile(f"({_REDACTED.pattern}|{_PADDING.pattern})")

Kind = Literal["plain", "hidden", "mixed", "redacted", "same", "cut", "read"]
# Redaction chips, each with the label of the equal value that the page shows in clear.
Same = Mapping[str, str]
NOTHING: Same = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of characters of one kind.

    `text` is what to print: for `hidden` the names of the code points, for `cut` how
    much is left out, for `read` how other programs show reversed text. `note` says why
    a word is marked. `equals` names what a redacted value is equal to, and is printed
    after `text`.
    """

    kind: Kind
    text: str
    note: str = ""
    equals: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text, or with `goes_on` the next part of a line that is too
    long."""

    segments: tuple[Segment, ...]
    speaks: bool = False  # whether it addresses the reviewer
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Blanks:
    """A run of blank lines, counted; `hidden` if they contain invisible characters."""

    count: int
    hidden: bool = False


Block = Line | Blanks


@dataclass(frozen=True, slots=True)
class Display:
    """A whole text: what is in sight, what opens on demand, and its measures."""

    head: tuple[Block, ...]
    folded: tuple[Block, ...]
    tail: tuple[Block, ...]
    lines: int
    size: int  # bytes of UTF-8
    same: int = 0  # number of equal lines, if they are most of a long text
    common: str = ""  # their text

    @property
    def speaks(self) -> bool:
        """Whether a folded line addresses the reviewer."""
        return any(isinstance(one, Line) and one.speaks for one in self.folded)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.head + self.folded + self.tail


def tokens(text: str, plain: str = "", *, chips: bool = True) -> list[Segment]:
    """Build the segments of a text on one line.

    Line breaks and tabs are tokens too, unless `plain` contains them. Without `chips`,
    text that looks like a redaction is plain text: nothing was taken out of it.
    """
    return _bare(_segments(text, unicode.Words(text), plain), chips)


def chip(text: str, limit: int = CHIP) -> list[Segment]:
    """Build a chip of at most `limit` characters: head, count of what is left out,
    tail.

    A chip is part of a sentence, so the limit is halved while tokens make it too long.
    """
    found = _clipped(text, limit)
    return chip(text, limit // 2) if _size(found) > 2 * CHIP else found


def chips(parts: Sequence[str]) -> list[list[Segment]]:
    """Build the chips of a value of several parts, each part whole.

    Of a long value, the parts between the first ones and the last are counted. Only a
    part that is long by itself is cut inside.
    """
    shown = [_part(text) for text in parts]
    sizes = [_size(segments) + len(", ") for segments in shown]
    if sum(sizes) <= WHOLE:
        return shown
    head = max(sum(size <= WHOLE - sizes[-1] for size in accumulate(sizes[:-1])), 1)
    left_out = len(shown) - head - 1
    cut = [[Segment("cut", f"{left_out} more")]] if left_out else []
    return [*shown[:head], *cut, shown[-1]]


def _part(text: str) -> list[Segment]:
    if len(text) <= WHOLE:
        found = tokens(text, chips=False)
        if _size(found) <= WHOLE:
            return found
    return chip(text)


def _size(found: Iterable[Segment]) -> int:
    return sum(len(segment.text) for segment in found)


def _clipped(text: str, limit: int) -> list[Segment]:
    if len(text) <= limit:
        return tokens(text, chips=False)
    words, tail = unicode.Words(text), limit // 4
    found = [
        *_segments(text[: limit - tail], words, ""),
        Segment("cut", f"{len(text) - limit} more"),
        *_segments(text[len(text) - tail :], words, ""),
    ]
    return _bare(found, chips=False)


def display(text: str, *, chips: bool = True, same: Same = NOTHING) -> Display:
    """Build the blocks of a whole text: the first 12 and the last 4 are in sight if
    they fit.

    `same` names what a redacted value is equal to.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    blocks = tuple(_blocks(lines, unicode.Words(text), chips, same))
    size = len(text.encode("utf-8", "surrogatepass"))
    if len(blocks) <= HEAD + TAIL and sum(map(_rows, blocks)) <= HEAD_ROWS + TAIL_ROWS:
        return Display(blocks, (), (), len(lines), size)
    head = _fitting(blocks[:HEAD], HEAD_ROWS)
    tail = len(blocks) - _fitting(blocks[head:][: -TAIL - 1 : -1], TAIL_ROWS)
    parts = (blocks[:head], blocks[head:tail], blocks[tail:])
    return Display(*parts, len(lines), size, *_common(lines))


def _common(lines: Sequence[str]) -> tuple[int, str]:
    """Find the most frequent line and how often it occurs, if it is most of the
    text."""
    said = Counter(line.strip() for line in lines if not _is_blank(line))
    for line, count in said.most_common(1):
        if count > 1 and count > len(lines) / 2:
            return count, line
    return 0, ""


def _fitting(blocks: Sequence[Block], room: int) -> int:
    """Count how many of the blocks fit into `room` rows; at least one does."""
    sizes = accumulate(map(_rows, blocks))
    return max(sum(size <= room for size in sizes), min(len(blocks), 1))


def _rows(block: Block) -> int:
    if isinstance(block, Blanks):
        return 1
    return max(1, -(-_size(block.segments) // ROW))


def warnings(texts: Iterable[str]) -> list[str]:
    """List what a fact tag must say about these texts."""
    segments = [one for text in texts for one in tokens(text, plain="\n\r\t")]
    hidden = any(segment.kind == "hidden" for segment in segments)
    notes = {segment.note for segment in segments} - {""}
    said = {
        "Hidden characters": hidden,
        "Mixed alphabets": bool(notes - {unicode.DECOMPOSED}),
        "Letters in an unusual encoding": unicode.DECOMPOSED in notes,
    }
    return [warning for warning, holds in said.items() if holds]


def _bare(found: Iterable[Segment], chips: bool, same: Same = NOTHING) -> list[Segment]:
    if chips:
        return [_named(one, same) if one.kind == "redacted" else one for one in found]
    return [replace(s, kind="plain") if s.kind == "redacted" else s for s in found]


def _named(chip: Segment, same: Same) -> Segment:
    """Replace the tag of a redacted value with the name of what it is equal to."""
    if not (name := same.get(chip.text)):
        return chip
    return Segment("same", chip.text.rpartition("#")[0] + "same as ", equals=name)


def _blocks(
    lines: Sequence[str], words: unicode.Words, chips: bool, same: Same
) -> Iterator[Block]:
    speaking = addressed.speaking(lines)
    for blank, group in groupby(enumerate(lines), key=lambda one: _is_blank(one[1])):
        run = list(group)
        if blank and len(run) >= BLANK_LINES:
            yield Blanks(len(run), any(line.strip(" \t") for _, line in run))
            continue
        for number, line in run:
            segments = _bare(_segments(line, words, "\t"), chips, same)
            segments += filter(None, map(_read, _REVERSED.findall(line)))
            yield from _line(segments, number in speaking)


def _read(text: str) -> Segment | None:
    """Build the reading of a run whose direction is obeyed; None for a short one."""
    letters = "".join(char for char in text if not unicode.is_hidden(char))
    if sum(map(str.isalnum, letters)) < FEWEST_REVERSED:
        return None
    reads = letters[::-1].strip()
    return Segment("read", reads if len(reads) <= CHIP else f"{reads[:CHIP]}…")


def _line(segments: Iterable[Segment], speaks: bool) -> Iterator[Line]:
    for number, piece in enumerate(_pieces(segments)):
        yield Line(tuple(piece), speaks, goes_on=number > 0)


def _pieces(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    """Split segments into lines of about `LINE_WIDTH` printed characters.

    A token is longer than what it names, so a line of hidden characters would otherwise
    fill the page.
    """
    piece: list[Segment] = []
    room = WIDTH
    for segment in _narrow(segments):
        if room < len(segment.text) and piece:
            yield piece
            piece, room = [], WIDTH
        piece.append(segment)
        room -= len(segment.text + segment.note + segment.equals)
    yield piece


def _narrow(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Split segments that are longer than a line, between words if possible."""
    for segment in segments:
        text = segment.text
        while len(text) > WIDTH:
            end = text.rfind(" ", WIDTH - WORD, WIDTH) + 1 or WIDTH
            yield replace(segment, text=text[:end])
            text = text[end:]
        yield replace(segment, text=text)


def _is_blank(line: str) -> bool:
    return all(char in " \t" or unicode.is_hidden(char) for char in line)


def _segments(text: str, words: unicode.Words, plain: str) -> Iterator[Segment]:
    for hidden, run in unicode.spans(text, plain):
        if hidden:
            yield Segment("hidden", unicode.name(run))
        else:
            yield from _shown(run, words)


def _shown(run: str, words: unicode.Words) -> Iterator[Segment]:
    for piece in _PIECES.split(run):
        if not piece:
            continue
        if _REDACTED.fullmatch(piece):
            yield Segment("redacted", piece)
        elif _PADDING.fullmatch(piece):
            yield Segment("hidden", unicode.name(piece))
        else:
            yield from _marked(piece, words)


def _marked(piece: str, words: unicode.Words) -> Iterator[Segment]:
    for part, note in words.mark(piece):
        if part:
            yield Segment("mixed" if note else "plain", part, note)
