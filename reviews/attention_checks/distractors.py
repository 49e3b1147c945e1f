"""Drafts of questions: the wordings, the right answer and plausible wrong ones. Pure.

A wrong answer is what a reader who did not look could believe. Random choices follow
from a seed, so everybody with the same seed gets the same question. The id of a draft
consists of kind and row, and its place is the page's name for it: neither contains a
word of an agent.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import chain, pairwise
from typing import TypeVar

from policies.schemas import Schema
from reviews.presenters.arguments import (
    build_enum_words,
    format_place,
    list_enum_values,
)
from reviews.presenters.shapes import (
    Cell,
    FieldChange,
    Presentation,
    SentencePart,
    TextPart,
    ValuePart,
    ValueRow,
)
from reviews.presenters.views import GroupView

Item = TypeVar("Item")


class SeededRandom:
    """Pseudo-random numbers that follow from a seed."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._thrown = 0

    def throw(self, sides: int) -> int:
        """A number from 0 up to, but not including, `sides`."""
        self._thrown += 1
        block = hashlib.sha256(self._seed + self._thrown.to_bytes(4)).digest()
        return int.from_bytes(block[:8]) % sides

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.throw(len(items))]

    def mixed(self, items: Sequence[Item]) -> list[Item]:
        """The items in random order."""
        left = list(items)
        return [left.pop(self.throw(len(left))) for _ in items]


_FIGURE = re.compile(r"([+-]?\d{1,20}(?:\.\d{1,20})?)((?: [a-z]{3})?)")
_DIGIT = re.compile(r"\d")
_LAST_WORD = re.compile(r"[A-Za-z]+(?=\W*$)")
_SNAKE_CASE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")
_DOTTED = re.compile(r"[\w-]+(\.[\w-]+)+")
# Families of words that can replace each other.
_FAMILIES = (
    ("get", "head", "post", "put", "patch", "delete"),
    ("production", "staging", "testing", "development"),
    ("prod", "stage", "test", "dev"),
    ("admin", "owner", "editor", "writer", "reader", "viewer"),
    ("grant", "revoke", "extend", "suspend"),
    ("create", "update", "delete", "restore"),
    ("public", "private", "internal", "unlisted"),
    ("root", "deploy", "admin", "nobody"),
    ("main", "develop", "release"),
    ("daily", "weekly", "monthly", "yearly"),
    ("usd", "eur", "gbp", "chf", "jpy"),
)
# Programs that a command could also run.
PROGRAMS = ("rm", "cp", "mv", "git", "npm", "curl", "tar", "python3", "psql", "rsync")


def is_same_answer(answer: str, other: str) -> bool:
    """Whether a reader may take two texts for the same answer: `5.0` and `5.00`, `Open`
    and `open`, one moment in two time zones."""
    return _normalise_answer(answer) == _normalise_answer(other)


def _normalise_answer(text: str) -> object:
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    figure = _FIGURE.fullmatch(plain.replace(",", ""))
    if figure is not None:
        return Decimal(figure[1]), figure[2]
    try:
        moment = datetime.fromisoformat(plain.upper())
    except ValueError:
        return plain
    return plain if moment.tzinfo is None else moment


def build_near_misses(text: str) -> Iterator[str]:
    """Yield similar texts of the same kind as wrong answers; some may repeat."""
    yield from _replace_last_word(text)
    yield from _change_digits(text)
    if "@" in text:
        yield text.replace("@", "@mail.", 1)
        yield text.replace("@", ".office@", 1)
    elif "/" in text:
        head, _, tail = text.rpartition("/")
        yield f"{head}/old/{tail}"
        yield f"{head}/test/{tail}"
    elif _DOTTED.fullmatch(text):
        first, _, rest = text.partition(".")
        yield f"{first}-old.{rest}"
        yield f"{first}-test.{rest}"
    elif _SNAKE_CASE.fullmatch(text):
        yield from _reword_name(text)


def _reword_name(text: str) -> Iterator[str]:
    """Variants of a snake-case name: of `not_received` what it denies, of another name
    its negation and, if it is long, its parts."""
    head, _, tail = text.partition("_")
    if head in {"not", "no", "never"}:
        yield tail
        yield f"partly_{tail}"
        return
    yield f"not_{text}"
    if "_" in tail:
        yield text.rpartition("_")[0]
        yield tail


def build_wrong_counts(number: int) -> tuple[str, ...]:
    """Build other numbers that somebody who did not count would say."""
    near = {number + 1, number + 2, number + 4, max(number - 1, 0)} - {number}
    return tuple(str(count) for count in sorted(near))


def _replace_last_word(text: str) -> Iterator[str]:
    match = _LAST_WORD.search(text)
    if match is None:
        return
    word = match[0]
    for family in _FAMILIES:
        for other in family if word.lower() in family else ():
            like = other.upper() if word.isupper() else other
            yield text[: match.start()] + like + text[match.end() :]


def _change_digits(text: str) -> Iterator[str]:
    """Variants with two digits swapped, or with one digit raised."""
    places = [match.start() for match in _DIGIT.finditer(text)]
    for first, second in pairwise(places):
        if text[first] != text[second] and (text[second] != "0" or first != places[0]):
            yield _replace_characters(text, {first: text[second], second: text[first]})
            break
    for place in (*places[:1], *places[-1:]):
        digit = (int(text[place]) + 1) % 10 or 1
        yield _replace_characters(text, {place: str(digit)})


def _replace_characters(text: str, changed: dict[int, str]) -> str:
    return "".join(changed.get(index, letter) for index, letter in enumerate(text))


CHANGES, IF_WRONG = "What changes", "If it goes wrong"
LONGEST_ANSWER = 60
_ASKED_KINDS = {"text", "number", "yes or no"}

Wordings = tuple[tuple[SentencePart, ...], ...]
RowOrChange = ValueRow | FieldChange


@dataclass(frozen=True, slots=True)
class QuestionDraft:
    """What could be asked about one fact of the page. `may_be_absent` says that the
    question stays fair if the right answer is not offered. "Which of these" does not:
    it says that one of them is right."""

    id: str
    wordings: Wordings
    right: str
    wrong: tuple[str, ...]
    look: str
    may_be_absent: bool = False


def build_row_drafts(
    rows: Sequence[ValueRow],
    kind: str,
    place: Callable[[int], str],
    schema: Schema,
    page: Presentation,
) -> Iterator[QuestionDraft]:
    """Draft questions about the values in some rows."""
    for number, row in enumerate(rows, 1):
        name = format_row_name(row)
        beside = [
            other.cell
            for other in rows
            if format_row_name(other) != name and other.cell.kind == row.cell.kind
        ]
        yield from build_value_drafts(
            f"{kind}:{number}", row, row.cell, beside, place(number), schema, page
        )


def build_value_drafts(
    draft: str,
    row: RowOrChange,
    cell: Cell | None,
    beside: Iterable[Cell | None],
    place: str,
    schema: Schema,
    page: Presentation,
) -> Iterator[QuestionDraft]:
    """Draft a question about one value, if it can be asked about. `beside` are the
    cells that wrong answers may come from. The order of several values in a list is not
    asked about: nobody reads for that."""
    if cell is None or not can_ask_about(cell):
        return
    name = format_row_name(row)
    true = list_values_under(name, page)
    known = [other for other in beside if can_ask_about(other)]
    choices = list_schema_choices(schema, row.path)
    wrong = build_wrong_answers(cell.text, known, choices, true)
    single = len(true) == 1
    patterns = _PATTERNS[isinstance(row, FieldChange), single]
    wordings = tuple(_build_wording(pattern, name) for pattern in patterns)
    yield QuestionDraft(draft, wordings, cell.text, wrong, place, single)


# How to ask for a value, by whether it is that of a change, and the only one under its
# label.
_PATTERNS = {
    (False, True): (
        "In this request, what is the value of {}?",
        "Which value does this request give for {}?",
    ),
    (False, False): (
        "Which of these does this request give under {}?",
        "Under {}, which of these does this request list?",
    ),
    (True, True): (
        "After this runs, what is the value of {}?",
        "Which value does {} have after this runs?",
    ),
    (True, False): (
        "After this runs, which of these is a value of {}?",
        "Which of these is listed under {} after this runs?",
    ),
}


def _build_wording(pattern: str, label: str) -> tuple[SentencePart, ...]:
    before, _, after = pattern.partition("{}")
    return (TextPart(before), ValuePart(label), TextPart(after))


def list_schema_choices(schema: Schema, path: str) -> list[str]:
    """List the values that the schema allows at a path, as the page writes them."""
    words = build_enum_words(schema, path)
    return [words.get(text, text) for text in list_enum_values(schema, path)]


def format_row_name(row: RowOrChange) -> str:
    """The label of a row, without its number in a list."""
    place = format_place(row.path)
    return row.label.removesuffix(f" {place}") if place else row.label


def parse_field_name(path: str) -> str:
    """The field that contains a path: of an entry its list, else the path itself."""
    return path.partition("[")[0]


def list_values_under(name: str, page: Presentation) -> list[str]:
    """List every value that the page shows under a name, anywhere on the page: each
    could be called right. A change counts with its new value."""
    groups = [view.rows for view in page.views if isinstance(view, GroupView)]
    rows = [*page.other, *page.unchanged, *page.now, *chain.from_iterable(groups)]
    values: list[tuple[RowOrChange, Cell | None]] = [(row, row.cell) for row in rows]
    values += [(change, change.after) for change in page.changes]
    return [
        cell.text
        for row, cell in values
        if cell is not None and is_same_answer(format_row_name(row), name)
    ]


def build_own_wordings(*wordings: str) -> Wordings:
    """Build wordings from Counterseal's own words alone."""
    return tuple((TextPart(text),) for text in wordings)


def can_ask_about(cell: Cell | None) -> bool:
    """Whether a value is short and plain; a concealed or empty one tells nothing."""
    if cell is None or cell.long or not cell.text.strip():
        return False
    return cell.kind in _ASKED_KINDS and len(cell.text) <= LONGEST_ANSWER


def build_wrong_answers(
    right: str,
    known: Sequence[Cell | None],
    could_be: Sequence[str] = (),
    true: Sequence[str] = (),
) -> tuple[str, ...]:
    """Build wrong answers that look plausible: other values that the schema lists, else
    values from beside the right one and near misses. No answer means the same as the
    right one, or as another text in `true`."""
    if right in {"yes", "no"}:
        return ()  # two answers are no question
    rivals = exclude_same_answers(could_be, [right, *true])
    if len(rivals) > 1:
        return rivals
    texts = [cell.text for cell in known if cell is not None]
    return exclude_same_answers([*texts, *build_near_misses(right)], [right, *true])


def exclude_same_answers(
    candidates: Iterable[str], true: Sequence[str]
) -> tuple[str, ...]:
    """Keep the candidates that are short enough to offer and mean the same as no text
    in `true`, each once."""
    distinct: list[str] = []
    for text in candidates:
        known = any(is_same_answer(text, other) for other in (*true, *distinct))
        if len(text) <= LONGEST_ANSWER and not known:
            distinct.append(text)
    return tuple(distinct)
