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
from .names import PATTERN_HELP

Problem = tuple[str, str]  # a path and a message
MOST_COMPARED = 200  # known names among which a similar one is searched
LONGEST_COMPARED = 64  # characters of a name for which one is searched
_QUOTED = re.compile(r"'([^']*)'")
_SHAPES = {
    "bool_type": "write true or false",
    "dict_type": "write a mapping of keys to values",
    "model_type": "write a mapping of keys to values",
    "model_attributes_type": "write a mapping of keys to values",
    "mapping_type": "write a mapping of keys to values",
    "list_type": "write a list",
    "string_type": "write a string; put it in quotes",
    "int_type": "write a whole number",
    "int_parsing": "write a whole number",
    "missing": "this key is missing",
}


def rephrase_error(error: Mapping[str, Any]) -> str:
    """The message for one of pydantic's errors, without pydantic's internals."""
    kind, context = str(error["type"]), error.get("ctx") or {}
    if kind in _SHAPES:
        return _SHAPES[kind]
    if kind in _DESCRIBERS:
        return _DESCRIBERS[kind](error, context)
    message = str(error["msg"]).removeprefix("Value error, ")
    return message.replace("Input should be", "this should be")


def suggest_name(name: object, known: Iterable[object], *, most: int = 12) -> str:
    """A hint for an unknown name: the closest known one, or all of them if there are at
    most `most`; empty if there is neither.

    It begins with a semicolon, to follow the message about the name.
    """
    names = sorted({str(choice) for choice in known})
    similar = len(names) <= MOST_COMPARED and len(str(name)) <= LONGEST_COMPARED
    if similar and (close := get_close_matches(str(name), names, n=1)):
        return f"; did you mean {close[0]}?"
    if not names or len(names) > most:
        return ""
    return f"; write {_join_choices(names)}"


def describe_unknown_tool(name: str, document: Document) -> str:
    """The message for the name of a tool that the document does not have."""
    return f"{name} is not a tool of this policy{suggest_name(name, document.tools)}"


def _join_choices(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]


def _describe_unknown_key(error: Mapping[str, Any], _: Mapping[str, Any]) -> str:
    hint = suggest_name(error["loc"][-1], _list_field_names()) if error["loc"] else ""
    return f"this key is unknown{hint if 'mean' in hint else '; remove it'}"


def _describe_choice(_: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    expected = str(context.get("expected") or context.get("expected_tags") or "")
    return f"write {_join_choices(_QUOTED.findall(expected)) or expected}"


def _describe_missing_kind(_: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    return "this key is missing: write the kind"


def _describe_pattern(_: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    pattern = str(context.get("pattern"))
    return PATTERN_HELP.get(pattern) or f"this does not match {pattern}"


def _describe_length(_: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    if "max_length" in context:
        return f"this is too long: at most {context['max_length']}"
    return f"this is too short: at least {context['min_length']}"


_DESCRIBERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], str]] = {
    "extra_forbidden": _describe_unknown_key,
    "enum": _describe_choice,
    "literal_error": _describe_choice,
    "union_tag_invalid": _describe_choice,
    "union_tag_not_found": _describe_missing_kind,
    "string_pattern_mismatch": _describe_pattern,
    "string_too_long": _describe_length,
    "string_too_short": _describe_length,
    "too_long": _describe_length,
    "too_short": _describe_length,
}


def _list_field_names() -> set[str]:
    """Every key of any part of a document."""
    return set(_walk_fields(Document, set()))


def _walk_fields(model: Any, seen: set[Any]) -> Iterator[str]:
    if isinstance(model, type) and issubclass(model, BaseModel):
        if model in seen:
            return
        seen.add(model)
        for name, field in model.model_fields.items():
            yield field.alias or name
            yield from _walk_fields(field.annotation, seen)
    for inner in get_args(model):
        yield from _walk_fields(inner, seen)
