"""Generates docs/policy-reference.md and the JSON Schema of the policy document from
its pydantic models.

`reference.md` beside this module is the frame. The description of a part is its model's
docstring, and that of a field is the comment above it or beside it in the source.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from . import conditions
from .calendars import format_duration
from .documents import Document
from .documents.argument_roles import PRESENTERS, ROLES

_TYPE_NAMES: Mapping[type, str] = {
    str: "text",
    bool: "true | false",
    int: "whole number",
    timedelta: "duration",
    date: "date",
}
_FIELD = re.compile(r"^    (\w+): ")


def render_schema() -> str:
    """The JSON Schema of a policy document, as text for docs/policy.schema.json."""
    schema = Document.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    # The models add these two keys by themselves.
    for model, key in (("ToolDefinition", "name"), ("ToolReader", "kind")):
        schema["$defs"][model]["required"].remove(key)
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def render_page() -> str:
    """The text of docs/policy-reference.md."""
    page = Path(__file__).with_name("reference.md").read_text("utf-8")
    sections = {
        "models": "\n".join(_render_part(model) for model in _list_models()),
        "views": _render_views(),
        "variables": _render_variables(),
    }
    for name, section in sections.items():
        page = page.replace(f"<!-- {name} -->\n", section)
    return page


def _list_models() -> list[type[BaseModel]]:
    """The document's model, then those of its parts, depth first in field order."""
    models: dict[type[BaseModel], None] = {}
    _collect_models(Document, models)
    return list(models)


def _collect_models(annotation: Any, models: dict[type[BaseModel], None]) -> None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation in models:
            return
        models[annotation] = None
        for field in annotation.model_fields.values():
            _collect_models(field.annotation, models)
    for inner in get_args(annotation):
        _collect_models(inner, models)


def _render_part(model: type[BaseModel]) -> str:
    comments = _read_comments(model)
    rows = [
        f"| `{field.alias or name}` | {_format_type(field)} | "
        f"{_format_default(field)} | {comments.get(name, '')} |"
        for name, field in model.model_fields.items()
    ]
    lines = ["| key | value | default | |", "| --- | --- | --- | --- |", *rows]
    title = "The document" if model is Document else model.__name__
    return "\n".join([f"## {title}\n", inspect.getdoc(model) or "", "", *lines, ""])


def _format_type(field: Any) -> str:
    text = re.sub(r"[\w]+\.", "", _describe_annotation(field.annotation))
    return f"`{text}`".replace("|", "or")


def _describe_annotation(annotation: Any) -> str:
    inner = get_args(annotation)
    if isinstance(annotation, type) and not inner:
        return _describe_class(annotation)
    if hasattr(annotation, "__metadata__"):
        return _describe_annotation(inner[0])
    origin = get_origin(annotation)
    if origin is Literal:
        return " | ".join(map(str, inner))
    if origin in (list, dict):
        return f"{origin.__name__} of {', '.join(map(_describe_annotation, inner))}"
    return (
        " | ".join(_describe_annotation(p) for p in inner if p is not type(None))
        or "any"
    )


def _describe_class(kind: type) -> str:
    if issubclass(kind, StrEnum):
        return " | ".join(kind)
    return _TYPE_NAMES.get(kind, kind.__name__)


def _format_default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "its own defaults"
    if isinstance(value, Mapping):
        value = {str(key): entry for key, entry in value.items()}
    if isinstance(value, timedelta):
        value = format_duration(value)
    return "none" if value in (None, "", [], {}) else f"`{value}`"


def _read_comments(model: type[BaseModel]) -> dict[str, str]:
    """Field name -> the comment above it or beside it in the source."""
    comments: dict[str, str] = {}
    above: list[str] = []
    bases = [base for base in reversed(model.__mro__) if issubclass(base, BaseModel)]
    sources = [inspect.getsource(base) for base in bases if base != BaseModel]
    for line in "".join(sources).splitlines():
        field, comment = _FIELD.match(line), line.partition("  # ")[2]
        if line.strip().startswith("# "):
            above.append(line.strip()[2:])
        elif field:
            comments[field[1]] = " ".join([*above, comment]).strip()
            above = []
        elif not line.strip():
            above = []
    return comments


def _render_views() -> str:
    rows = []
    for name in sorted(PRESENTERS):
        parts = ROLES.get(name, {})
        usual = "; ".join(f"`{part}`: {', '.join(n)}" for part, n in parts.items())
        rows.append(f"| `{name}` | {usual} |\n")
    return "".join(rows)


def _render_variables() -> str:
    """The variables of conditions, with the comments in `conditions.VARIABLES`."""
    source = inspect.getsource(conditions).partition("VARIABLES = {")[2]
    rows = re.findall(r'\s+"(\w+)":.*  # (.*)', source.partition("}")[0])
    return "".join(f"| `{name}` | {comment} |\n" for name, comment in rows)
