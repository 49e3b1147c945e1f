"""Finds the values of arguments that a tool's policy names, and names of people,
however they are spaced, split, joined or capitalised in a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import permutations
from typing import Any, NamedTuple

from reviews.presenters import unicode

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
    values = {
        value.letters: value
        for value in _walk_arguments(args, wanted, "", "", inside=False)
    }
    return tuple(sorted(values.values(), key=lambda value: -len(value.letters)))


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
            kind_within = spans.classify_name(str(name)) or kind
            yield from _walk_arguments(item, wanted, within, kind_within, inside=inside)
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
    """One character as values are compared: without an accent, and in the letter that
    it looks like, if that is one character."""
    if char.isascii():
        return char.lower()
    folded = _fold_name_char(char)
    return folded if len(folded) == 1 else char


def _is_match(view: str, start: int, end: int, value: ConcealedValue) -> bool:
    length = len(value.letters)
    if length < MIN_LOOSE_LENGTH and end - start != length:
        return False
    return length >= MIN_INFIX_LENGTH or not (
        _is_within_word(view, start) or _is_within_word(view, end)
    )


def _is_within_word(view: str, place: int) -> bool:
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


# Letters that stand for others although Unicode does not decompose them.
_PAIRS = {"þ": "th", "Þ": "th", "æ": "ae", "œ": "oe"}
_LETTERS = str.maketrans("øłđð\u0131", "olddi") | str.maketrans(_PAIRS)
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})
_SPELT_BREAK = re.compile(r"\\[nrt]")
_PIECES = re.compile(r"[^\W\d_]+")
# What may stand inside a word of a name: a hyphen, or a line break.
_WORD_GAP = re.compile(r"-|-?\s*\n\s*")
_INITIAL_BEFORE = re.compile(r"(?:^|[^a-z])(([a-z])[. _-]{1,3})$")
_INITIAL_AFTER = re.compile(r"[, ._-]{1,3}([a-z])(?=[^a-z]|$)\.?")
MOST_NAME_WORDS = 6  # a longer text is no name


class _Form(NamedTuple):
    """One way to write a name: where its words begin in the letters, and the first
    letters of its other words."""

    joints: frozenset[int]
    initials: frozenset[str]


class PeopleFinder:
    """Finds people's names in texts: whole, each word alone, in either order, joined
    (`sue_lindqvist`, `SueLindqvist`, `slindqvist`), with initials, and split. Case,
    accents, invisible characters and lookalike letters make no difference. A word of
    `never`, such as the name of a field, is no name by itself."""

    def __init__(self, names: Iterable[str], never: Collection[str] = ()) -> None:
        self._never = frozenset(_fold_letters(word) for word in never)
        self._forms: dict[str, _Form] = {}
        for name in dict.fromkeys(names):
            for spelling in {name, name.casefold().translate(_UMLAUTS)}:
                self._add_name(spelling)

    def _add_name(self, name: str) -> None:
        given = [_fold_letters(word) for word in name.split()]
        parts = [word for word in given if word]
        if not 0 < len(parts) <= MOST_NAME_WORDS or any(map(str.isdigit, name)):
            return
        pieces = [_fold_letters(piece) for piece in _PIECES.findall(name)]
        for word in {*parts, *pieces}:
            if len(word) >= MIN_LENGTH and word not in self._never:
                others = frozenset(part[0] for part in parts if part != word)
                self._add_form([word], others)
        if len(parts) > 1:
            pairs = {tuple(parts), (parts[0], parts[-1])}
            for pair in pairs | {tuple(reversed(pair)) for pair in pairs}:
                self._add_form(pair, frozenset())
            for first, other in permutations((parts[0], parts[-1])):
                if len(other) >= MIN_LENGTH:
                    self._add_form([first[0] + other], frozenset())
                    self._add_form([other + first[0]], frozenset())

    def _add_form(self, words: Iterable[str], initials: frozenset[str]) -> None:
        letters, joints = "", set()
        for word in words:
            joints.add(len(letters))
            letters += word
        if len(letters) < MIN_LENGTH or letters in self._never:
            return
        known = self._forms.get(letters, _Form(frozenset(), frozenset()))
        self._forms[letters] = _Form(known.joints | joints, known.initials | initials)

    @cached_property
    def _lengths(self) -> list[int]:
        return sorted({len(letters) for letters in self._forms}, reverse=True)

    def hide(self, text: str, replacement: str) -> str:
        """The text with `said` in place of each name."""
        parts, done = [], 0
        for start, end in self.find(text):
            parts += [text[done:start], replacement]
            done = end
        return "".join([*parts, text[done:]])

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """The places of names in a text, in order, without overlaps."""
        if not self._forms:
            return
        seen = _FoldedLetters(text)
        at = 0
        while at < len(seen.letters):
            place = self._find_at(seen, at)
            if place is None:
                at += 1
                continue
            start, end, at = place
            yield start, end

    def _find_at(self, seen: _FoldedLetters, at: int) -> tuple[int, int, int] | None:
        begins = seen.begins(at)
        for length in self._lengths:
            if not begins and length < MIN_INFIX_LENGTH:
                return None
            form = self._forms.get(seen.letters[at : at + length])
            if form is None or at + length > len(seen.letters):
                continue
            end = seen.find_end(at + length, loose=length >= MIN_INFIX_LENGTH)
            if end and seen.hangs_together(at, at + length, form.joints):
                return (*seen.widen(at, end, form.initials), end)
        return None


class _FoldedLetters:
    def __init__(self, text: str) -> None:
        self.text = _SPELT_BREAK.sub(" \n", text)
        folded: list[str] = []
        self.origins: list[int] = []
        for place, char in enumerate(self.text):
            for letter in _fold_name_char(char):
                folded.append(letter)
                self.origins.append(place)
        self.folded = "".join(folded)
        self.places = [at for at, letter in enumerate(folded) if letter.isalpha()]
        self.letters = "".join(folded[at] for at in self.places)

    def begins(self, at: int) -> bool:
        """Whether a word begins at this letter."""
        if at == 0 or self.places[at] - self.places[at - 1] > 1:
            return True
        before, here = self._char(at - 1), self._char(at)
        if not here.isupper():
            return False
        after = self._char(at + 1) if at + 1 < len(self.letters) else ""
        return before.islower() or after.islower()

    def find_end(self, end: int, *, loose: bool) -> int:
        """The end of the word that ends before this letter, or with an `s` of its own
        after it; 0 if the word goes on."""
        if end >= len(self.letters) or self.begins(end):
            return end
        plural = self.letters[end] == "s"
        if plural and (end + 1 >= len(self.letters) or self.begins(end + 1)):
            return end + 1
        return end if loose else 0

    def hangs_together(self, at: int, end: int, joints: frozenset[int]) -> bool:
        """Whether only what splits a word is between these letters, or the same between
        all of them, as in `B R A N D T`."""
        gaps = []
        for index in range(at + 1, end):
            gap = self.folded[self.places[index - 1] + 1 : self.places[index]]
            at_joint = index - at in joints and len(gap) <= 4
            if not (not gap or at_joint or _WORD_GAP.fullmatch(gap)):
                gaps.append(gap)
        every = len(gaps) == end - at - 1 - len(joints - {0})
        return not gaps or (every and len(set(gaps)) == 1 and len(gaps[0]) == 1)

    def widen(self, at: int, end: int, initials: frozenset[str]) -> tuple[int, int]:
        """The place of these letters in the text, with an initial beside them."""
        first, last = self.places[at], self.places[end - 1] + 1
        before = _INITIAL_BEFORE.search(self.folded[max(first - 5, 0) : first])
        after = _INITIAL_AFTER.match(self.folded, last)
        if before and before[2] in initials:
            first -= len(before[1])
        elif after and after[1] in initials:
            last = after.end()
        return self.origins[first], self.origins[last - 1] + 1

    def _char(self, at: int) -> str:
        return self.text[self.origins[self.places[at]]]


def _fold_letters(text: str) -> str:
    folded = "".join(map(_fold_name_char, text))
    return "".join(char for char in folded if char.isalpha())


@lru_cache(maxsize=8192)
def _fold_name_char(char: str) -> str:
    """One character as the names' letters are compared: without accents, in the Latin
    letter that it looks like, in lower case. Invisible characters are empty."""
    if char.isascii():
        return char.lower()
    folded = fold_text(unicodedata.normalize("NFKD", char)).text
    folded = folded.translate(_LETTERS)  # first: a thorn looks like a "p"
    plain = unicode.fold_lookalikes(folded).translate(_LETTERS)
    return "".join(c for c in plain if not unicodedata.category(c).startswith("M"))
