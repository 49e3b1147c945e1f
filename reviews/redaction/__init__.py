"""Takes out of free text what names or opens something, before it is stored. Pure.

A find becomes the chip `[e-mail · redacted · #3f2a]`. Equal values of one thread get
equal tags, so that people can compare what they may not read (gate.md 4, ux.md 3.6).
Names of people, and of cities without a street, stay: reviewers need them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from journal import canonical

from . import addresses, contacts, credentials, named_values, numbers
from . import spans as labels
from .named_values import Concealed, concealed
from .normalise import MASK, Folded, fold
from .spans import Span

__all__ = [
    "KINDS",
    "Concealed",
    "Redacted",
    "chip",
    "chips_for",
    "chips_in",
    "chips_of",
    "concealed",
    "kinds_in",
    "redact",
    "redact_value",
    "thread_key",
]

log = structlog.get_logger(__name__)

UNCHECKED = "Could not be checked for secrets. Not shown."
CHIP = "[{kind} · redacted · #{tag}]"
KINDS = labels.KINDS
_CHIPS = re.compile(rf"\[(?:{'|'.join(KINDS)}) · redacted · #[0-9a-f]{{4}}\]")

# The order decides who gets a place that two could take: a password may look like a
# phone number, and a card like several.
RECOGNISERS: tuple[Callable[[str], Iterable[Span]], ...] = (
    credentials.find,
    contacts.find_emails,
    numbers.find_ibans,
    numbers.find_cards,
    numbers.find_national_ids,
    addresses.find,
    contacts.find_phones,
)
_MOST_ROUNDS = 5
# A UUID is a key or a name of a record, and its digits are no number of their own.
_UUID = re.compile(
    r"(?<![\w-])(?=[\d-]{0,35}[a-fA-F])[\da-fA-F]{8}(?:-[\da-fA-F]{4}){3}-[\da-fA-F]{12}"
    r"(?![\w-])"
)
_TOKEN = re.compile(r"[^\s\"'`,;()<>\[\]{}*=\0]+")
_TELLING = 5  # characters; "1234" may be anything


@dataclass(frozen=True, slots=True)
class Redacted:
    """The text with chips, how many were set, and how many of each kind."""

    text: str
    count: int
    kinds: Mapping[str, int]


def thread_key(master: bytes, agent: str, thread: str) -> bytes:
    """The key of one thread's tags: equal values of two threads do not look equal."""
    name = canonical.encode(["redaction", agent, thread])
    return hmac.digest(master, name, hashlib.sha256)


def redact(text: str, *, key: bytes, hidden: Sequence[Concealed] = ()) -> Redacted:
    """`text` without what the recognisers find and without the values `hidden`. Linear
    in time, never raises; chips that are there already stay as they are."""
    folded = fold(text)
    view = _CHIPS.sub(_blank, folded.text)
    named = list(named_values.find(view, hidden))
    found: list[Span] = []
    for _ in range(_MOST_ROUNDS):  # until nothing new shows up beside what was found
        fresh = _round(view, folded.text, found)
        if not fresh:
            break
        view = _masked(view, fresh)
        found += fresh
    return _with_chips(text, folded, _joined([*found, *named]), key)


def redact_value(
    value: Any,
    key: bytes,
    fields: Iterable[str] = (),
    hidden: Sequence[Concealed] = (),
    *,
    ours: bool = False,
) -> Any:
    """A JSON value with every text redacted, keys as well unless they are `ours`.

    `fields` (names, or dotted paths from the root without indices) are redacted whole,
    and so are members whose name says what they hold: `password`, `zip`, `ssn`. The
    values `hidden` are taken out wherever they stand. A text that cannot be scanned is
    not kept.
    """
    return _Walk(key, frozenset(fields), hidden, ours=ours).value(value, "", "", "")


def redact_item(
    item: Mapping[str, Any], key: bytes, hidden: Sequence[Concealed] = ()
) -> dict[str, Any]:
    """One piece of evidence, or when any of it cannot be scanned only that there was
    one: `unchecked`, and its size in bytes."""
    walk = _Walk(key, frozenset(), hidden, ours=True)
    found: dict[str, Any] = walk.value(item, "", "", "")
    if walk.failed:
        size = len(str(item.get("text", "")).encode(errors="replace"))
        return {"kind": "item", "unchecked": True, "size": size}
    return found


def kinds_in(text: str) -> tuple[str, ...]:
    """The kinds of what would be taken out of a text, in the order of `KINDS`."""
    found = redact(text, key=b"").kinds
    return tuple(kind for kind in KINDS if kind in found)


def checked(text: str, *, key: bytes, hidden: Sequence[Concealed] = ()) -> Redacted:
    """`redact`, or `UNCHECKED` in place of a text that could not be scanned: a scanner
    that is broken must let nothing through."""
    try:
        return redact(text, key=key, hidden=hidden)
    except Exception as error:  # its message may quote the text
        log.error("redaction_failed", error=type(error).__name__)
        return Redacted(UNCHECKED, 0, {})


def chips_in(value: Any) -> int:
    """How many chips stand in a text or JSON value."""
    if isinstance(value, str):
        return len(chips_of(value))
    if isinstance(value, Mapping):
        return sum(chips_in(k) + chips_in(v) for k, v in value.items())
    return sum(map(chips_in, value)) if isinstance(value, list | tuple) else 0


def chips_of(text: str) -> list[str]:
    """The chips that stand in a text."""
    return _CHIPS.findall(text)


def chips_for(value: str, key: bytes) -> dict[str, str]:
    """Every chip that could stand for exactly this value, whatever it is taken for,
    each with the normal form that it was made from."""
    plain = fold(value).text.strip()
    forms = {kind: labels.normal(kind, plain) for kind in KINDS}
    found = {chip(kind, form, key): form for kind, form in forms.items() if form}
    scanned = redact(value, key=key).text.strip()
    if _CHIPS.fullmatch(scanned):  # a phone's code of its country is not in its digits
        found.setdefault(scanned, plain)
    return found


def chip(kind: str, value: str, key: bytes) -> str:
    """What stands in place of `value`, given in its normal form."""
    tag = hmac.digest(key, f"{kind}\0{value}".encode(errors="replace"), hashlib.sha256)
    return CHIP.format(kind=kind, tag=tag.hex()[:4])


def _blank(match: re.Match[str]) -> str:
    return MASK * len(match.group())


def _round(view: str, text: str, before: list[Span]) -> list[Span]:
    found: list[Span] = []
    for find in RECOGNISERS:
        spans = list(_apart(find(view)))
        view = _masked(view, spans)
        found += spans
        if find is credentials.find:
            view = _UUID.sub(_blank, view)
    return found + list(_repeats(text, view, before + found))


def _apart(spans: Iterable[Span]) -> Iterator[Span]:
    """Without overlaps: the one that begins first, and of those the longest."""
    end = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start >= end:
            yield span
            end = span.end


def _joined(spans: Iterable[Span]) -> list[Span]:
    """In order and without overlaps; what overlaps becomes one, said to be what the
    longest is, and of equal ones what was recognised."""
    joined: list[Span] = []
    longest = 0
    for span in sorted(spans, key=lambda span: span.start):
        if not joined or span.start >= joined[-1].end:
            joined.append(span)
            longest = span.end - span.start
            continue
        last = joined[-1]
        if span.end - span.start > longest:
            longest = span.end - span.start
            last = last._replace(kind=span.kind, value=span.value)
        joined[-1] = last._replace(end=max(last.end, span.end))
    return joined


def _repeats(text: str, view: str, found: Iterable[Span]) -> Iterator[Span]:
    """What was found once is also meant where it stands without its surroundings."""
    known = {text[s.start : s.end]: s for s in found if s.end - s.start >= _TELLING}
    for match in _TOKEN.finditer(view) if known else ():
        word = match.group().rstrip(".:!?")
        if same := known.get(word):
            yield same._replace(start=match.start(), end=match.start() + len(word))


def _masked(view: str, spans: Sequence[Span]) -> str:
    if not spans:
        return view
    parts, position = [], 0
    for span in sorted(spans):
        parts += [view[position : span.start], MASK * (span.end - span.start)]
        position = span.end
    return "".join([*parts, view[position:]])


def _with_chips(
    text: str, folded: Folded, spans: Iterable[Span], key: bytes
) -> Redacted:
    parts: list[str] = []
    kinds: Counter[str] = Counter()
    position = 0
    for span in spans:
        start, end = folded.origin(span.start), folded.origin_end(span.end)
        parts += [text[position:start], chip(span.kind, span.value, key)]
        kinds[span.kind] += 1
        position = end
    parts.append(text[position:])
    return Redacted("".join(parts), kinds.total(), dict(kinds))


class _Walk:
    """One walk over a value; canonical intake has capped its depth."""

    def __init__(
        self,
        key: bytes,
        fields: frozenset[str],
        hidden: Sequence[Concealed],
        *,
        ours: bool = False,
    ) -> None:
        self.key = key
        self.fields = fields
        self.hidden = hidden
        self.ours = ours  # the names of members are, so they need no scanning
        self.failed = False

    def _redact(self, text: str) -> Redacted:
        found = checked(text, key=self.key, hidden=self.hidden)
        self.failed = self.failed or found.text == UNCHECKED != text
        return found

    def value(self, value: Any, path: str, name: str, kind: str) -> Any:
        """`kind` is what everything here is, because of a name further up."""
        kind = kind or labels.kind_of(name)
        if not kind and {path, name} & self.fields:
            kind = labels.SECRET
        if isinstance(value, Mapping):
            return self._members(value, path, kind)
        if isinstance(value, list | tuple):
            return [self.value(item, path, name, kind) for item in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        return self._whole(value, kind) if kind else self._scanned(value)

    def _members(self, value: Mapping[str, Any], path: str, kind: str) -> Any:
        members: dict[str, Any] = {}
        has_street = any(labels.kind_of(str(key)) == labels.ADDRESS for key in value)
        for key, item in value.items():
            name = str(key)
            shown = name if self.ours else self._redact(name).text
            while shown in members:  # two names may get one tag
                shown += "'"
            within = f"{path}.{name}" if path else name
            beside = labels.ADDRESS if has_street and labels.is_city(name) else ""
            members[shown] = self.value(item, within, name, kind or beside)
        return members

    def _whole(self, value: Any, kind: str) -> str:
        text = str(value)
        scanned = self._redact(text).text.strip()
        if _CHIPS.fullmatch(scanned) or scanned == UNCHECKED:
            return scanned  # what it is says more than where it stands
        return chip(kind, labels.normal(kind, fold(text).text), self.key)

    def _scanned(self, value: Any) -> Any:
        redacted = self._redact(str(value))
        return redacted.text if redacted.count or isinstance(value, str) else value
