"""Finds the values of arguments that a tool's policy names, however they are spaced,
split or capitalised in a text (gate.md 4, "per-tool fields too")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from . import spans
from .normalise import MASK, fold_text
from .spans import Span

MIN_LENGTH = 3  # letters and digits; a shorter value would match everywhere
MIN_LOOSE_LENGTH = 5  # from this length, characters between the letters are ignored
MIN_INFIX_LENGTH = 8  # from this length, a match inside a word counts
MIN_LINE_LENGTH = 16  # from this length, a line of a longer value is searched for too


class ConcealedValue(NamedTuple):
    """One value to find: its lower-case letters and digits, the other characters before
    and after them, its kind and its normal form."""

    letters: str
    before: str
    after: str
    kind: str
    value: str


def collect_concealed(
    args: Mapping[str, Any], names: Iterable[str]
) -> tuple[ConcealedValue, ...]:
    """The values of the named arguments (dotted paths without indices), including all
    nested values, longest first."""
    wanted = frozenset(names)
    if not wanted:
        return ()
    found = {
        one.letters: one for one in _walk_arguments(args, wanted, "", "", inside=False)
    }
    return tuple(sorted(found.values(), key=lambda one: -len(one.letters)))


def find_concealed(view: str, values: Iterable[ConcealedValue]) -> Iterator[Span]:
    """Every occurrence of every value in a folded text; occurrences may overlap."""
    values = list(values)
    if not values:
        return
    places = [at for at, char in enumerate(view) if char.isalnum() or char == MASK]
    letters = "".join(_lowercase_char(view[at]) for at in places)
    for value in values:
        at = letters.find(value.letters)
        while at >= 0:
            start, end = places[at], places[at + len(value.letters) - 1] + 1
            if _is_match(view, start, end, value):
                yield _widen_span(view, start, end, value)
            at = letters.find(value.letters, at + 1)


def _walk_arguments(
    value: Any, wanted: frozenset[str], path: str, kind: str, *, inside: bool
) -> Iterator[ConcealedValue]:
    inside = inside or path in wanted
    if isinstance(value, Mapping):
        for name, item in value.items():
            within = f"{path}.{name}" if path else str(name)
            said = spans.classify_name(str(name)) or kind
            yield from _walk_arguments(item, wanted, within, said, inside=inside)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _walk_arguments(item, wanted, path, kind, inside=inside)
    elif inside and value is not None and not isinstance(value, bool):
        yield from _build_concealed(str(value), kind or spans.SECRET)


def _build_concealed(text: str, kind: str) -> Iterator[ConcealedValue]:
    lines = [line for line in text.splitlines() if len(line) >= MIN_LINE_LENGTH]
    for piece in [text, *lines]:
        folded = fold_text(piece).text.strip()
        letters = "".join(_lowercase_char(char) for char in folded if char.isalnum())
        if len(letters) >= MIN_LENGTH:
            ends = [at for at, char in enumerate(folded) if char.isalnum()]
            before, after = folded[: ends[0]], folded[ends[-1] + 1 :]
            value = spans.normalise_value(kind, folded)
            yield ConcealedValue(letters, before, after, kind, value)


def _lowercase_char(char: str) -> str:
    lower = char.lower()
    return lower if len(lower) == 1 else char


def _is_match(view: str, start: int, end: int, value: ConcealedValue) -> bool:
    length = len(value.letters)
    if length < MIN_LOOSE_LENGTH and end - start != length:
        return False
    return length >= MIN_INFIX_LENGTH or not (
        _is_within_word(view, start) or _is_within_word(view, end)
    )


def _is_within_word(view: str, place: int) -> bool:
    """Whether a word or a number continues across this position."""
    if not 0 < place < len(view):
        return False
    left, right = view[place - 1], view[place]
    return (left.isdigit() and right.isdigit()) or (left.isalpha() and right.isalpha())


def _widen_span(view: str, start: int, end: int, value: ConcealedValue) -> Span:
    """The span, extended by the value's own surrounding characters if they match."""
    if value.before and view.endswith(value.before, 0, start):
        start -= len(value.before)
    if value.after and view.startswith(value.after, end):
        end += len(value.after)
    return Span(start, end, value.kind, value.value)
