"""The edit form of a tool's arguments: native typed inputs made from its JSON Schema.

Pure. What the form cannot give back exactly as it was is locked, so that an unnoticed
change can never be approved.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from journal.errors import FieldError
from policies import schemas
from policies.documents import ToolDefinition

PREFIX = "arg."
DEEPEST = 3
LONG = 80  # characters; above it a text area
MISSING = object()
Kind = Literal["line", "text", "choice", "boolean", "lines", "locked"]
NUMBERS = {"integer", "number"}
INVISIBLE = "Has characters that a form would lose. It stays as proposed."
TOO_DEEP = "Cannot be edited here. It stays as proposed."
HIDDEN = "Hidden. It stays as proposed."
CURRENCY = "Locked by the tool"


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    label: str
    selected: bool


@dataclass(frozen=True, slots=True)
class Field:
    """One argument as an input. `was_value` is what the proposal's input would hold."""

    name: str
    id: str
    label: str
    kind: Kind
    value: str
    was: str
    was_value: str
    required: bool = True
    options: Sequence[Option] = ()
    locked: str = ""
    error: str = ""
    hint: str = ""
    inputmode: str = ""
    input_type: str = "text"

    @property
    def changed(self) -> bool:
        return self.value != self.was_value


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One argument with its place, schema and proposed value."""

    path: tuple[str, ...]
    schema: Mapping[str, Any]
    value: Any
    required: bool
    locked: str = ""

    @property
    def name(self) -> str:
        return PREFIX + ".".join(self.path)

    @property
    def types(self) -> set[str]:
        kinds = self.schema.get("type", [])
        return {kinds} if isinstance(kinds, str) else set(kinds)


class BadValue(ValueError):
    """What was typed is not a value of this argument's type."""


def fields(
    definition: ToolDefinition,
    args: Mapping[str, Any],
    *,
    labels: Mapping[str, str],
    data: Mapping[str, str] | None = None,
    errors: Iterable[FieldError] = (),
) -> list[Field]:
    """The inputs, filled with the proposal or with what was typed."""
    wrong = {_plain(error["path"]): error["message"] for error in errors}
    return [
        _field(leaf, labels, data, wrong.get(".".join(leaf.path), ""), definition)
        for leaf in _leaves(definition, args)
    ]


def read(
    definition: ToolDefinition, args: Mapping[str, Any], data: Mapping[str, str]
) -> tuple[dict[str, Any], list[FieldError]]:
    """The edited arguments, and what could not be read as the argument's type."""
    result = _copied(args)
    wrong: list[FieldError] = []
    for leaf in _leaves(definition, args):
        if leaf.locked:
            continue
        try:
            _put(result, leaf.path, _typed(leaf, data))
        except BadValue as error:
            path = "args." + ".".join(leaf.path)
            wrong.append({"path": path, "message": str(error)})
    return result, wrong


def unplaced(
    fields_: Iterable[Field], errors: Iterable[FieldError]
) -> list[FieldError]:
    """Errors that belong to no input and are said above the form."""
    shown = {field.name.removeprefix(PREFIX) for field in fields_ if field.error}
    return [error for error in errors if _plain(error["path"]) not in shown]


def _plain(path: str) -> str:
    """`args.to[0]` and `/args/to/0` name the input `to`."""
    plain = path.replace("/", ".").strip(".").split("[", 1)[0]
    return plain.removeprefix("args").strip(".")


def _leaves(definition: ToolDefinition, args: Mapping[str, Any]) -> Iterator[_Leaf]:
    root = definition.arguments
    for leaf in _walk(root, root, args, ()):
        yield _guarded(leaf, definition)


def _walk(
    schema: Mapping[str, Any],
    root: Mapping[str, Any],
    value: Mapping[str, Any],
    path: tuple[str, ...],
) -> Iterator[_Leaf]:
    declared = schema.get("properties", {})
    required = set(schema.get("required", ()))
    for name in [*declared, *(key for key in value if key not in declared)]:
        part = schemas.resolve(declared.get(name, {}), root)
        inner = value.get(name, MISSING)
        leaf = _Leaf((*path, name), part, inner, name in required)
        if _opens(leaf):
            under = {} if inner is MISSING else inner
            yield from _walk(part, root, under, leaf.path)
        else:
            yield leaf


def _opens(leaf: _Leaf) -> bool:
    """Whether an object is shown as inputs of its own: declared and really there."""
    inner = leaf.schema.get("properties")
    return bool(inner) and isinstance(leaf.value, dict) and len(leaf.path) < DEEPEST


def _guarded(leaf: _Leaf, definition: ToolDefinition) -> _Leaf:
    dotted = ".".join(leaf.path)
    why = ""
    if {dotted, leaf.path[0]} & {*definition.sensitive, *definition.redact}:
        why = HIDDEN
    elif any(dotted == money.currency for money in definition.money):
        why = CURRENCY
    elif not _fits_an_input(leaf):
        why = TOO_DEEP
    elif _loses(leaf.value):
        why = INVISIBLE
    return _Leaf(leaf.path, leaf.schema, leaf.value, leaf.required, why)


def _fits_an_input(leaf: _Leaf) -> bool:
    value = leaf.value
    if "const" in leaf.schema:
        return False
    if value is MISSING:
        return bool(leaf.types & {"string", "boolean", *NUMBERS}) or _lists_text(leaf)
    if isinstance(value, list):
        return all(isinstance(item, str) and "\n" not in item for item in value)
    return isinstance(value, str | bool | int | float)


def _lists_text(leaf: _Leaf) -> bool:
    return (
        "array" in leaf.types and leaf.schema.get("items", {}).get("type") == "string"
    )


def _loses(value: Any) -> bool:
    """Controls and invisible characters do not come back from a browser, or unseen."""
    texts = value if isinstance(value, list) else [value]
    return any(
        unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
        for text in texts
        if isinstance(text, str)
        for char in text
        if char not in "\n\t"
    )


def _kind(leaf: _Leaf) -> Kind:
    if leaf.locked:
        return "locked"
    if "enum" in leaf.schema:
        return "choice"
    if isinstance(leaf.value, list) or _lists_text(leaf):
        return "lines"
    if isinstance(leaf.value, bool) or leaf.types == {"boolean"}:
        return "boolean"
    text = leaf.value if isinstance(leaf.value, str) else ""
    longest = leaf.schema.get("maxLength", 0)
    return "text" if "\n" in text or max(len(text), longest) > LONG else "line"


def _field(
    leaf: _Leaf,
    labels: Mapping[str, str],
    data: Mapping[str, str] | None,
    error: str,
    definition: ToolDefinition,
) -> Field:
    was = _was(leaf)
    value = was if data is None or leaf.locked else _sent(leaf, data)
    money = {pair.amount for pair in definition.money}
    return Field(
        name=leaf.name,
        id="id_" + leaf.name.replace(".", "-"),
        label=_label(leaf.path, labels),
        kind=_kind(leaf),
        value=value,
        was="not set" if leaf.value is MISSING else was or "empty",
        was_value=was,
        required=leaf.required,
        options=_options(leaf, value),
        locked=leaf.locked,
        error=error,
        hint="One a line" if _kind(leaf) == "lines" else "",
        inputmode=_inputmode(leaf, money),
    )


def _was(leaf: _Leaf) -> str:
    """What the input holds for the proposal; a box that is not set is not ticked."""
    if leaf.locked == HIDDEN:
        return HIDDEN
    if leaf.value is MISSING and _kind(leaf) == "boolean":
        return "false"
    return _shown(leaf.value)


def _label(path: tuple[str, ...], labels: Mapping[str, str]) -> str:
    known = labels.get(".".join(path))
    return known or ", ".join(part.replace("_", " ").capitalize() for part in path)


def _inputmode(leaf: _Leaf, money: set[str]) -> str:
    number = leaf.types & NUMBERS or ".".join(leaf.path) in money
    return "decimal" if number else ""


def _options(leaf: _Leaf, value: str) -> list[Option]:
    choices = [_shown(item) for item in leaf.schema.get("enum", [])]
    if not leaf.required and "" not in choices:
        choices.insert(0, "")
    return [
        Option(said, said.replace("_", " ") or "not set", said == value)
        for said in choices
    ]


def _shown(value: Any) -> str:
    """A value as its input holds it."""
    if value is MISSING or value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "\n".join(_shown(item) for item in value)
    if isinstance(value, dict):
        inner = (f"{name}: {_shown(item)}" for name, item in value.items())
        return "; ".join(inner)
    return str(value)


def _sent(leaf: _Leaf, data: Mapping[str, str]) -> str:
    """What was typed; an unticked box is not sent at all."""
    if _kind(leaf) == "boolean":
        return "true" if data.get(leaf.name) == "true" else "false"
    return data.get(leaf.name, "").replace("\r\n", "\n")


def _typed(leaf: _Leaf, data: Mapping[str, str]) -> Any:
    """The value that was typed; MISSING leaves an optional argument out."""
    sent = _sent(leaf, data)
    unset = leaf.value is MISSING or leaf.value is None
    if sent == _shown(leaf.value) or (unset and sent in {"", "false"}):
        return leaf.value
    if not sent and not leaf.required:
        return MISSING
    match _kind(leaf):
        case "boolean":
            return sent == "true"
        case "choice":
            return _chosen(leaf, sent)
        case "lines":
            return [line for line in sent.split("\n") if line.strip()]
        case _:
            return _number(sent) if leaf.types & NUMBERS else sent


def _chosen(leaf: _Leaf, sent: str) -> Any:
    for item in leaf.schema["enum"]:
        if _shown(item) == sent:
            return item
    raise BadValue("choose one of the list")


def _number(sent: str) -> int | float:
    try:
        value = int(sent) if sent.lstrip("-").isdecimal() else float(sent)
    except ValueError:
        raise BadValue("must be a number") from None
    if not math.isfinite(value):
        raise BadValue("must be a number")
    return value


def _copied(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _copied(item) if isinstance(item, dict) else item
        for name, item in value.items()
    }


def _put(target: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *way, last = path
    for name in way:
        target = target[name]
    if value is MISSING:
        target.pop(last, None)
    else:
        target[last] = value
