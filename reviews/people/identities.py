"""Matching of names and addresses, to find the people behind a proposal.

Says which person an agent's text names, which person it could be mistaken for, and
whether two accounts belong to one person. People behind a proposal may not decide it.
All but `bar_owner` is without I/O.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from django.db.models import F, Func, QuerySet, Value

from journal import transactions
from policies.mailboxes import fold_mailbox, fold_text
from policies.models import Person
from reviews.choices import OPEN
from reviews.models import ApprovalRequest, Proposal
from reviews.presenters import unicode
from reviews.redaction import normalise

# Shorter texts are too common to count as similar to a name, or as mistyped.
LEAST_ALIKE, LEAST_MISTYPED = 3, 6
_PREFIX = re.compile(r"(?:mailto|user|username|person|people|email|mail|acct|uid)[:=]")
_BRACKETS = re.compile(r"([^<>]*)<([^<>]*)>")
_BETWEEN = re.compile(r"[,;|/\\&=:<>()\[\]{}\"?!#]+| and ")
_EDGES = " \"'<>()[]{}@.,;:"
_LIKE = str.maketrans("01358|!", "olesbll")
_TOGETHER = (("rn", "m"), ("vv", "w"), ("i", "l"))


@dataclass(frozen=True, slots=True)
class Identity:
    """One person's exact names, and the shapes of texts that resemble them."""

    names: frozenset[str]
    shapes: frozenset[str]


@lru_cache(maxsize=8192)
def identity_of(
    public_id: str, username: str, email: str, first_name: str, last_name: str
) -> Identity:
    """The names and shapes of a person, cached."""
    first, last = _fold(first_name), _fold(last_name)
    full = f"{first} {last}".strip()
    names = {_fold(public_id), *_spelt(username), *_spelt(email), full}
    local, _, _ = mailbox_of(email).rpartition("@")
    both = first and last
    turned = {f"{last}{first}", f"{first[:1]}{last}", f"{last}{first[:1]}"}
    alike = {_fold(username), local, full, *(turned if both else ())}
    shapes = {shape for text in alike if len(shape := _shape(text)) >= LEAST_ALIKE}
    return Identity(frozenset(names - {""}), frozenset(shapes))


def mailbox_of(address: str) -> str:
    """The mailbox of an address, with lookalike letters read as Latin."""
    return fold_mailbox(_fold(address))


def is_same(address: str, other: str) -> bool:
    """Whether two addresses are the same mailbox, and so belong to one person."""
    return bool(address) and mailbox_of(address) == mailbox_of(other)


def names_of(text: str) -> set[str]:
    """The names that a whole text stands for.

    Understands the usual ways of writing one: an address with or without a name, a
    prefix such as `mailto:` or `user:`.
    """
    return {name for one in _written(_fold(text)) for name in _spelt(one)} - {""}


def names_someone(text: str, identity: Identity) -> bool:
    """Whether the text is one of the person's names."""
    return not identity.names.isdisjoint(names_of(text))


def looks_like(text: str, identity: Identity) -> bool:
    """Whether the text or a part of it could be mistaken for one of the names."""
    parts = _parts(_fold(text))
    if any(not identity.names.isdisjoint(_spelt(part)) for part in parts):
        return True
    shapes = {shape for part in parts for shape in _shapes(part)}
    return any(
        _is_similar(shape, known) for shape in shapes for known in identity.shapes
    )


@lru_cache(maxsize=8192)
def _fold(text: str) -> str:
    seen = normalise.fold(unicodedata.normalize("NFKC", text)).text
    # Twice: some capitals look Latin only in lower case.
    return fold_text(unicode.skeleton(unicode.skeleton(seen)))


def _spelt(text: str) -> set[str]:
    folded = _fold(text).strip(_EDGES)
    return {folded, mailbox_of(folded)} if "@" in folded else {folded}


def _written(text: str) -> Iterator[str]:
    """Yield the text, and the text without prefixes, query and brackets."""
    text = unquote(text)
    yield text
    bare = text
    while match := _PREFIX.match(bare):
        bare = bare[match.end() :].strip()
    bare, _, _ = bare.partition("?")
    yield bare
    if match := _BRACKETS.fullmatch(bare):
        for part in match.groups():
            yield from _written(part) if part.strip() else ()


def _parts(text: str) -> set[str]:
    plain = unquote(text)
    parts = (part.strip(_EDGES) for part in _BETWEEN.split(plain))
    return {part for part in (plain, *parts) if part}


def _shapes(part: str) -> set[str]:
    local, at, _ = mailbox_of(part).rpartition("@")
    found = {_shape(part), _shape(local)} if at else {_shape(part)}
    return {shape for shape in found if len(shape) >= LEAST_ALIKE}


def _shape(text: str) -> str:
    """Reduce to letters and digits without accents, with lookalikes made equal."""
    bare = unicodedata.normalize("NFD", text)
    kept = "".join(char for char in bare.translate(_LIKE) if char.isalnum())
    for like, letter in _TOGETHER:
        kept = kept.replace(like, letter)
    return kept


def _is_similar(shape: str, known: str) -> bool:
    if shape == known:
        return True
    if len(shape) == len(known) and not shape.isascii():
        return _fits(shape, known)
    words = shape.isalpha() and known.isalpha()
    long = min(len(shape), len(known)) >= LEAST_MISTYPED
    return words and long and _is_mistyped(shape, known)


def _fits(shape: str, known: str) -> bool:
    """Whether at most half the letters differ, each replaced by a foreign one."""
    pairs = list(zip(shape, known, strict=True))
    foreign = sum(not one.isascii() for one, _ in pairs)
    same = all(one == two for one, two in pairs if one.isascii())
    return same and 2 * foreign <= len(pairs)


def _is_mistyped(one: str, two: str) -> bool:
    """Whether they differ by one letter added, missing, changed or swapped."""
    if abs(len(one) - len(two)) > 1:
        return False
    start = 0
    while start < min(len(one), len(two)) and one[start] == two[start]:
        start += 1
    rest, other = one[start:], two[start:]
    swapped = rest[1::-1] + rest[2:] if len(rest) > 1 else rest
    return (
        rest[1:] == other[1:]
        or rest == other[1:]
        or rest[1:] == other
        or swapped == other
    )


def bar(agent: str, person: Person) -> None:
    """Bar an agent's new owner from deciding the agent's open requests.

    Settled requests stay as they are. The caller is in a transaction.
    """
    transactions.require("Barring an owner")
    me = person.public_id
    waiting = ApprovalRequest.objects.filter(agent=agent, status__in=OPEN)
    asked = waiting.values_list("proposal_id", flat=True)
    _add(Proposal.objects.filter(pk__in=list(asked)), me)
    _add(waiting, me)


def _add(rows: QuerySet[Proposal] | QuerySet[ApprovalRequest], me: str) -> None:
    added = Func(F("barred"), Value(me), function="array_append")
    rows.exclude(barred__contains=[me]).update(barred=added)
