"""Parses the effect sentence of a tool. Pure.

`{recipient}` is an argument that every call has. `{recipient?}` is optional: where a
call has it, the sentence says `with recipient ...`, with its label. The text in
`[ to {recipient?}]` appears only when all optional arguments in it are present. `{...}`
stands for every optional argument that is not named elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

REST = "..."
_SEGMENT = re.compile(r"\[([^\[\]]*\{[^{}]*\?\}[^\[\]]*)\]")
_CHIP = re.compile(r"\{([^{}]*)\}")
# Words that need something after them: without the argument, `to {recipient?}` would
# leave a lone `to`.
_WAITS = re.compile(r"\b(to|for|from|of|at|on|in|by|with|as|and|into|onto)\s*$", re.I)


class Chip(NamedTuple):
    """An argument or fact in a sentence, with `own_words` shown with its label."""

    name: str
    optional: bool = False
    own_words: bool = False


class Segment(NamedTuple):
    """The text of a pair of brackets, shown where all arguments in `needs` are."""

    pieces: tuple[str | Chip, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        """The optional arguments in this segment."""
        return tuple(chip.name for chip in list_chips(self.pieces) if chip.optional)


class Quote(NamedTuple):
    """Words of the agent in a sentence: untrusted."""

    text: str


Piece = str | Chip | Segment | Quote


def parse_sentence(pattern: str, optional: Collection[str] = ()) -> tuple[Piece, ...]:
    """Parse a sentence. `optional` are the arguments that `{...}` can stand for."""
    pieces: list[Piece] = []
    at = 0
    for match in _SEGMENT.finditer(pattern):
        pieces += _split_chips(pattern[at : match.start()], own_words=True)
        pieces.append(Segment(tuple(_split_chips(match[1], own_words=False))))
        at = match.end()
    pieces += _split_chips(pattern[at:], own_words=True)
    return tuple(_expand_rest(pieces, optional))


def list_chips(pieces: Collection[Piece]) -> Iterator[Chip]:
    """Every chip of the sentence, in order."""
    for piece in pieces:
        if isinstance(piece, Segment):
            yield from (chip for chip in piece.pieces if isinstance(chip, Chip))
        elif isinstance(piece, Chip):
            yield piece


def describe_problem(pattern: str) -> str:
    """The error in the braces and brackets of a sentence; empty when there is none."""
    left = _CHIP.sub("", pattern)
    if "{" in left or "}" in left:
        return "a brace is unbalanced; write {argument}"
    waits = False
    for piece in parse_sentence(pattern, (REST,)):
        if isinstance(piece, str):
            waits = bool(_WAITS.search(piece))
        elif isinstance(piece, Chip) and piece.own_words and waits:
            return (
                f"{piece.name} may be absent, which leaves the word before it alone:"
                f" put both in brackets, such as [ to {{{piece.name}?}}]"
            )
        else:
            waits = False
    return ""


def _split_chips(text: str, *, own_words: bool) -> Iterator[str | Chip]:
    for index, piece in enumerate(_CHIP.split(text)):
        if index % 2:
            optional = piece.endswith("?") or piece == REST
            yield Chip(piece.removesuffix("?"), optional, own_words and optional)
        elif piece:
            yield piece


def _expand_rest(pieces: list[Piece], optional: Collection[str]) -> Iterator[Piece]:
    named = {chip.name for chip in list_chips(pieces)}
    rest = [name for name in optional if name not in named]
    for piece in pieces:
        if isinstance(piece, Chip) and piece.name == REST:
            yield from (Chip(name, True, True) for name in rest)
        else:
            yield piece
