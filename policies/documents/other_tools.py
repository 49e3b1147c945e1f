"""Checks of the tools that another tool names, as its reader or to undo its effect:
they exist, accept the arguments that they get, and a reader only reads. Pure.

The members of a result cannot be checked, because tools do not declare their results.
Each check yields (path, message), as `checks` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from journal.errors import FieldError

from ..choices import ExecutionClass, Risk, Tier
from ..schemas import InvalidSchema, find_declared, list_errors, resolve_reference
from .definitions import ToolDefinition
from .document import Document
from .names import SOURCE_PATTERN
from .targets import Compensation, ToolReader
from .wording import Problem, describe_unknown_tool, suggest_name


def list_other_tool_problems(document: Document) -> Iterator[Problem]:
    """The problems of all compensations and readers that are tools."""
    for field in ("compensation", "reader"):
        for name, tool in document.tools.items():
            mapping = getattr(tool, field)
            if isinstance(mapping, Compensation | ToolReader):
                path = f"tools.{name}.{field}"
                yield from _examine_mapping(document, tool, mapping, path)


def _examine_mapping(
    document: Document,
    tool: ToolDefinition,
    mapping: Compensation | ToolReader,
    path: str,
) -> Iterator[Problem]:
    target = document.tools.get(mapping.tool)
    if target is None:
        yield f"{path}.tool", describe_unknown_tool(mapping.tool, document)
        return
    if isinstance(mapping, ToolReader):
        for wrong in _list_unfit_reasons(target):
            yield f"{path}.tool", f"{target.name} cannot be a reader: {wrong}"
    yield from _list_argument_problems(tool, target, mapping, path)
    if isinstance(mapping, ToolReader):
        for name, (kind, _) in mapping.sources.items():
            if kind == "result":
                message = "a reader runs before there is a result: write $args"
                yield f"{path}.args.{name}", message
        yield from _list_take_problems(tool, mapping, path)


def _list_unfit_reasons(target: ToolDefinition) -> Iterator[str]:
    tiers = {target.base, *(c.base for c in target.classes or [])}
    if tiers != {Tier.AUTO}:
        yield "its tier is not auto"
    if target.risk is not Risk.LOW or target.profile.blast_radius > 1:
        yield "its risk must be low and its blast radius 1"
    if target.by_agent:
        yield "its agent performs it, so Counterseal cannot call it"
    if target.execution_class is not ExecutionClass.KEYED:
        yield "it is called repeatedly: write execution_class: keyed"


def _list_take_problems(
    tool: ToolDefinition, reader: ToolReader, path: str
) -> Iterator[Problem]:
    declared = [*tool.keys, *tool.facts, *tool.preconditions]
    for name, source in reader.take.items():
        where, match = f"{path}.take.{name}", SOURCE_PATTERN.fullmatch(source)
        if name not in declared:
            hint = suggest_name(name, declared)
            yield where, f"{name} is not a key, fact or precondition of this tool{hint}"
        if match is None or match[1] != "result":
            yield where, "write $result.name, a member of the tool's result"


def _list_argument_problems(
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
