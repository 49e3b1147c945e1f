"""What one call moves: every amount that its tool declares. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from journal.errors import FieldError, at

from . import money
from .documents import MoneyField, ToolDefinition


def of(definition: ToolDefinition, args: Mapping[str, Any]) -> dict[str, money.Money]:
    """What the arguments move: every declared amount that is there, by its name.
    Raises `InvalidMoney`."""
    return {
        field.amount: read(field, args)
        for field in definition.money
        if field.amount in args
    }


def read(field: MoneyField, args: Mapping[str, Any]) -> money.Money:
    """Two arguments as one amount. Raises `InvalidMoney`."""
    return money.parse(args.get(field.amount), args.get(field.currency))


def in_minor_units(
    definition: ToolDefinition, args: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments as rules see them: amounts are integers. Raises `InvalidMoney`."""
    found = of(definition, args)
    return {**args, **{name: amount.minor for name, amount in found.items()}}


def wrong(definition: ToolDefinition, args: Mapping[str, Any]) -> Iterator[FieldError]:
    """The amounts that are no money, by path; and all together, where that is more than
    one amount can be."""
    found = []
    for field in definition.money:
        if field.amount in args:
            try:
                found.append(read(field, args))
            except money.InvalidMoney as error:
                yield at(f"args.{field.amount}", str(error))
    if any(minor > money.MAX_MINOR for minor in money.totals(found).values()):
        yield at("args", f"its amounts are more than {money.MAX_MINOR} minor units")
