"""Parses strict JSON, writes the canonical form (RFC 8785), and hashes it. Pure.

`encode` can write everything that `parse` accepts, and `parse` accepts everything that
`encode` writes. So the bytes that people approve are the bytes that were sent, in one
form only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import rfc8785

from journal.errors import InvalidJson, StaleVersion, TooLarge, build_field_error

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32
MAX_INTEGER = 2**53 - 1  # the largest integer that a double, and so RFC 8785, can hold
# From here on RFC 8785 writes an exponent, so a whole number is parsed as a float.
EXPONENT_FROM = 1e21

ROOT = "$"
_BOM = "\ufeff"
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
# Possessive and with an optional closing quote, so that an unterminated string is
# scanned once and not again from every escaped quote inside it.
_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{\]}]', re.DOTALL)

# A place in a value: (place of its container, key or index in it); None for the root.
Place = Any


class _ObjectWithRepeatedKey(dict[str, Any]):
    """An object with `key` twice; `_check_values`, which knows its path, refuses it."""

    key: str


def parse(raw: bytes) -> Any:
    """Parse JSON that has exactly one meaning. Raises `TooLarge` above 1 MiB, and
    `InvalidJson` for anything but UTF-8 JSON with unique keys, finite numbers, integers
    up to 2^53-1, no NUL or unpaired surrogate in a text, and at most 32 levels. The
    error names a path, or a line and column."""
    if len(raw) > MAX_BYTES:
        raise TooLarge(f"The body has {len(raw)} bytes; the maximum is {MAX_BYTES}.")
    text = _decode_utf8(raw)
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_build_object,
            parse_int=_parse_integer,
            parse_constant=float,  # _check_values refuses NaN and Infinity by path
        )
    except json.JSONDecodeError as error:
        raise _build_syntax_error(text, error.pos, error.msg) from None
    _check_values(value)
    return value


def encode(value: Any) -> bytes:
    """The RFC 8785 form of a value. Raises `ValueError` for what JSON cannot say."""
    return rfc8785.dumps(value)


def digest(data: bytes) -> str:
    """The SHA-256 as `sha256:<hex>`, the form of every hash in the product."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def format_shown(parts: Mapping[str, Any]) -> str:
    """What a page showed, as its form sends it back: a digest of each part."""
    return ".".join(_digest_part(value) for value in parts.values())


def _digest_part(value: Any) -> str:
    raw = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(raw.encode()).hexdigest()[:16]


def check_shown(shown: str, parts: Mapping[str, Any], lost: str) -> None:
    """Check that the parts are still as the page of a form showed them. `shown` is its
    `format_shown`, empty without a page; `lost` says what did not happen. Raises
    StaleVersion, which names the parts that changed. Caller holds the lock."""
    if not shown or shown == format_shown(parts):
        return
    changed = list_changed_parts(shown, parts)
    raise StaleVersion(
        f"Since you opened this page, {' and '.join(changed) or 'it'} changed. {lost}"
        " Read it again."
    )


def list_changed_parts(shown: str, parts: Mapping[str, Any]) -> list[str]:
    """The names of the parts that are not as the page of a form showed them."""
    then = dict(zip(parts, shown.split("."), strict=False))
    return [name for name in parts if then.get(name) != _digest_part(parts[name])]


def _decode_utf8(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _build_invalid_json(ROOT, f"byte {error.start} is not UTF-8") from None
    if text.startswith(_BOM):
        raise _build_invalid_json(ROOT, "a byte order mark is not JSON")
    return text


def _check_depth(text: str) -> None:
    # Before parsing: json.loads raises RecursionError for a deeply nested text.
    depth = 0
    for match in _STRUCTURE.finditer(text):
        mark = match.group()
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                message = f"nested deeper than {MAX_DEPTH} levels"
                raise _build_syntax_error(text, match.start(), message)
        elif mark in "]}":
            depth -= 1


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
    repeated = _ObjectWithRepeatedKey(members)
    repeated.key = key
    return repeated


def _parse_integer(digits: str) -> int:
    # int() raises for thousands of digits; a number this long is too large anyway.
    return int(digits) if len(digits) < 20 else MAX_INTEGER + 1


def _check_values(root: Any) -> None:
    """Check all scalars and keys, without recursion. The walk carries a place for each
    container; only an error turns it into a path."""
    _check_scalar(root, None)
    pending: list[tuple[Any, Place]] = [(root, None)]
    while pending:
        container, place = pending.pop()
        for key, value in _list_members(container, place):
            if isinstance(value, dict | list):
                pending.append((value, (place, key)))
            else:
                _check_scalar(value, (place, key))


def _list_members(container: Any, place: Place) -> Iterator[tuple[str | int, Any]]:
    if isinstance(container, list):
        yield from enumerate(container)
    elif isinstance(container, dict):
        if isinstance(container, _ObjectWithRepeatedKey):
            raise _build_invalid_json(
                _format_path((place, container.key)), "this key appears twice"
            )
        for key in container:
            _check_text(key, place, "a key of this object")
        yield from container.items()


def _check_scalar(value: Any, place: Place) -> None:
    if isinstance(value, str):
        _check_text(value, place, "this text")
    elif isinstance(value, float) and not isfinite(value):
        raise _build_invalid_json(
            _format_path(place), "this number is not finite, or too large"
        )
    elif isinstance(value, int | float) and _is_too_large(value):
        message = f"this integer is beyond {MAX_INTEGER}; send it as a string"
        raise _build_invalid_json(_format_path(place), message)


def _is_too_large(value: Any) -> bool:
    if isinstance(value, float):
        return MAX_INTEGER < abs(value) < EXPONENT_FROM
    return bool(abs(value) > MAX_INTEGER)


def _check_text(text: str, place: Place, what: str) -> None:
    if "\0" in text:  # PostgreSQL cannot store it, and people cannot see it
        raise _build_invalid_json(
            _format_path(place), f"{what} contains the character U+0000"
        )
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _build_invalid_json(
            _format_path(place), f"{what} contains an unpaired surrogate"
        ) from None


def _format_path(place: Place) -> str:
    """`args.items[0].amount`. A key that is not a plain name is cut to 64 characters
    and written as a quoted JSON string."""
    keys: list[str | int] = []
    while place is not None:
        place, key = place
        keys.append(key)
    return "".join(_format_step(key) for key in reversed(keys)).lstrip(".") or ROOT


def _format_step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key[:64])}]"


def _build_syntax_error(text: str, position: int, message: str) -> InvalidJson:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return _build_invalid_json(ROOT, f"line {line}, column {column}: {message}")


def _build_invalid_json(path: str, message: str) -> InvalidJson:
    where = "" if path == ROOT else f" at {path}"
    detail = f"The body is not strict JSON{where}: {message}. Nothing was stored."
    return InvalidJson(detail, errors=[build_field_error(path, message)])
