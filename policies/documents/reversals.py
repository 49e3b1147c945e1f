"""Checks that a declared compensation can be proposed: its tool exists and accepts the
arguments that the effect will give it. Pure.

The members of a result cannot be checked, because tools do not declare their results.
Each check yields (path, message), as `checks` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from journal.errors import FieldError

from ..schemas import InvalidSchema, find_declared, list_errors, resolve_reference
from .definitions import ToolDefinition
from .document import Document
from .targets import Compensation, ToolReader
from .wording import describe_unknown_tool, suggest_name

Problem = tuple[str, str]


def list_compensation_problems(document: Document) -> Iterator[Problem]:
    for name, tool in document.tools.items():
        if tool.compensation is not None:
            path = f"tools.{name}.compensation"
            yield from _examine_compensation(document, tool, tool.compensation, path)


def _examine_compensation(
    document: Document, tool: ToolDefinition, undoing: Compensation, path: str
) -> Iterator[Problem]:
    target = document.tools.get(undoing.tool)
    if target is None:
        yield f"{path}.tool", describe_unknown_tool(undoing.tool, document)
        return
    yield from list_argument_problems(tool, target, undoing, path)


def list_argument_problems(
    tool: ToolDefinition,
    target: ToolDefinition,
    mapping: Compensation | ToolReader,
    path: str,
) -> Iterator[Problem]:
    """The problems of a mapping from the arguments of `tool` to those of `target`."""
    takes = target.arguments.get("properties", {})
    for name, value in mapping.args.items():
        where = f"{path}.args.{name}"
        if name not in takes:
            hint = suggest_name(name, takes)
            yield where, f"{name} is not an argument of {target.name}{hint}"
        elif name in mapping.sources:
            yield from _list_source_problems(tool, *mapping.sources[name], where)
        elif isinstance(value, str) and value.startswith("$"):
            yield where, "write $args.name, $result.name or a plain value"
        else:
            yield from _list_literal_problems(target, name, value, where)
    for name in target.arguments.get("required", []):
        if name not in mapping.args:
            yield f"{path}.args", f"{target.name} requires {name}"


def _list_source_problems(
    tool: ToolDefinition, kind: str, place: str, path: str
) -> Iterator[Problem]:
    if kind == "result":
        return  # tools do not declare their results, so it is checked when it exists
    if find_declared(tool.arguments, place) is None:
        yield path, f"{place} is not an argument of this tool"
    elif place.split(".")[0] not in tool.arguments.get("required", []):
        yield path, f"{place} may be absent, so an argument cannot depend on it"


def _list_literal_problems(
    target: ToolDefinition, name: str, value: Any, path: str
) -> Iterator[Problem]:
    """The problems of a literal value, by the schema of this argument alone."""
    part = resolve_reference(
        target.arguments.get("properties", {}).get(name), target.arguments
    )
    for problem in _list_schema_errors(target, {name: value}) if part else []:
        if problem["path"].startswith(f"args.{name}"):
            yield path, problem["message"]


def _list_schema_errors(
    target: ToolDefinition, args: dict[str, Any]
) -> list[FieldError]:
    try:
        return list_errors(target.validator, args)
    except InvalidSchema:
        return []  # reported as a problem of the target itself
