"""Checks of the `amounts` that a tool declares. Pure.

Each check yields (path, message), as `checks` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..schemas import find_declared, resolve_reference
from .amounts import Amount, ArgumentPath
from .definitions import ToolDefinition
from .wording import suggest_name

Problem = tuple[str, str]


def list_amount_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    """The problems of a tool's `amounts`: each must exist, be money, and be named only
    once."""
    for number, amount in enumerate(tool.amounts):
        where = f"{path}.amounts.{number}"
        if amount.fact:
            yield from _list_fact_problems(tool, amount.fact, f"{where}.fact")
        elif amount.path:
            yield from _list_argument_problems(
                tool, amount, ArgumentPath(amount.path), where
            )
    for name, times in Counter(list_amount_names(tool)).items():
        if times > 1:
            yield f"{path}.amounts", f"{name} is counted twice: list it once"


def list_amount_names(tool: ToolDefinition) -> list[str]:
    """The names of the tool's amounts, as measures may name them."""
    return [*(pair.amount for pair in tool.money), *(one.name for one in tool.amounts)]


def list_currencies(tool: ToolDefinition) -> list[str]:
    """The arguments, or codes, that `money` and `amounts` declare as currencies."""
    paths = [one.currency for one in tool.amounts if one.currency]
    return [*(pair.currency for pair in tool.money), *paths]


def _list_fact_problems(
    tool: ToolDefinition, fact: str, path: str
) -> Iterator[Problem]:
    if tool.reader is None:
        yield path, "only a reader resolves facts: declare reader"
        return
    for name in (fact, f"{fact}_currency"):
        if name not in tool.facts:
            hint = suggest_name(name, tool.facts) or "; add it there"
            yield path, f"{name} is not among the tool's facts{hint}"


def _list_argument_problems(
    tool: ToolDefinition, amount: Amount, at: ArgumentPath, path: str
) -> Iterator[Problem]:
    yield from _list_path_problems(tool, at, ("string",), f"{path}.path")
    for field, kinds in (("currency", ("string",)), ("times", ("integer",))):
        text = getattr(amount, field)
        if text is None or (field == "currency" and _is_code(tool, amount)):
            continue
        beside = ArgumentPath(text)
        yield from _list_path_problems(tool, beside, kinds, f"{path}.{field}")
        if not beside.beside(at):
            yield f"{path}.{field}", f"{text} is not in the same list as {at.text}"


def _is_code(tool: ToolDefinition, amount: Amount) -> bool:
    return bool(amount.code) and find_declared(tool.arguments, amount.code) is None


def _list_path_problems(
    tool: ToolDefinition, at: ArgumentPath, kinds: Sequence[str], path: str
) -> Iterator[Problem]:
    """The problems of one path: the schema must declare it, it must mark each list on
    the way with [*], and its value must be of one of `kinds`."""
    part = find_declared(tool.arguments, at.dotted)
    if part is None:
        hint = suggest_name(at.dotted, tool.arguments.get("properties", {}))
        yield path, f"{at.text} is not an argument of this tool{hint}"
        return
    for number, step in enumerate(at.steps, 1):
        name = ".".join(one.name for one in at.steps[:number])
        found = find_declared(tool.arguments, name) or {}
        kinds_here = found.get("type", "")
        is_list = "array" in (
            [kinds_here] if isinstance(kinds_here, str) else kinds_here
        )
        if is_list != step.each:
            said = "a list: write" if not step.each else "not a list: remove"
            yield path, f"{name} is {said} [*] after {step.name}"
            return
    if at.steps[-1].each:
        part = resolve_reference(part.get("items", {}), tool.arguments)
    if part.get("type") not in kinds and not ("string" in kinds and "enum" in part):
        word = (
            "a string: money is never a number"
            if "string" in kinds
            else "a whole number"
        )
        yield path, f"{at.text} must be {word}"
