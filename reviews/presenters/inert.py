"""Untrusted text as inert data, which is all that a template may print of it. Pure.

Every character is shown or named: nothing is removed, hidden, joined or obeyed. The
stored bytes are untouched.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby
from types import MappingProxyType
from typing import Literal

from . import addressed, unicode

HEAD, TAIL = 12, 4  # blocks that are always in sight, if they fit
HEAD_ROWS, TAIL_ROWS = 24, 8  # rows of a page that they may take
ROW_WIDTH = 84  # characters of a row at its widest
CHIP_LENGTH = 60  # characters of a chip
WHOLE_LENGTH = 160  # characters of a value of several parts, shown whole
# A longer line is split, so that it cannot push the end of the text out of sight.
LINE_WIDTH = 400
WORD_LENGTH = 60  # characters; a longer word may be split
BLANK_LINES = 3  # from this number on they are counted, not shown

# What redaction puts in the place of a value.
_REDACTED = re.compile(r"\[[A-Za-z][A-Za-z -]{0,30} · redacted · #[0-9a-f]{4}\]")
# Text that programs which obey these characters show from right to left.
_REVERSED = re.compile("\u202e([^\u202c-\u202e\n]*)")
FEWEST_REVERSED = 3  # letters and digits; no reading of a shorter run is shown
_PADDING = re.compile(f" {{{unicode.MOST_SPACES + 1},}}")
_PIECES = re.compile(f"({_REDACTED.pattern}|{_PADDING.pattern})")

SegmentKind = Literal["plain", "hidden", "mixed", "redacted", "same", "cut", "read"]
# Redaction chips, each with the label of the equal value that the page shows in clear.
EqualValues = Mapping[str, str]
NO_EQUAL_VALUES: EqualValues = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TextSegment:
    """A run of characters of one kind. `text` is what to print: for `hidden` the names
    of the code points, for `cut` how much is left out, for `read` how other programs
    show reversed text. `note` says why a word is marked. `equals` names what a redacted
    value is equal to, and is printed after `text`."""

    kind: SegmentKind
    text: str
    note: str = ""
    equals: str = ""


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of a text, or with `goes_on` the next part of a line that is too
    long."""

    segments: tuple[TextSegment, ...]
    speaks: bool = False  # whether it addresses the reviewer
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class BlankLines:
    """A run of blank lines, counted; `hidden` if they contain invisible characters."""

    count: int
    hidden: bool = False


TextBlock = TextLine | BlankLines


@dataclass(frozen=True, slots=True)
class TextDisplay:
    """A whole text: what is in sight, what opens on demand, and its measures."""

    head: tuple[TextBlock, ...]
    folded: tuple[TextBlock, ...]
    tail: tuple[TextBlock, ...]
    lines: int
    size: int  # bytes of UTF-8
    same: int = 0  # number of equal lines, if they are most of a long text
    common: str = ""  # their text

    @property
    def speaks(self) -> bool:
        """Whether a folded line addresses the reviewer."""
        return any(
            isinstance(block, TextLine) and block.speaks for block in self.folded
        )

    @property
    def blocks(self) -> tuple[TextBlock, ...]:
        return self.head + self.folded + self.tail


def build_line_segments(
    text: str, plain: str = "", *, chips: bool = True
) -> list[TextSegment]:
    """Build the segments of a text on one line. Line breaks and tabs are tokens too,
    unless `plain` contains them. Without `chips`, text that looks like a redaction is
    plain text: nothing was taken out of it."""
    segments = _split_text(text, unicode.WordMarker(text), plain)
    return _resolve_redactions(segments, chips)


def format_line(text: str) -> str:
    """Format a text for where there is no markup, such as a file or a terminal: on one
    line, with its hidden characters named."""
    return "".join(map(_format_segment, build_line_segments(text)))


def _format_segment(segment: TextSegment) -> str:
    if segment.kind == "hidden":
        return f"\u27e6{segment.text}\u27e7"
    return (
        f"{segment.text} \u27e6{segment.note}\u27e7" if segment.note else segment.text
    )


def build_chip(text: str, limit: int = CHIP_LENGTH) -> list[TextSegment]:
    """Build a chip of at most `limit` characters: head, count of what is left out,
    tail. It is part of a sentence, so the limit is halved while tokens make it too
    long."""
    segments = _clip_text(text, limit)
    long = _count_characters(segments) > 2 * CHIP_LENGTH
    return build_chip(text, limit // 2) if long else segments


def build_part_chips(parts: Sequence[str]) -> list[list[TextSegment]]:
    """Build the chips of a value of several parts, each part whole. Of a long value,
    the parts between the first ones and the last are counted. Only a part that is long
    by itself is cut inside."""
    shown = [_build_whole_part(text) for text in parts]
    sizes = [_count_characters(segments) + len(", ") for segments in shown]
    if sum(sizes) <= WHOLE_LENGTH:
        return shown
    room = WHOLE_LENGTH - sizes[-1]
    head = max(sum(size <= room for size in accumulate(sizes[:-1])), 1)
    left_out = len(shown) - head - 1
    cut = [[TextSegment("cut", f"{left_out} more")]] if left_out else []
    return [*shown[:head], *cut, shown[-1]]


def _build_whole_part(text: str) -> list[TextSegment]:
    if len(text) <= WHOLE_LENGTH:
        segments = build_line_segments(text, chips=False)
        if _count_characters(segments) <= WHOLE_LENGTH:
            return segments
    return build_chip(text)


def _count_characters(segments: Iterable[TextSegment]) -> int:
    return sum(len(segment.text) for segment in segments)


def _clip_text(text: str, limit: int) -> list[TextSegment]:
    if len(text) <= limit:
        return build_line_segments(text, chips=False)
    words, tail = unicode.WordMarker(text), limit // 4
    segments = [
        *_split_text(text[: limit - tail], words, ""),
        TextSegment("cut", f"{len(text) - limit} more"),
        *_split_text(text[len(text) - tail :], words, ""),
    ]
    return _resolve_redactions(segments, chips=False)


def build_display(
    text: str,
    *,
    chips: bool = True,
    same: EqualValues = NO_EQUAL_VALUES,
    outgoing: bool = False,
) -> TextDisplay:
    """Build the blocks of a whole text: the first 12 and the last 4 are in sight if
    they fit. `same` names what a redacted value is equal to. An `outgoing` text is for
    a reader to whom the effect sends it."""
    lines = text.replace("\r\n", "\n").split("\n")
    speaking = addressed.find_addressed_lines(lines, outgoing=outgoing)
    words = unicode.WordMarker(text)
    blocks = tuple(_build_blocks(lines, words, chips, same, speaking))
    size = len(text.encode("utf-8", "surrogatepass"))
    rows = sum(map(_count_rows, blocks))
    if len(blocks) <= HEAD + TAIL and rows <= HEAD_ROWS + TAIL_ROWS:
        return TextDisplay(blocks, (), (), len(lines), size)
    head = _count_fitting_blocks(blocks[:HEAD], HEAD_ROWS)
    last = blocks[head:][: -TAIL - 1 : -1]
    tail = len(blocks) - _count_fitting_blocks(last, TAIL_ROWS)
    parts = (blocks[:head], blocks[head:tail], blocks[tail:])
    return TextDisplay(*parts, len(lines), size, *_find_common_line(lines))


def _find_common_line(lines: Sequence[str]) -> tuple[int, str]:
    """Find the most frequent line and how often it occurs, if it is most of the
    text."""
    counts = Counter(line.strip() for line in lines if not _is_blank(line))
    for line, count in counts.most_common(1):
        if count > 1 and count > len(lines) / 2:
            return count, line
    return 0, ""


def _count_fitting_blocks(blocks: Sequence[TextBlock], room: int) -> int:
    """Count how many of the blocks fit into `room` rows; at least one does."""
    sizes = accumulate(map(_count_rows, blocks))
    return max(sum(size <= room for size in sizes), min(len(blocks), 1))


def _count_rows(block: TextBlock) -> int:
    if isinstance(block, BlankLines):
        return 1
    return max(1, -(-_count_characters(block.segments) // ROW_WIDTH))


def list_text_warnings(texts: Iterable[str]) -> list[str]:
    """List what a fact tag must say about these texts."""
    lines = (build_line_segments(text, plain="\n\r\t") for text in texts)
    segments = list(chain.from_iterable(lines))
    hidden = any(segment.kind == "hidden" for segment in segments)
    notes = {segment.note for segment in segments} - {""}
    warnings = {
        "Hidden characters": hidden,
        "Mixed alphabets": bool(notes - {unicode.DECOMPOSED}),
        "Letters in an unusual encoding": unicode.DECOMPOSED in notes,
    }
    return [warning for warning, holds in warnings.items() if holds]


def _resolve_redactions(
    segments: Iterable[TextSegment], chips: bool, same: EqualValues = NO_EQUAL_VALUES
) -> list[TextSegment]:
    return [
        _resolve_redaction(segment, chips, same)
        if segment.kind == "redacted"
        else segment
        for segment in segments
    ]


def _resolve_redaction(
    chip: TextSegment, chips: bool, same: EqualValues
) -> TextSegment:
    """Replace the tag of a redacted value with the name of what it is equal to."""
    if not chips:
        return replace(chip, kind="plain")
    if not (name := same.get(chip.text)):
        return chip
    return TextSegment("same", chip.text.rpartition("#")[0] + "same as ", equals=name)


def _build_blocks(
    lines: Sequence[str],
    words: unicode.WordMarker,
    chips: bool,
    same: EqualValues,
    speaking: Collection[int],
) -> Iterator[TextBlock]:
    for blank, group in groupby(
        enumerate(lines), key=lambda numbered: _is_blank(numbered[1])
    ):
        run = list(group)
        if blank and len(run) >= BLANK_LINES:
            yield BlankLines(len(run), any(line.strip(" \t") for _, line in run))
            continue
        for number, line in run:
            segments = _resolve_redactions(_split_text(line, words, "\t"), chips, same)
            readings = map(_build_reversed_reading, _REVERSED.findall(line))
            segments += filter(None, readings)
            for part, piece in enumerate(_wrap_segments(segments)):
                yield TextLine(tuple(piece), number in speaking, goes_on=part > 0)


def _build_reversed_reading(text: str) -> TextSegment | None:
    """Build the reading of a run whose direction is obeyed; None for a short one."""
    letters = "".join(char for char in text if not unicode.is_hidden(char))
    if sum(map(str.isalnum, letters)) < FEWEST_REVERSED:
        return None
    reads = letters[::-1].strip()
    short = reads if len(reads) <= CHIP_LENGTH else f"{reads[:CHIP_LENGTH]}…"
    return TextSegment("read", short)


def _wrap_segments(segments: Iterable[TextSegment]) -> Iterator[list[TextSegment]]:
    """Split segments into lines of about `LINE_WIDTH` printed characters: a token is
    longer than what it names, so a line of hidden ones would fill the page."""
    piece: list[TextSegment] = []
    room = LINE_WIDTH
    for segment in _split_long_segments(segments):
        if room < len(segment.text) and piece:
            yield piece
            piece, room = [], LINE_WIDTH
        piece.append(segment)
        room -= len(segment.text + segment.note + segment.equals)
    yield piece


def _split_long_segments(segments: Iterable[TextSegment]) -> Iterator[TextSegment]:
    for segment in segments:
        text = segment.text
        while len(text) > LINE_WIDTH:
            blank = text.rfind(" ", LINE_WIDTH - WORD_LENGTH, LINE_WIDTH)
            end = blank + 1 or LINE_WIDTH
            yield replace(segment, text=text[:end])
            text = text[end:]
        yield replace(segment, text=text)


def _is_blank(line: str) -> bool:
    return all(char in " \t" or unicode.is_hidden(char) for char in line)


def _split_text(
    text: str, words: unicode.WordMarker, plain: str
) -> Iterator[TextSegment]:
    for hidden, run in unicode.split_hidden_runs(text, plain):
        if hidden:
            yield TextSegment("hidden", unicode.format_hidden_run(run))
        else:
            yield from _split_visible_run(run, words)


def _split_visible_run(run: str, words: unicode.WordMarker) -> Iterator[TextSegment]:
    for piece in _PIECES.split(run):
        if not piece:
            continue
        if _REDACTED.fullmatch(piece):
            yield TextSegment("redacted", piece)
        elif _PADDING.fullmatch(piece):
            yield TextSegment("hidden", unicode.format_hidden_run(piece))
        else:
            for part, note in words.mark(piece):
                if part:
                    yield TextSegment("mixed" if note else "plain", part, note)
