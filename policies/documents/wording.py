"""Error messages for single fields, which tell the author what to write instead. Pure.

Pydantic's own messages are about validators, union branches and patterns, which the
author of a policy should not have to know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

from .document import Document
from .names import LETTERS

_QUOTED = re.compile(r"'([^']*)'")
_SHAPES = {
    "bool_type": "write true or false",
    "dict_type": "write keys and values here",
    "model_type": "write keys and values here",
    "model_attributes_type": "write keys and values here",
    "mapping_type": "write keys and values here",
    "list_type": "write a list here",
    "string_type": "write a text here; put it in quotes",
    "int_type": "write a whole number",
    "int_parsing": "write a whole number",
    "missing": "this key is missing",
}


def rephrase(error: Mapping[str, Any]) -> str:
    """The message for one of pydantic's errors, without pydantic's internals."""
    kind, context = str(error["type"]), error.get("ctx") or {}
    if kind in _SHAPES:
        return _SHAPES[kind]
    if kind in _SAID:
        return _SAID[kind](error, context)
    message = str(error["msg"]).removeprefix("Value error, ")
    return message.replace("Input should be", "this should be")


def suggest(name: object, known: Iterable[object], *, most: int = 12) -> str:
    """A hint for an unknown name: the closest known one, or all of them if there are at
    most `most`; empty if there is neither.

    It begins with a semicolon, to follow the message about the name.
    """
    names = sorted({str(one) for one in known})
    if close := get_close_matches(str(name), names, n=1):
        return f"; did you mean {close[0]}?"
    if not names or len(names) > most:
        return ""
    return f"; write {_either(names)}"


def unknown_tool(name: str, document: Document) -> str:
    """The message for the name of a tool that the document does not have."""
    return f"{name} is not a tool of this policy{suggest(name, document.tools)}"


def _either(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]


def _unknown(error: Mapping[str, Any], _: Mapping[str, Any]) -> str:
    hint = suggest(error["loc"][-1], _field_names()) if error["loc"] else ""
    return f"nothing reads this key{hint if 'mean' in hint else '; remove it'}"


def _choice(_: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    said = str(context.get("expected") or context.get("expected_tags") or "")
    return f"write {_either(_QUOTED.findall(said)) or said}"


def _kind_missing(_: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    return "say which kind it is: this key is missing"


def _pattern(_: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    pattern = str(context.get("pattern"))
    return LETTERS.get(pattern) or f"this does not match {pattern}"


def _length(_: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    if "max_length" in context:
        return f"this is too long: at most {context['max_length']}"
    return f"this is too short: at least {context['min_length']}"


_SAID: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], str]] = {
    "extra_forbidden": _unknown,
    "enum": _choice,
    "literal_error": _choice,
    "union_tag_invalid": _choice,
    "union_tag_not_found": _kind_missing,
    "string_pattern_mismatch": _pattern,
    "string_too_long": _length,
    "string_too_short": _length,
    "too_long": _length,
    "too_short": _length,
}


def _field_names() -> set[str]:
    """Every key of any part of a document."""
    return set(_fields(Document, set()))


def _fields(model: Any, seen: set[Any]) -> Iterator[str]:
    if isinstance(model, type) and issubclass(model, BaseModel):
        if model in seen:
            return
        seen.add(model)
        for name, field in model.model_fields.items():
            yield field.alias or name
            yield from _fields(field.annotation, seen)
    for inner in get_args(model):
        yield from _fields(inner, seen)
