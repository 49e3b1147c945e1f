"""Arguments as leaves, and what a schema or a field name says about a value. Pure.

A leaf is a scalar, or an empty list or object, with a path, a label and a cell. Paths
are unambiguous: two different argument objects never give the same leaves. The schema
says whether a value can have only one type, so that the page need not show the type,
and which values are listed. The name of a field says whether it concerns a person or a
secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policies import schemas

from .shapes import Cell

# Shown in place of a sensitive value until somebody reveals it.
HIDDEN = "[hidden]"
# How a label writes abbreviations in names.
KNOWN_WORDS = {
    word.casefold(): word
    for word in ("API", "BIC", "IBAN", "ID", "IDs", "IP", "RRULE", "SQL", "URL", "URLs")
} | {"cmd": "command", "dir": "directory"}
Conceal = Callable[[str], str]

# What `find_value` finds where the arguments have no value.
ABSENT = object()

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_INDEX_STEP = re.compile(r"\[(\d+)\]")
_ANY_STEP = re.compile(r"\[[^\]]*\]")
_NUMBER = re.compile(r"(?<=[a-z]{4})(?=[1-9]\b)")
_NUMBERED = re.compile(r"(.*\D)([1-9]\d?)")
# Longer texts get lines of their own instead of a cell.
LONG_TEXT = 200
# A text of this length without a space is probably encoded.
_BLOB = re.compile(r"[A-Za-z0-9+/_=-]{200,}")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar, or an empty list or object; `name` is the argument that contains it."""

    path: str
    name: str
    value: Any


def collect_leaves(value: Mapping[str, Any]) -> list[Leaf]:
    """Collect every leaf, in the order of the arguments."""
    return [
        Leaf(path, name, leaf)
        for name, part in value.items()
        for path, leaf in _walk_leaves(part, _format_key(name).removeprefix("."))
    ]


def sort_by_schema(value: Any, schema: Any, root: schemas.Schema | None = None) -> Any:
    """Sort the members of objects as the schema's `required` lists them, others last. A
    numbered member follows its predecessor (`line2` after `line1`), even if it is
    optional. Canonical bytes sort members by name, and nobody reads an address in that
    order."""
    if not isinstance(schema, Mapping):
        return value
    root = schema if root is None else root
    resolved = schemas.resolve_reference(schema, root)
    if isinstance(value, list):
        return [sort_by_schema(item, resolved.get("items"), root) for item in value]
    if not isinstance(value, Mapping):
        return value
    parts = resolved.get("properties", {})
    names = _sort_names(resolved.get("required", ()), value)
    return {
        name: sort_by_schema(value[name], parts.get(name), root)
        for name in names
        if name in value
    }


def _sort_names(required: Iterable[str], given: Iterable[str]) -> list[str]:
    """The required names in order, then the others; `line2` follows `line1`."""
    names = list(dict.fromkeys(required))
    for name in given:
        if name in names:
            continue
        numbered = _NUMBERED.fullmatch(name)
        before = f"{numbered[1]}{int(numbered[2]) - 1}" if numbered else ""
        if numbered and before not in names:
            before = numbered[1]  # address, address2
        at = names.index(before) + 1 if before in names else len(names)
        names.insert(at, name)
    return names


def find_value(value: Any, path: str) -> Any:
    """The value at a dotted path of objects, or `ABSENT`."""
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return ABSENT
        value = value[name]
    return value


def is_path_within(path: str, outer: str) -> bool:
    """Whether `path` is `outer` or lies inside it."""
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))


def drop_indexes(path: str) -> str:
    """The path of a leaf without its places in lists: the argument as declared."""
    return _ANY_STEP.sub("", path)


def build_cell(value: Any, conceal: Conceal | None = None) -> Cell:
    """Build the cell of a leaf; `conceal` gives the text of a sensitive one."""
    text, kind = _describe_value(value)
    if conceal is not None:
        return Cell(conceal(json.dumps(value, ensure_ascii=False)), "sensitive")
    return Cell(text, kind, long=len(text) > LONG_TEXT or "\n" in text)


def is_encoded_text(value: Any) -> bool:
    """Whether a text looks encoded, so that nobody can read its content."""
    return isinstance(value, str) and _BLOB.search(value) is not None


def is_empty_value(value: Any) -> bool:
    """Whether a value empties its field: null, or an empty text, list or object."""
    return value is None or value in ("", [], {})


def format_label(path: str, labels: Mapping[str, str]) -> str:
    """The declared label of a path or of the argument around it, else the path in
    words."""
    if path in labels:
        return labels[path]
    plain = _INDEX_STEP.sub("", path)
    words = labels.get(plain) or _format_nested_label(plain, labels)
    return f"{words} {format_place(path)}".strip()


def format_place(path: str) -> str:
    """The numbers of a path's entries in its lists, counted from 1."""
    return " ".join(str(int(n) + 1) for n in _INDEX_STEP.findall(path))


def _format_nested_label(path: str, labels: Mapping[str, str]) -> str:
    head, dot, rest = path.partition(".")
    first = labels.get(head) or humanise_name(head)
    return f"{first}, {humanise_name(rest).lower()}" if dot else first


def format_count(number: int, noun: str) -> str:
    """A number with its noun: `1 link`, `2 links`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def humanise_name(name: str) -> str:
    """Write a field name as words: `order_id` as `Order ID`, `line1` as `Line 1`."""
    words = re.sub(r"[_.\s-]+", " ", name).strip() or name
    words = _NUMBER.sub(" ", words)
    label = " ".join(
        KNOWN_WORDS.get(word.casefold(), word) for word in words.split(" ")
    )
    return label[:1].upper() + label[1:]


def _walk_leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from _walk_leaves(part, path + _format_key(key))
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for index, part in enumerate(value):
            yield from _walk_leaves(part, f"{path}[{index}]")
    else:
        yield path, value


def _format_key(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key):
        return f".{key}"
    return f"[{json.dumps(key, ensure_ascii=False)}]"


def _describe_value(value: Any) -> tuple[str, str]:
    if isinstance(value, bool):
        return ("yes" if value else "no"), "yes or no"
    if value is None:
        return "none", "nothing"
    if isinstance(value, str):
        return value, "text" if value else "empty text"
    if isinstance(value, int | float):
        return json.dumps(value), "number"
    return ("no entries", "empty list") if value == [] else ("no fields", "empty group")


_SNAKE_CASE = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+")
_MOMENTS = {"date-time", "date"}
# The kinds of a cell with their types in JSON Schema. An empty text prints nothing, and
# null prints `none`, which may also be a text: both always show their type.
_SCHEMA_TYPES = {
    "number": ("number", "integer"),
    "yes or no": ("boolean",),
    "empty list": ("array",),
    "empty group": ("object",),
}


def is_type_fixed(schema: schemas.Schema, path: str, kind: str) -> bool:
    """Whether the schema allows only the type `kind` for the value at this path."""
    if kind not in _SCHEMA_TYPES:
        return False
    called = _find_schema(schema, path).get("type")
    return isinstance(called, str) and called in _SCHEMA_TYPES[kind]


def is_declared(schema: schemas.Schema, path: str) -> bool:
    """Whether the schema names the value at this path of the arguments."""
    return schemas.find_declared(schema, _INDEX_STEP.sub("", path)) is not None


def list_enum_values(schema: schemas.Schema, path: str) -> tuple[str, ...]:
    """The texts that the schema allows at this path; empty if it allows any text."""
    listed = _find_schema(schema, path).get("enum", ())
    return tuple(text for text in listed if isinstance(text, str))


def build_enum_words(schema: schemas.Schema, path: str) -> dict[str, str]:
    """The listed texts in words, by text: `not_received` is "not received". Only
    snake-case names are included, and none of two that read alike in words."""
    words_of = {text: text.replace("_", " ") for text in list_enum_values(schema, path)}
    readings = list(words_of.values())
    return {
        text: words
        for text, words in words_of.items()
        if _SNAKE_CASE.fullmatch(text) and readings.count(words) == 1
    }


def is_moment(schema: schemas.Schema, path: str) -> bool:
    """Whether the schema declares the value at this path a date or a date-time."""
    return _find_schema(schema, path).get("format") in _MOMENTS


def _find_schema(schema: schemas.Schema, path: str) -> Mapping[str, Any]:
    if '["' in path:  # of a key that is no plain name, which no schema lists
        return {}
    declared = schemas.find_declared(schema, _INDEX_STEP.sub("", path)) or {}
    if path.endswith("]"):
        return schemas.resolve_reference(declared.get("items"), schema)
    return declared


_PERSONAL = re.compile(
    r"e_?mail|phone|mobile|first_?name|last_?name|full_?name|surname|birth|dob\b|gender"
    r"|address|street|zip|postcode|postal|iban|card_?(number|no)|account_?number|ssn"
    r"|social_?security|passport|national_?id|tax_?id|salary|health|diagnos|religion"
    r"|ethnic|location|ip_?addr",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"passw|secret|token|api_?key|access_?key|private_?key|credential|session|cookie"
    r"|authorization|signature|(^|[_.-])(auth|otp|pin|pwd|jwt)($|[_.-])",
    re.IGNORECASE,
)


def is_personal_name(name: str) -> bool:
    """Whether the name of a field suggests data about a person."""
    return _PERSONAL.search(name) is not None


def is_secret_name(name: str) -> bool:
    """Whether the name of a field suggests a credential."""
    return _SECRET.search(name) is not None
