"""The effect sentence of a tool: text, arguments, and arguments that may be absent.

`{recipient}` is an argument that every call has. A call may leave out `{recipient?}`:
when it is there it says `with recipient ...`, after its label. `[ to {recipient?}]`
says what is in brackets only when every argument marked so in it is there. `{...}`
stands for every argument that a call may leave out and that is not named elsewhere.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

REST = "..."
_SEGMENT = re.compile(r"\[([^\[\]]*\{[^{}]*\?\}[^\[\]]*)\]")
_CHIP = re.compile(r"\{([^{}]*)\}")
# Words after which something must come: `to {recipient?}` would say `to` and nothing.
_WAITS = re.compile(r"\b(to|for|from|of|at|on|in|by|with|as|and|into|onto)\s*$", re.I)


class Chip(NamedTuple):
    """An argument in a sentence. `own_words`: it brings its label along."""

    name: str
    optional: bool = False
    own_words: bool = False


class Segment(NamedTuple):
    """What is said only when every argument in it is there."""

    pieces: tuple[str | Chip, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        """The arguments that may be absent."""
        return tuple(
            one.name for one in self.pieces if isinstance(one, Chip) and one.optional
        )


Piece = str | Chip | Segment


def read(pattern: str, optional: Collection[str] = ()) -> tuple[Piece, ...]:
    """The pieces of a sentence; `{...}` stands for the `optional` arguments."""
    pieces: list[Piece] = []
    at = 0
    for match in _SEGMENT.finditer(pattern):
        pieces += _flat(pattern[at : match.start()], own_words=True)
        pieces.append(Segment(tuple(_flat(match[1], own_words=False))))
        at = match.end()
    pieces += _flat(pattern[at:], own_words=True)
    return tuple(_with_rest(pieces, optional))


def chips(pieces: Collection[Piece]) -> Iterator[Chip]:
    """Every argument that the sentence names, in order."""
    for piece in pieces:
        if isinstance(piece, Segment):
            yield from (one for one in piece.pieces if isinstance(one, Chip))
        elif isinstance(piece, Chip):
            yield piece


def problem(pattern: str) -> str:
    """What is wrong with the marks of a sentence; empty when nothing is."""
    left = _CHIP.sub("", pattern)
    if "{" in left or "}" in left:
        return "a brace is open; write {argument}"
    waits = False
    for piece in read(pattern, (REST,)):
        if isinstance(piece, str):
            waits = bool(_WAITS.search(piece))
        elif isinstance(piece, Chip) and piece.own_words and waits:
            return (
                f"{piece.name} may be absent, and then the word before it stands alone:"
                f" put both in brackets, such as [ to {{{piece.name}?}}]"
            )
        else:
            waits = False
    return ""


def _flat(text: str, *, own_words: bool) -> Iterator[str | Chip]:
    for index, piece in enumerate(_CHIP.split(text)):
        if index % 2:
            optional = piece.endswith("?") or piece == REST
            yield Chip(piece.removesuffix("?"), optional, own_words and optional)
        elif piece:
            yield piece


def _with_rest(pieces: list[Piece], optional: Collection[str]) -> Iterator[Piece]:
    named = {chip.name for chip in chips(pieces)}
    rest = [name for name in optional if name not in named]
    for piece in pieces:
        if isinstance(piece, Chip) and piece.name == REST:
            yield from (Chip(name, True, True) for name in rest)
        else:
            yield piece
