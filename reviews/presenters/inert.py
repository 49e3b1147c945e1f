"""Untrusted text as inert data: what a template may print, and nothing else. Pure.

Every character is there or named: nothing is removed, hidden, joined or obeyed. The
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

HEAD, TAIL = 12, 4  # lines that are always in sight
HEAD_ROWS, TAIL_ROWS = 24, 8  # and how many rows of a page they may take
ROW = 84  # letters of a row at its widest
CHIP = 60  # characters of a chip
WHOLE = 160  # and of a value of several parts, which stand whole
# A line this long is shown as several, so that one line cannot push the end away.
WIDTH = 400
WORD = 60  # letters that a word has at most
BLANK_LINES = 3  # from this many on they are counted, not shown

# What redaction leaves in the place of a value (ux.md 3.6).
_REDACTED = re.compile(r"\[[A-Za-z][A-Za-z -]{0,30} · redacted · #[0-9a-f]{4}\]")
# What a program that obeys the characters shows from right to left.
_REVERSED = re.compile("\u202e([^\u202c-\u202e\n]*)")
FEWEST_REVERSED = 3  # letters and digits that are worth being read out
_PADDING = re.compile(f" {{{unicode.MOST_SPACES + 1},}}")
_PIECES = re.compile(f"({_REDACTED.pattern}|{_PADDING.pattern})")

Kind = Literal["plain", "hidden", "mixed", "redacted", "same", "cut", "read"]
# Chips of redaction, each with what stands in the clear for the same value.
Same = Mapping[str, str]
NOTHING: Same = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of one kind. `text` is what to print: for `hidden` the names of the code
    points, for `cut` how much is left out, for `read` how other programs show what
    stands reversed; `note` says why a word is marked, and
    `equals` what a redacted value is equal to; `text` ends in front of it."""

    kind: Kind
    text: str
    note: str = ""
    equals: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or with `goes_on` the next part of one too long."""

    segments: tuple[Segment, ...]
    speaks: bool = False  # to the reviewer
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Blanks:
    """A run of blank lines, counted; `hidden` when they were not quite blank."""

    count: int
    hidden: bool = False


Block = Line | Blanks


@dataclass(frozen=True, slots=True)
class Display:
    """A whole text: what is in sight, what opens on demand, and what it is made of."""

    head: tuple[Block, ...]
    folded: tuple[Block, ...]
    tail: tuple[Block, ...]
    lines: int
    size: int  # bytes of UTF-8
    same: int = 0  # lines that say the same, where they are most of a long text
    common: str = ""  # what they say

    @property
    def speaks(self) -> bool:
        """Whether what opens on demand holds a line to the reviewer."""
        return any(isinstance(one, Line) and one.speaks for one in self.folded)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.head + self.folded + self.tail


def tokens(text: str, plain: str = "", *, chips: bool = True) -> list[Segment]:
    """The text in segments for one line; line breaks and tabs are tokens too, unless
    named in `plain`.

    Without `chips` what looks like a redaction is text: nothing was taken out of it.
    """
    return _bare(_segments(text, unicode.Words(text), plain), chips)


def chip(text: str, limit: int = CHIP) -> list[Segment]:
    """At most `limit` characters, head and tail, with a count of what is between.

    Fewer when tokens would make it long: a chip stands inside a sentence.
    """
    found = _clipped(text, limit)
    return chip(text, limit // 2) if _size(found) > 2 * CHIP else found


def chips(parts: Sequence[str]) -> list[list[Segment]]:
    """The parts of one value, each whole; of a long one those between the first and the
    last are counted. Only a part that is long by itself is cut inside."""
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
    """The text as blocks: the first 12 and the last 4 always in sight. `same` names
    what a redacted value is equal to."""
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
    """How many lines say the same, and what, where they are most of the text."""
    said = Counter(line.strip() for line in lines if not _is_blank(line))
    for line, count in said.most_common(1):
        if count > 1 and count > len(lines) / 2:
            return count, line
    return 0, ""


def _fitting(blocks: Sequence[Block], room: int) -> int:
    """How many of them fit into so many rows; at least the first does."""
    sizes = accumulate(map(_rows, blocks))
    return max(sum(size <= room for size in sizes), min(len(blocks), 1))


def _rows(block: Block) -> int:
    if isinstance(block, Blanks):
        return 1
    return max(1, -(-_size(block.segments) // ROW))


def warnings(texts: Iterable[str]) -> list[str]:
    """What a fact tag must say about these texts, if anything."""
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
    """A redacted value with what it is equal to in the place of its tag."""
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
    """What a run reads like where its direction is obeyed; None for a short one."""
    letters = "".join(char for char in text if not unicode.is_hidden(char))
    if sum(map(str.isalnum, letters)) < FEWEST_REVERSED:
        return None
    reads = letters[::-1].strip()
    return Segment("read", reads if len(reads) <= CHIP else f"{reads[:CHIP]}…")


def _line(segments: Iterable[Segment], speaks: bool) -> Iterator[Line]:
    for number, piece in enumerate(_pieces(segments)):
        yield Line(tuple(piece), speaks, goes_on=number > 0)


def _pieces(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    """Parts of about `WIDTH` printed characters: a token is longer than what it names,
    so a line of hidden characters would otherwise fill the page."""
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
    """No segment longer than a line, and no word cut that could stand whole."""
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
