"""Removes personal data and secrets from free text before it is stored. Pure.

Each find becomes a chip such as `[e-mail · redacted · #3f2a]`. Equal values of one
thread get equal tags, so that people can compare values they may not read. Names of
people, and of cities without a street, stay: reviewers need them.
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
from .named_values import ConcealedValue, collect_concealed
from .normalise import MASK, FoldedText, fold_signs, fold_text
from .spans import Span

__all__ = [
    "KINDS",
    "ConcealedValue",
    "RedactionResult",
    "build_possible_chips",
    "collect_concealed",
    "count_chips",
    "derive_thread_key",
    "format_chip",
    "list_chips",
    "list_kinds",
    "redact_text",
    "redact_value",
]

log = structlog.get_logger(__name__)

UNCHECKED_TEXT = "Could not be checked for secrets. Not shown."
CHIP_FORMAT = "[{kind} · redacted · #{tag}]"
KINDS = labels.KINDS
_CHIPS = re.compile(rf"\[(?:{'|'.join(KINDS)}) · redacted · #[0-9a-f]{{4}}\]")

# When two recognisers match the same place, the first one wins: a password may look
# like a phone number, and a card number like several phone numbers. The number is the
# least count of digits in what a recogniser finds: most texts have none, so most
# recognisers need not read them.
RECOGNISERS: tuple[tuple[Callable[[str], Iterable[Span]], int], ...] = (
    (credentials.find_credentials, 0),
    (contacts.find_emails, 0),
    (numbers.find_ibans, 2),
    (numbers.find_cards, 13),
    (numbers.find_national_ids, 1),
    (addresses.find_addresses, 1),
    (contacts.find_phones, 7),
)
_DIGIT = re.compile(r"\d")
# No recogniser finds anything in one short word: the shortest key has 15 characters,
# and everything else has a digit, a blank or a sign in it.
_WORD = re.compile(r"[A-Za-z_]{0,14}")
_MAX_ROUNDS = 5
# A UUID identifies a record; its digits are not a phone or card number.
_UUID = re.compile(
    r"(?<![\w-])(?=[\d-]{0,35}[a-fA-F])[\da-fA-F]{8}(?:-[\da-fA-F]{4}){3}-[\da-fA-F]{12}"
    r"(?![\w-])"
)
_TOKEN = re.compile(r"[^\s\"'`,;()<>\[\]{}*=\0]+")
_MIN_REPEAT_LENGTH = 5  # characters; a shorter value such as "1234" may mean anything


@dataclass(frozen=True, slots=True)
class RedactionResult:
    """The text with chips, the number of chips set, and their number by kind."""

    text: str
    count: int
    kinds: Mapping[str, int]


def derive_thread_key(master: bytes, agent: str, thread: str) -> bytes:
    """The key for the tags of one thread. Keys differ between threads, so that equal
    values of two threads cannot be linked."""
    name = canonical.encode(["redaction", agent, thread])
    return hmac.digest(master, name, hashlib.sha256)


def redact_text(
    text: str, *, key: bytes, hidden: Sequence[ConcealedValue] = ()
) -> RedactionResult:
    """Replace by chips what the recognisers find and the values in `hidden`. Takes
    linear time and never raises. Chips already in the text stay as they are."""
    if not hidden and _WORD.fullmatch(text):
        return RedactionResult(text, 0, {})
    folded = fold_text(text)
    view = fold_signs(_CHIPS.sub(_mask_match, folded.text))
    named = list(named_values.find_concealed(view, hidden))
    spans: list[Span] = []
    for _ in range(_MAX_ROUNDS):  # a masked find may expose another one beside it
        fresh = _run_recognisers(view, folded.text, spans)
        if not fresh:
            break
        view = _mask_spans(view, fresh)
        spans += fresh
    return _insert_chips(text, folded, _merge_spans([*spans, *named]), key)


def redact_value(
    value: Any,
    key: bytes,
    fields: Iterable[str] = (),
    hidden: Sequence[ConcealedValue] = (),
    *,
    ours: bool = False,
) -> Any:
    """A JSON value with every text redacted, and every key too unless `ours`.

    `fields` (names, or dotted paths from the root without indices) are replaced whole,
    and so are members with a telling name: `password`, `zip`, `ssn`. The values in
    `hidden` are replaced wherever they occur. A text that cannot be scanned is replaced
    by `UNCHECKED_TEXT`.
    """
    return _ValueRedactor(key, frozenset(fields), hidden, ours).value(value)


def redact_item(
    item: Mapping[str, Any], key: bytes, hidden: Sequence[ConcealedValue] = ()
) -> dict[str, Any]:
    """One item of evidence, redacted. If any part of it cannot be scanned, the result
    has only `unchecked` and the size of its text in bytes."""
    walk = _ValueRedactor(key, frozenset(), hidden, ours=True)
    redacted: dict[str, Any] = walk.value(item)
    if walk.failed:
        size = len(str(item.get("text", "")).encode(errors="replace"))
        return {"kind": "item", "unchecked": True, "size": size}
    return redacted


def list_kinds(text: str) -> tuple[str, ...]:
    """The kinds of values that would be redacted from a text, in the order of
    `KINDS`."""
    kinds = redact_text(text, key=b"").kinds
    return tuple(kind for kind in KINDS if kind in kinds)


def redact_or_withhold(
    text: str, *, key: bytes, hidden: Sequence[ConcealedValue] = ()
) -> RedactionResult:
    """`redact_text`, or `UNCHECKED_TEXT` in place of a text that could not be scanned:
    a failing scanner must let nothing through."""
    try:
        return redact_text(text, key=key, hidden=hidden)
    except Exception as error:  # log only the type: the message may quote the text
        log.error("redaction_failed", error=type(error).__name__)
        return RedactionResult(UNCHECKED_TEXT, 0, {})


def count_chips(value: Any) -> int:
    """The number of chips in a text or JSON value."""
    if isinstance(value, str):
        return len(list_chips(value))
    if isinstance(value, Mapping):
        return sum(count_chips(k) + count_chips(v) for k, v in value.items())
    return sum(map(count_chips, value)) if isinstance(value, list | tuple) else 0


def list_chips(text: str) -> list[str]:
    return _CHIPS.findall(text)


def build_possible_chips(value: str, key: bytes) -> dict[str, str]:
    """Every chip that could replace exactly this value, over all kinds, with the normal
    form it is derived from."""
    plain = fold_text(value).text.strip()
    forms = {kind: labels.normalise_value(kind, plain) for kind in KINDS}
    chips = {format_chip(kind, form, key): form for kind, form in forms.items() if form}
    scanned = redact_text(value, key=key).text.strip()
    if _CHIPS.fullmatch(scanned):  # a phone's country code may not be in its digits
        chips.setdefault(scanned, plain)
    return chips


def format_chip(kind: str, value: str, key: bytes) -> str:
    """The chip for `value`, which is given in its normal form."""
    tag = hmac.digest(key, f"{kind}\0{value}".encode(errors="replace"), hashlib.sha256)
    return CHIP_FORMAT.format(kind=kind, tag=tag.hex()[:4])


def _mask_match(match: re.Match[str]) -> str:
    return MASK * len(match.group())


def _run_recognisers(view: str, text: str, before: list[Span]) -> list[Span]:
    recognised: list[Span] = []
    digits = len(_DIGIT.findall(view))
    for find, needed in RECOGNISERS:
        if digits >= needed and (spans := list(find(view))):
            spans = list(_drop_overlaps(spans))
            view = _mask_spans(view, spans)
            recognised += spans
        if find is credentials.find_credentials:
            view = _UUID.sub(_mask_match, view)
    return recognised + list(_find_repeats(text, view, before + recognised))


def _drop_overlaps(spans: Iterable[Span]) -> Iterator[Span]:
    """Drop overlaps: keep the span that begins first, and of those the longest."""
    end = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start >= end:
            yield span
            end = span.end


def _merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Sort the spans and merge those that overlap. A merged span has the kind of its
    longest part; on a tie, of the part that begins first, or else of the recognised
    one."""
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


def _find_repeats(text: str, view: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Other places of values already found, which may lack the context that a
    recogniser needs."""
    known = {
        text[s.start : s.end]: s for s in spans if s.end - s.start >= _MIN_REPEAT_LENGTH
    }
    for match in _TOKEN.finditer(view) if known else ():
        word = match.group().rstrip(".:!?")
        if same := known.get(word):
            yield same._replace(start=match.start(), end=match.start() + len(word))


def _mask_spans(view: str, spans: Sequence[Span]) -> str:
    if not spans:
        return view
    parts, position = [], 0
    for span in sorted(spans):
        parts += [view[position : span.start], MASK * (span.end - span.start)]
        position = span.end
    return "".join([*parts, view[position:]])


def _insert_chips(
    text: str, folded: FoldedText, spans: Iterable[Span], key: bytes
) -> RedactionResult:
    parts: list[str] = []
    kinds: Counter[str] = Counter()
    position = 0
    for span in spans:
        start, end = folded.origin(span.start), folded.origin_end(span.end)
        parts += [text[position:start], format_chip(span.kind, span.value, key)]
        kinds[span.kind] += 1
        position = end
    parts.append(text[position:])
    return RedactionResult("".join(parts), kinds.total(), dict(kinds))


@dataclass(slots=True)
class _ValueRedactor:
    """Redacts one JSON value. Strict parsing of the input has bounded its depth."""

    key: bytes
    fields: frozenset[str]
    hidden: Sequence[ConcealedValue]
    ours: bool = False  # member names are ours, so they need no scanning
    failed: bool = False

    def _redact(self, text: str) -> RedactionResult:
        result = redact_or_withhold(text, key=self.key, hidden=self.hidden)
        self.failed = self.failed or result.text == UNCHECKED_TEXT != text
        return result

    def value(self, value: Any, path: str = "", name: str = "", kind: str = "") -> Any:
        """`kind` is the kind that an enclosing member's name implies; "" for none."""
        kind = kind or labels.classify_name(name)
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
        kinds = {labels.classify_name(str(key)) for key in value}
        has_street = labels.ADDRESS in kinds
        for key, item in value.items():
            name = str(key)
            shown = name if self.ours else self._redact(name).text
            while shown in members:  # two names may become the same chip
                shown += "'"
            within = f"{path}.{name}" if path else name
            beside = labels.ADDRESS if has_street and labels.is_city_name(name) else ""
            members[shown] = self.value(item, within, name, kind or beside)
        return members

    def _whole(self, value: Any, kind: str) -> str:
        text = str(value)
        scanned = self._redact(text).text.strip()
        if _CHIPS.fullmatch(scanned) or scanned == UNCHECKED_TEXT:
            return scanned  # a recognised kind is more precise than the member's name
        form = labels.normalise_value(kind, fold_text(text).text)
        return format_chip(kind, form, self.key)

    def _scanned(self, value: Any) -> Any:
        redacted = self._redact(str(value))
        return redacted.text if redacted.count or isinstance(value, str) else value
