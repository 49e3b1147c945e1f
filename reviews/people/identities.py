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

from django.db.models import Exists, F, Func, OuterRef, Q, QuerySet, Value

from journal import transactions
from policies.mailboxes import fold_mailbox, fold_text
from policies.models import Person
from reviews.choices import IN_FLIGHT, OPEN, RequestStatus
from reviews.models import ApprovalRequest, Execution, Proposal
from reviews.presenters import unicode
from reviews.redaction import normalise

# Shorter texts are too common to count as similar to a name, or as mistyped.
LEAST_ALIKE, LEAST_MISTYPED = 3, 6
_PREFIX = re.compile(r"(?:mailto|user|username|person|people|email|mail|acct|uid)[:=]")
_BRACKETS = re.compile(r"([^<>]*)<([^<>]*)>")
_SEPARATORS = re.compile(r"[,;|/\\&=:<>()\[\]{}\"?!#]+| and ")
_EDGES = " \"'<>()[]{}@.,;:"
_LOOKALIKE_CHARS = str.maketrans("01358|!", "olesbll")
_LOOKALIKE_PAIRS = (("rn", "m"), ("vv", "w"), ("i", "l"))


@dataclass(frozen=True, slots=True)
class Identity:
    """One person's exact names, and the shapes of texts that resemble them."""

    names: frozenset[str]
    shapes: frozenset[str]


@lru_cache(maxsize=8192)
def build_identity(
    public_id: str, username: str, email: str, first_name: str, last_name: str
) -> Identity:
    first, last = _fold_lookalikes(first_name), _fold_lookalikes(last_name)
    full = f"{first} {last}".strip()
    names = {
        _fold_lookalikes(public_id),
        *_list_spellings(username),
        *_list_spellings(email),
        full,
    }
    local, _, _ = normalise_mailbox(email).rpartition("@")
    both = first and last
    turned = {f"{last}{first}", f"{first[:1]}{last}", f"{last}{first[:1]}"}
    alike = {_fold_lookalikes(username), local, full, *(turned if both else ())}
    shapes = {
        shape for text in alike if len(shape := _reduce_to_shape(text)) >= LEAST_ALIKE
    }
    return Identity(frozenset(names - {""}), frozenset(shapes))


def normalise_mailbox(address: str) -> str:
    """The mailbox of an address, with lookalike letters read as Latin."""
    return fold_mailbox(_fold_lookalikes(address))


def is_same_mailbox(address: str, other: str) -> bool:
    """Whether two addresses are the same mailbox, and so belong to one person."""
    return bool(address) and normalise_mailbox(address) == normalise_mailbox(other)


def parse_names(text: str) -> set[str]:
    """The names that a whole text stands for. Understands the usual ways of writing
    one: an address with or without a name, a prefix such as `mailto:` or `user:`."""
    return {
        name
        for form in _list_written_forms(_fold_lookalikes(text))
        for name in _list_spellings(form)
    } - {""}


def names_person(text: str, identity: Identity) -> bool:
    return not identity.names.isdisjoint(parse_names(text))


def resembles_identity(text: str, identity: Identity) -> bool:
    """Whether the text or a part of it could be mistaken for one of the names."""
    parts = _split_parts(_fold_lookalikes(text))
    if any(not identity.names.isdisjoint(_list_spellings(part)) for part in parts):
        return True
    shapes = {shape for part in parts for shape in _collect_shapes(part)}
    return any(
        _is_similar(shape, known) for shape in shapes for known in identity.shapes
    )


@lru_cache(maxsize=8192)
def _fold_lookalikes(text: str) -> str:
    seen = normalise.fold_text(unicodedata.normalize("NFKC", text)).text
    return fold_text(unicode.fold_lookalikes(seen))


def _list_spellings(text: str) -> set[str]:
    folded = _fold_lookalikes(text).strip(_EDGES)
    return {folded, normalise_mailbox(folded)} if "@" in folded else {folded}


def _list_written_forms(text: str) -> Iterator[str]:
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
            yield from _list_written_forms(part) if part.strip() else ()


def _split_parts(text: str) -> set[str]:
    plain = unquote(text)
    parts = (part.strip(_EDGES) for part in _SEPARATORS.split(plain))
    return {part for part in (plain, *parts) if part}


def _collect_shapes(part: str) -> set[str]:
    local, at, _ = normalise_mailbox(part).rpartition("@")
    shapes = (
        {_reduce_to_shape(part), _reduce_to_shape(local)}
        if at
        else {_reduce_to_shape(part)}
    )
    return {shape for shape in shapes if len(shape) >= LEAST_ALIKE}


def _reduce_to_shape(text: str) -> str:
    """Reduce to letters and digits without accents, with lookalikes made equal."""
    bare = unicodedata.normalize("NFD", text)
    shape = "".join(char for char in bare.translate(_LOOKALIKE_CHARS) if char.isalnum())
    for like, letter in _LOOKALIKE_PAIRS:
        shape = shape.replace(like, letter)
    return shape


def _is_similar(shape: str, known: str) -> bool:
    if shape == known:
        return True
    if len(shape) == len(known) and not shape.isascii():
        return _has_foreign_stand_ins(shape, known)
    words = shape.isalpha() and known.isalpha()
    long = min(len(shape), len(known)) >= LEAST_MISTYPED
    return words and long and _is_mistyped(shape, known)


def _has_foreign_stand_ins(shape: str, known: str) -> bool:
    """Whether at most half the letters differ, each replaced by a foreign one."""
    pairs = list(zip(shape, known, strict=True))
    foreign = sum(not letter.isascii() for letter, _ in pairs)
    same = all(letter == other for letter, other in pairs if letter.isascii())
    return same and 2 * foreign <= len(pairs)


def _is_mistyped(shape: str, known: str) -> bool:
    """Whether they differ by one letter added, missing, changed or swapped."""
    if abs(len(shape) - len(known)) > 1:
        return False
    start = 0
    while start < min(len(shape), len(known)) and shape[start] == known[start]:
        start += 1
    rest, other = shape[start:], known[start:]
    swapped = rest[1::-1] + rest[2:] if len(rest) > 1 else rest
    return (
        rest[1:] == other[1:]
        or rest == other[1:]
        or rest[1:] == other
        or swapped == other
    )


def bar_owner(agent: str, person: Person) -> None:
    """Bar an agent's new owner from deciding the agent's open requests, and withdraw
    their vote from what was approved and has not run. Other settled requests stay as
    they are. The caller is in a transaction."""
    transactions.require_transaction("Barring an owner")
    me = person.public_id
    unfinished = Execution.objects.filter(
        proposal=OuterRef("proposal"), status__in=IN_FLIGHT
    )
    approved = Q(status=RequestStatus.AUTHORIZED) & Exists(unfinished)
    waiting = ApprovalRequest.objects.filter(approved | Q(status__in=OPEN), agent=agent)
    asked = waiting.values_list("proposal_id", flat=True)
    _add_barred_person(Proposal.objects.filter(pk__in=list(asked)), me)
    _add_barred_person(waiting, me)


def _add_barred_person(
    rows: QuerySet[Proposal] | QuerySet[ApprovalRequest], me: str
) -> None:
    added = Func(F("barred"), Value(me), function="array_append")
    rows.exclude(barred__contains=[me]).update(barred=added)
