"""Checks of the `money` and `amounts` that a tool declares. Pure.

Each check yields (path, message), as `checks` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from .. import schemas
from ..schemas import find_declared
from .amounts import Amount, ArgumentPath, MoneyField, SentAmount
from .definitions import ToolDefinition
from .wording import Problem, suggest_name


def list_amount_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    """The problems of a tool's `money` and `amounts`: each must exist, be money, say
    what it means to leave it out where a call may, and be named only once."""
    for number, pair in enumerate(tool.money):
        yield from _list_pair_problems(tool, pair, number, f"{path}.money")
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
    return [amount.name for amount in tool.declared_amounts]


def list_currencies(tool: ToolDefinition) -> list[str]:
    """The arguments, or codes, that `money` and `amounts` declare as currencies."""
    return [a.currency for a in tool.declared_amounts if a.currency]


def _list_pair_problems(
    tool: ToolDefinition, pair: MoneyField, number: int, path: str
) -> Iterator[Problem]:
    declared = tool.arguments.get("properties", {})
    for name, unit in ((pair.amount, pair.unit), (pair.currency, None)):
        if name not in declared:
            yield path, f"{name} is not an argument of this tool"
        elif wrong := _describe_kind(tool, declared[name], unit):
            yield path, f"{name} must be {wrong}"
        elif name == pair.amount:
            where = f"{path}.{number}"
            yield from _list_absence_problems(tool, pair, pair.amount, where)


def _list_absence_problems(
    tool: ToolDefinition, sent: SentAmount, name: str, path: str
) -> Iterator[Problem]:
    """An amount that a call may leave out must say what that means; no other may."""
    optional = schemas.may_be_absent(tool.arguments, name)
    if optional and sent.absent is None:
        yield (
            f"{path}.absent",
            f"a call may leave out {name}, and the policy must say what it then moves:"
            " write absent: none for nothing or absent: all for everything, or let the"
            " schema require a value",
        )
    elif sent.absent and not optional:
        yield f"{path}.absent", f"a call never leaves out {name}: remove absent"
    if sent.whole:
        yield from _list_fact_problems(tool, sent.whole, f"{path}.whole")


def _describe_kind(tool: ToolDefinition, part: Any, unit: str | None) -> str:
    """What the argument of an amount or currency must be; empty if it is."""
    wanted = "integer" if unit else "string"
    if schemas.list_kinds(part, tool.arguments) - {"null"} == {wanted}:
        return ""
    if unit:
        return "a whole number: unit: minor is about integers"
    return (
        "a string: money is never a number; write unit: minor if it is an integer in"
        " the currency's smallest unit"
    )


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
    wrong = [*_list_path_problems(tool, at, f"{path}.path", unit=amount.unit)]
    yield from wrong or _list_absence_problems(tool, amount, at.text, path)
    for field, unit in (("currency", None), ("times", "whole")):
        text = getattr(amount, field)
        if text is None or (field == "currency" and _is_code(tool, amount)):
            continue
        beside = ArgumentPath(text)
        yield from _list_path_problems(tool, beside, f"{path}.{field}", unit=unit)
        if not beside.beside(at):
            yield f"{path}.{field}", f"{text} is not in the same list as {at.text}"


def _is_code(tool: ToolDefinition, amount: Amount) -> bool:
    return bool(amount.code) and find_declared(tool.arguments, amount.code) is None


def _list_path_problems(
    tool: ToolDefinition, at: ArgumentPath, path: str, *, unit: str | None
) -> Iterator[Problem]:
    """The problems of one path: the schema must declare it, it must mark each list on
    the way with [*], and its value must be a string, or with a `unit` an integer."""
    part: Any = find_declared(tool.arguments, at.dotted)
    if part is None:
        hint = suggest_name(at.dotted, tool.arguments.get("properties", {}))
        yield path, f"{at.text} is not an argument of this tool{hint}"
        return
    for number, step in enumerate(at.steps, 1):
        name = ".".join(step.name for step in at.steps[:number])
        declared = find_declared(tool.arguments, name)
        is_list = "array" in schemas.list_kinds(declared, tool.arguments)
        if is_list != step.each:
            correction = "a list: write" if not step.each else "not a list: remove"
            yield path, f"{name} is {correction} [*] after {step.name}"
            return
    if at.steps[-1].each:
        part = part.get("items", {})
    if wrong := _describe_kind(tool, part, unit):
        wanted = "a whole number" if unit == "whole" else wrong
        yield path, f"{at.text} must be {wanted}"
