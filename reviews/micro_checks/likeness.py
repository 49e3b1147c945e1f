"""Wrong answers that look right: what a reader who did not look would take. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from itertools import pairwise

_FIGURE = re.compile(r"([+-]?\d{1,20}(?:\.\d{1,20})?)((?: [a-z]{3})?)")
_DIGIT = re.compile(r"\d")
_LAST_WORD = re.compile(r"[A-Za-z]+(?=\W*$)")
_JOINED = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")
_DOTTED = re.compile(r"[\w-]+(\.[\w-]+)+")
# Words of which one stands where another could.
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
# Programs that a command could run as well.
PROGRAMS = ("rm", "cp", "mv", "git", "npm", "curl", "tar", "python3", "psql", "rsync")


def is_same(one: str, other: str) -> bool:
    """Whether a reader may take two texts for the same: `5.0` and `5.00`, `Open` and
    `open`, one moment in two time zones."""
    return _meaning(one) == _meaning(other)


def _meaning(text: str) -> object:
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    figure = _FIGURE.fullmatch(plain.replace(",", ""))
    if figure is not None:
        return Decimal(figure[1]), figure[2]
    try:
        moment = datetime.fromisoformat(plain.upper())
    except ValueError:
        return plain
    return plain if moment.tzinfo is None else moment


def near_misses(text: str) -> Iterator[str]:
    """The same kind of text, and another one; some may come twice."""
    yield from _relatives(text)
    yield from _other_digits(text)
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
    elif _JOINED.fullmatch(text):
        yield from _reworded(text)


def _reworded(text: str) -> Iterator[str]:
    """Of a word such as `not_received` what it denies; of a longer name, parts."""
    head, _, tail = text.partition("_")
    if head in {"not", "no", "never"}:
        yield tail
        yield f"partly_{tail}"
        return
    yield f"not_{text}"
    if "_" in tail:
        yield text.rpartition("_")[0]
        yield tail


def counts(number: int) -> tuple[str, ...]:
    """Other numbers that somebody who did not count would say."""
    near = {number + 1, number + 2, number + 4, max(number - 1, 0)} - {number}
    return tuple(str(one) for one in sorted(near))


def _relatives(text: str) -> Iterator[str]:
    found = _LAST_WORD.search(text)
    if found is None:
        return
    word = found[0]
    for family in _FAMILIES:
        for other in family if word.lower() in family else ():
            like = other.upper() if word.isupper() else other
            yield text[: found.start()] + like + text[found.end() :]


def _other_digits(text: str) -> Iterator[str]:
    """Two of its digits swapped, and one more."""
    places = [match.start() for match in _DIGIT.finditer(text)]
    for first, second in pairwise(places):
        if text[first] != text[second] and (text[second] != "0" or first != places[0]):
            yield _with(text, {first: text[second], second: text[first]})
            break
    for place in (*places[:1], *places[-1:]):
        digit = (int(text[place]) + 1) % 10 or 1
        yield _with(text, {place: str(digit)})


def _with(text: str, changed: dict[int, str]) -> str:
    return "".join(changed.get(index, letter) for index, letter in enumerate(text))
