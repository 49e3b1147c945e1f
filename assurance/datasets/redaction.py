"""What a dataset shows in place of ids, names, customers and secrets.

Stored texts are redacted already, but names of people and of customers stay in them,
because reviewers need them. A dataset leaves the desk, so it hides these too: the
values of arguments and readings that name somebody, wherever a line repeats them, and
the people of this installation.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policies.documents import ToolDefinition
from policies.models import Person
from reviews import redaction
from reviews.models import Proposal, Revision
from reviews.presenters.arguments import Leaf, collect_leaves, is_personal_name
from reviews.presenters.unicode import decode_names
from reviews.redaction.named_values import MOST_NAME_WORDS, PeopleFinder
from reviews.redaction.normalise import fold_text
from reviews.redaction.redactor import list_withheld_arguments, load_redactor

CUSTOMER, PERSON, RECORD = "customer", "person", "id"
HIDDEN_PERSON = "[person]"
# Roles of a view whose argument names whom the effect concerns.
TARGET_ROLES = ("payee", "account", "to", "who")
# Further roles that name people, but the same ones in many requests.
_PEOPLE_ROLES = ("from", "reply_to", "cc", "bcc", "user", "owner")
_CUSTOMER_NAME = re.compile(
    r"(^|_)(customer|client|patient|payee|beneficiary|recipient|cardholder|subscriber"
    r"|tenant|guest)s?(_?(id|no|number|ref|name))?$",
    re.IGNORECASE,
)
_PERSON_NAME = re.compile(
    r"(^|_)(given|family|display|contact|user|holder|account)_?name$"
    r"|(^|_)(username|contact|sender|author|assignee|attendees|invitees|holder)$",
    re.IGNORECASE,
)
# Arguments that hold the id of a record, if their value has a digit.
_ID_NAME = re.compile(
    r"(^|_)(id|uuid|no|number|ref|reference|order|invoice|ticket|case|parcel|booking"
    r"|subscription|shipment|charge|payment|account)s?$",
    re.IGNORECASE,
)
# A word that is the id of a record by its look, such as `O-1042`; in texts also a long
# number.
_ID_SHAPE = re.compile(r"[a-z]{1,6}[-_#]\d{3,}[\w-]*|[a-z]{1,2}-[0-9a-z]{20}")
_LONG_NUMBER = re.compile(r"\d{6,}")
_INDEX = re.compile(r"\[[^\]]*\]")
_CHIP_TAG = re.compile(r"(?<= · redacted · #)[0-9a-f]{4}(?=\])")
_SAME_PERSON = re.compile(r"\[person\](?: \[person\])+")
_LETTERS = re.compile(r"[^\W\d_]+")
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# What this redaction writes: pseudonyms, and chips with their kind.
_WRITTEN = re.compile(r"\b[a-z]+-[a-p]{16}\b|\[person\]|\[[^\[\]]* · redacted · #\w*\]")
_OWN_WORDS = ("customer", "person", "redacted")
# Words of a text, each kind a part of the one before: a path, its steps, their parts.
_TOKENS = (
    re.compile(r"\w(?:[\w@.+/-]*\w)?"),
    re.compile(r"\w(?:[\w.+-]*\w)?"),
    re.compile(r"\w(?:[\w-]*\w)?"),
)
_LEAST_LETTERS = 3  # of a name; a shorter one would match everywhere
_LEAST_TOKEN = 4  # of another line's customer; its own are found from 2 characters


def build_pseudonym(key: bytes, kind: str, value: str) -> str:
    """The pseudonym of an id: the same for the same key, kind and value. It has letters
    only, so that nothing takes it for a number."""
    digest = hmac.digest(key, f"{kind}\0{value}".encode(errors="replace"), "sha256")
    letters = (chr(97 + half) for byte in digest[:8] for half in (byte >> 4, byte & 15))
    return f"{kind}-{''.join(letters)}"


def normalise_customer(value: Any) -> str:
    """The form in which two spellings of one customer are equal."""
    return fold_text(decode_names(str(value))).text.strip().casefold()


def list_customers(
    proposal: Proposal, revision: Revision, definition: ToolDefinition
) -> frozenset[str]:
    """The customers that a revision concerns, in their normal form: the tool's target,
    its keys, and the party for whom the agent acts."""
    targets = {definition.roles.get(role, "") for role in TARGET_ROLES}
    wanted = frozenset([*definition.keys, *targets]) - {""}
    values = [
        leaf.value
        for leaf in collect_leaves(revision.args)
        if _is_named(leaf, wanted, _CUSTOMER_NAME)
    ]
    values += (revision.reading.get("keys") or {}).values()
    party = proposal.on_behalf_of
    if party.get("kind") in {"customer", "user"}:
        values.append(party.get("id"))
    return frozenset(filter(None, map(_normalise_scalar, values)))


def _normalise_scalar(value: Any) -> str:
    known = isinstance(value, str | int | float) and not isinstance(value, bool)
    return normalise_customer(value) if known else ""


def _is_named(leaf: Leaf, wanted: frozenset[str], name: re.Pattern[str]) -> bool:
    """Whether the leaf, or a member around it, is one of `wanted` or fits `name`."""
    path = _INDEX.sub("", leaf.path)
    parts = path.split(".")
    within = {".".join(parts[: end + 1]) for end in range(len(parts))}
    return bool(within & wanted) or any(map(name.search, parts))


def list_people_named(
    proposal: Proposal, revision: Revision, definition: ToolDefinition
) -> list[str]:
    """Names of people and data about them that a revision has in arguments, in the
    reading of its state, or as the party for whom the agent acts.

    Words of the tool's own schema are none, and labels name fields, not people.
    """
    roles = (*TARGET_ROLES, *_PEOPLE_ROLES)
    wanted = frozenset(definition.roles.get(role, "") for role in roles) - {""}
    values = [
        leaf.value
        for leaf in collect_leaves(revision.args)
        if _is_named(leaf, wanted, _PERSON_NAME) or _is_personal(leaf)
    ]
    for part in ("before", "facts"):
        read = collect_leaves(revision.reading.get(part) or {})
        values += [leaf.value for leaf in read if _is_read_name(leaf)]
    keys = map(str, (revision.reading.get("keys") or {}).values())
    values += [key for key in keys if not any(map(str.isdigit, key))]
    party = proposal.on_behalf_of
    values += [party.get("id", ""), *party.get("chain", [])]
    values += [leaf.value for leaf in collect_leaves(party.get("properties", {}))]
    own = list_schema_words(definition, revision)
    return [
        text
        for value in values
        if isinstance(value, str)
        and (text := decode_names(value).strip())
        and not set(_split_words(text)) <= own
    ]


def list_schema_words(definition: ToolDefinition, revision: Revision) -> set[str]:
    """The words of a tool's own names, labels, titles and closed sets of values."""
    labels = (revision.reading.get("labels") or {}).items()
    texts = [definition.name, definition.title, *definition.facts, *definition.keys]
    texts += [text for pair in definition.labels.items() for text in pair]
    texts += [str(text) for pair in labels for text in pair]
    texts += _list_schema_texts(definition.arguments)
    return {word for text in texts for word in _split_words(text)}


def _list_schema_texts(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for name, part in schema.items():
            if name in ("properties", "$defs") and isinstance(part, Mapping):
                yield from part
            if name in ("enum", "const", "title"):
                yield from _list_texts(part)
            yield from _list_schema_texts(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _list_schema_texts(part)


def _list_texts(value: Any) -> Iterator[str]:
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str):
            yield text


def _split_words(text: str) -> list[str]:
    """The words of a name such as `order_id` or `orderId`, in lower case."""
    return [word.lower() for word in _NAME_PART.findall(text)]


def _is_personal(leaf: Leaf) -> bool:
    return is_personal_name(_INDEX.sub("", leaf.path))


def _is_read_name(leaf: Leaf) -> bool:
    """In a reading a bare `name` is whom the state is about."""
    last = _INDEX.sub("", leaf.path).rpartition(".")[2]
    named = last == "name" or _is_named(leaf, frozenset(), _CUSTOMER_NAME)
    return named or _is_named(leaf, frozenset(), _PERSON_NAME) or _is_personal(leaf)


@dataclass(frozen=True, slots=True)
class LineSubject:
    """What one line is about, and the customers of every version of its request."""

    proposal: Proposal
    revision: Revision
    definition: ToolDefinition
    customers: frozenset[str]


@dataclass(frozen=True, slots=True)
class HiddenNames:
    """Whom no line of a dataset may name: the people of the installation and all whom
    the lines name, by each word of their names, and the customers of all lines."""

    people: frozenset[str]  # user names and public ids
    names: PeopleFinder
    customers: frozenset[str]

    def hide_people(self, text: str) -> str:
        """Replace every name. What this redaction wrote itself stays as it is."""
        parts, done = [], 0
        for match in _WRITTEN.finditer(text):
            parts += [self._hide(text[done : match.start()]), match.group()]
            done = match.end()
        parts.append(self._hide(text[done:]))
        return _SAME_PERSON.sub(HIDDEN_PERSON, "".join(parts))

    def _hide(self, text: str) -> str:
        return self.names.hide(text, HIDDEN_PERSON)


def build_hidden_names(
    people: Iterable[Person],
    customers: frozenset[str],
    named: Iterable[str] = (),
    schema_words: Collection[str] = (),
) -> HiddenNames:
    """Collect user names, public ids and full names of people, and names that lines
    have. Words of the tools' schemas are no names."""
    people = list(people)
    names = [person.get_full_name() for person in people]
    names += [" ".join(_LETTERS.findall(person.username)) for person in people]
    names += [text for text in named if len(text.split()) <= MOST_NAME_WORDS]
    words = {word for person in people for word in (person.username, person.public_id)}
    return HiddenNames(
        frozenset(word for word in words if len(word) >= _LEAST_LETTERS),
        PeopleFinder(names, {*schema_words, *_OWN_WORDS}),
        customers,
    )


class LineRedactor:
    """Redacts the arguments and texts of one line."""

    def __init__(self, key: bytes, subject: LineSubject, others: HiddenNames) -> None:
        proposal, revision = subject.proposal, subject.revision
        thread = load_redactor(
            proposal.agent, proposal.thread, subject.definition, revision.args
        )
        self.key, self.thread_key = key, thread.key
        self.others = others
        self.fields = list_withheld_arguments(subject.definition)
        self.pseudonyms = {
            customer: build_pseudonym(key, CUSTOMER, customer)
            for customer in subject.customers
        }
        self.records = {
            record: build_pseudonym(key, RECORD, record)
            for record in _list_record_ids(revision.args)
        }
        named = list_people_named(proposal, revision, subject.definition)
        self.hidden = [*thread.hidden, *self._conceal(named)]
        self.chips = {
            redaction.format_chip(CUSTOMER, customer, self.thread_key): pseudonym
            for customer, pseudonym in self.pseudonyms.items()
        }

    def _conceal(self, named: Sequence[str]) -> Iterator[redaction.ConcealedValue]:
        for customer in sorted(self.pseudonyms):
            for concealed in redaction.collect_concealed({"v": customer}, ["v"]):
                yield concealed._replace(kind=CUSTOMER, value=customer)
        for concealed in redaction.collect_concealed({"v": list(named)}, ["v"]):
            if normalise_customer(concealed.value) not in self.pseudonyms:
                yield concealed._replace(kind=PERSON)

    def redact_text(self, text: str) -> str:
        """One text of a line. If names are in it as encoded characters, it is decoded
        as a whole."""
        redacted, decoded = self._redact_text(text), decode_names(text)
        if decoded == text:
            return redacted
        return str(_merge_values(redacted, self._redact_text(decoded)))

    def _redact_text(self, text: str) -> str:
        redacted = redaction.redact_or_withhold(
            text, key=self.thread_key, hidden=self.hidden
        )
        return _LONG_NUMBER.sub(self._replace_number, self._finish_text(redacted.text))

    def redact_arguments(self, args: Mapping[str, Any]) -> Any:
        """The arguments, with pseudonyms for customers and chips for other values.
        Texts with names in encoded characters are decoded."""
        decoded = _decode_value(args)
        redacted = self._redact_arguments(args)
        if decoded == args:
            return redacted
        return _merge_values(redacted, self._redact_arguments(decoded))

    def _redact_arguments(self, args: Mapping[str, Any]) -> Any:
        plain = self._replace_ids(args)
        redacted = redaction.redact_value(
            plain, self.thread_key, self.fields, self.hidden
        )
        return self._finish_value(redacted)

    def _replace_ids(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Mapping):
            return {
                key: self._replace_ids(member, key) for key, member in value.items()
            }
        if isinstance(value, list):
            return [self._replace_ids(member, name) for member in value]
        normal = _normalise_scalar(value)
        if normal in self.pseudonyms:
            return self.pseudonyms[normal]
        return self.records.get(normal, value) if _ID_NAME.search(name) else value

    def _finish_value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {
                self._finish_text(str(name)): self._finish_value(member)
                for name, member in value.items()
            }
        if isinstance(value, list):
            return [self._finish_value(member) for member in value]
        return self._finish_text(value) if isinstance(value, str) else value

    def _finish_text(self, text: str) -> str:
        for chip, pseudonym in self.chips.items():
            text = text.replace(chip, pseudonym)
        text = self._replace_tokens(text)
        text = self.others.hide_people(text)
        return _CHIP_TAG.sub(self._replace_tag, text)

    def _replace_tokens(self, text: str, depth: int = 0) -> str:
        """Replace words that name somebody or a record, or else parts of them."""
        if depth == len(_TOKENS):
            return text
        return _TOKENS[depth].sub(
            lambda word: (
                self._find_pseudonym(word.group())
                or self._replace_tokens(word.group(), depth + 1)
            ),
            text,
        )

    def _find_pseudonym(self, word: str) -> str:
        """What stands for a word that is a person, a customer of this line or another
        one, or the id of a record; empty for other words."""
        if word in self.others.people:
            return HIDDEN_PERSON
        normal = normalise_customer(word)
        if len(normal) > 1 and normal in self.pseudonyms:
            return self.pseudonyms[normal]
        if len(normal) >= _LEAST_TOKEN and normal in self.others.customers:
            return build_pseudonym(self.key, CUSTOMER, normal)
        known = len(normal) >= _LEAST_TOKEN and normal in self.records
        if known or _ID_SHAPE.fullmatch(normal):
            return build_pseudonym(self.key, RECORD, normal)
        return ""

    def _replace_number(self, match: re.Match[str]) -> str:
        return build_pseudonym(self.key, RECORD, match.group())

    def _replace_tag(self, match: re.Match[str]) -> str:
        """The desk shows the old tag, so it would lead from the file to a request."""
        tag = self.thread_key + match.group().encode()
        return hmac.digest(self.key, tag, hashlib.sha256).hex()[:4]


def _decode_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            decode_names(str(k)): _decode_value(member) for k, member in value.items()
        }
    if isinstance(value, list):
        return [_decode_value(member) for member in value]
    return decode_names(value) if isinstance(value, str) else value


def _merge_values(plain: Any, decoded: Any) -> Any:
    """Redacted arguments as they were written, but decoded where more is redacted."""
    if isinstance(plain, Mapping) and isinstance(decoded, Mapping):
        if len(plain) != len(decoded):  # two names are one when decoded
            return decoded
        return {
            _merge_values(k, other_k): _merge_values(member, other)
            for (k, member), (other_k, other) in zip(
                plain.items(), decoded.items(), strict=True
            )
        }
    if isinstance(plain, list) and isinstance(decoded, list):
        pairs = zip(plain, decoded, strict=True)
        return [_merge_values(member, other) for member, other in pairs]
    if isinstance(plain, str) and decode_names(plain) == decoded:
        return plain
    return decoded


def _list_record_ids(args: Mapping[str, Any]) -> Iterator[str]:
    for leaf in collect_leaves(args):
        record = _normalise_scalar(leaf.value)
        last = _INDEX.sub("", leaf.path).rpartition(".")[2]
        if _ID_NAME.search(last) and any(map(str.isdigit, record)):
            yield record
