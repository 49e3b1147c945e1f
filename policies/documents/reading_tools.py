"""Checks of tools that another tool names as its reader: such a tool only reads, needs
no approval, and accepts the arguments that it will get. Pure.

Each check yields (path, message), as `checks` does.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..choices import ExecutionClass, Risk, Tier
from . import reversals
from .definitions import ToolDefinition
from .document import Document
from .names import SOURCE_PATTERN
from .targets import ToolReader
from .wording import describe_unknown_tool, suggest_name

Problem = tuple[str, str]


def list_reader_problems(document: Document) -> Iterator[Problem]:
    """The problems of all readers in a document that are tools."""
    for name, tool in document.tools.items():
        if isinstance(tool.reader, ToolReader):
            path = f"tools.{name}.reader"
            yield from _examine_reader(document, tool, tool.reader, path)


def _examine_reader(
    document: Document, tool: ToolDefinition, reader: ToolReader, path: str
) -> Iterator[Problem]:
    target = document.tools.get(reader.tool)
    if target is None:
        yield f"{path}.tool", describe_unknown_tool(reader.tool, document)
        return
    for wrong in _list_unfit_reasons(target):
        yield f"{path}.tool", f"{target.name} cannot be a reader: {wrong}"
    yield from reversals.list_argument_problems(tool, target, reader, path)
    for name, (kind, _) in reader.sources.items():
        if kind == "result":
            yield (
                f"{path}.args.{name}",
                "a reader runs before there is a result: write $args",
            )
    yield from _list_take_problems(tool, reader, path)


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
