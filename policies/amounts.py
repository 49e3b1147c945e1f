"""The amounts of money that one call moves, as its tool declares them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from journal import canonical
from journal.errors import FieldError, build_field_error

from . import money
from .documents import Amount, ArgumentPath, MoneyField, ToolDefinition
from .money import InvalidMoney, Money

_ABSENT = object()
ListIndexes = tuple[int, ...]  # the index into each list along a path, outermost first


class MovedAmount(NamedTuple):
    """One amount that a call moves. `name` is how the policy names it: an argument, a
    path, or `before.<fact>`."""

    name: str
    money: Money


def list_amounts(
    definition: ToolDefinition, args: Mapping[str, Any], before: Mapping[str, Any] = {}
) -> list[MovedAmount]:
    """Every declared amount that is present in a call; amounts in lists one by one.

    `before` are the reader's facts in the form for rules (`facts.parse_reader_facts`).
    A fact that is missing or no amount is left out; `list_unread_facts` names it.
    Raises `InvalidMoney` for an argument that is no amount.
    """
    found = [
        MovedAmount(field.amount, parse_money_field(field, args))
        for field in definition.money
        if field.amount in args
    ]
    for amount in definition.amounts:
        if amount.path:
            places = _find_places(amount, args)
            found += [
                MovedAmount(amount.name, _parse_amount(amount, args, one))
                for one in places
            ]
        elif (known := _find_fact_amount(amount, before)) is not None:
            found.append(MovedAmount(amount.name, known))
    return found


class PlacedAmount(NamedTuple):
    """One amount of a call with the indexes of the lists that it is in, and the
    canonical rest of its row, by which rows of two calls are compared."""

    name: str
    place: ListIndexes
    money: Money
    beside: bytes


def list_placed_amounts(
    definition: ToolDefinition, args: Mapping[str, Any], before: Mapping[str, Any]
) -> list[PlacedAmount]:
    """The amounts of `list_amounts`, each with its place. Raises `InvalidMoney`."""
    lists = [amount for amount in definition.amounts if amount.path]
    found = [
        PlacedAmount(one.name, (), one.money, b"")
        for one in list_amounts(definition, args, before)
        if one.name not in {amount.name for amount in lists}
    ]
    for amount in lists:
        found += [
            PlacedAmount(
                amount.name,
                place,
                _parse_amount(amount, args, place),
                _encode_rest(amount, args, place),
            )
            for place in _find_places(amount, args)
        ]
    return found


def _encode_rest(amount: Amount, args: Mapping[str, Any], place: ListIndexes) -> bytes:
    """The row of the innermost list that the amount is in, without the amount."""
    around = ArgumentPath(amount.path or "").list_of
    row = _find_value(args, f"{around}[*]", place) if around else {}
    own = {(path or "").rpartition(".")[2] for path in (amount.path, amount.times)}
    kept = row.items() if isinstance(row, Mapping) else ()
    return canonical.encode({name: one for name, one in kept if name not in own})


def list_unread_facts(
    definition: ToolDefinition, before: Mapping[str, Any]
) -> list[str]:
    """The names of facts that this tool declares as amounts and that are missing or no
    amount in `before`."""
    declared = [amount for amount in definition.amounts if amount.fact]
    return [str(one.fact) for one in declared if _find_fact_amount(one, before) is None]


def parse_money_field(field: MoneyField, args: Mapping[str, Any]) -> Money:
    """The amount in the two arguments of a `money` pair. Raises `InvalidMoney`."""
    return money.parse(args.get(field.amount), args.get(field.currency))


def to_minor_units(
    definition: ToolDefinition, args: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments in the form for rules: an argument that `money` names is an integer
    in minor units, and all others stay as they are. Raises `InvalidMoney`."""
    found = {
        field.amount: parse_money_field(field, args).minor
        for field in definition.money
        if field.amount in args
    }
    return {**args, **found}


def list_errors(
    definition: ToolDefinition, args: Mapping[str, Any]
) -> Iterator[FieldError]:
    """An error for each declared amount that is not valid money, and one where the
    total exceeds the largest amount."""
    found: list[Money] = []
    for field in definition.money:
        if field.amount in args:
            try:
                found.append(parse_money_field(field, args))
            except InvalidMoney as error:
                yield build_field_error(f"args.{field.amount}", str(error))
    for amount in definition.amounts:
        for place in _find_places(amount, args):
            try:
                found.append(_parse_amount(amount, args, place))
            except InvalidMoney as error:
                yield build_field_error(
                    f"args.{_format_place(ArgumentPath(amount.path or ''), place)}",
                    str(error),
                )
    if any(minor > money.MAX_MINOR for minor in money.sum_by_currency(found).values()):
        yield build_field_error(
            "args", f"its amounts are more than {money.MAX_MINOR} minor units"
        )


def _find_places(amount: Amount, args: Mapping[str, Any]) -> list[ListIndexes]:
    """The places at which the amount is present."""
    if amount.path is None:
        return []
    found: list[tuple[ListIndexes, Any]] = [((), args)]
    for step in ArgumentPath(amount.path).steps:
        inside = [(place, _find_member(value, step.name)) for place, value in found]
        there = [(place, value) for place, value in inside if value is not _ABSENT]
        found = list(_expand_lists(there)) if step.each else there
    return [place for place, _ in found]


def _expand_lists(
    found: Sequence[tuple[ListIndexes, Any]],
) -> Iterator[tuple[ListIndexes, Any]]:
    for place, value in found:
        for number, element in enumerate(value if isinstance(value, list) else ()):
            yield (*place, number), element


def _parse_amount(amount: Amount, args: Mapping[str, Any], place: ListIndexes) -> Money:
    """Raises `InvalidMoney`."""
    currency = _find_value(args, amount.currency, place)
    if currency is _ABSENT and amount.code:
        currency = amount.code
    one = money.parse(_find_value(args, amount.path, place), currency)
    if amount.times is None:
        return one
    times = _find_value(args, amount.times, place)
    if times is _ABSENT:
        return one
    if isinstance(times, bool) or not isinstance(times, int) or times < 0:
        raise InvalidMoney("how many of it is a whole number that is not negative")
    if one.minor * times > money.MAX_MINOR:
        raise InvalidMoney(f"the largest amount is {money.MAX_MINOR} minor units")
    return Money(one.minor * times, one.currency)


def _find_value(args: Mapping[str, Any], path: str | None, place: ListIndexes) -> Any:
    """The value at a path, with the indexes of `place` for the lists on the way;
    _ABSENT if there is none."""
    found: Any = args
    numbers = iter(place)
    for step in ArgumentPath(path or "").steps:
        found = _find_member(found, step.name)
        if step.each:
            number = next(numbers, None)
            inside = isinstance(found, list) and number is not None
            if not inside or number >= len(found):  # type: ignore[operator]
                return _ABSENT
            found = found[number]
    return found


def _find_member(value: Any, name: str) -> Any:
    return value.get(name, _ABSENT) if isinstance(value, Mapping) else _ABSENT


def _format_place(path: ArgumentPath, place: ListIndexes) -> str:
    """`items[2].price`."""
    numbers = iter(place)
    parts = (s.name + (f"[{next(numbers)}]" if s.each else "") for s in path.steps)
    return ".".join(parts)


def _find_fact_amount(amount: Amount, before: Mapping[str, Any]) -> Money | None:
    """A fact as an amount; None if it is missing, no amount, or negative."""
    minor, currency = (
        before.get(str(amount.fact)),
        before.get(f"{amount.fact}_currency"),
    )
    if isinstance(minor, bool) or not isinstance(minor, int) or minor < 0:
        return None
    return Money(minor, currency) if isinstance(currency, str) and currency else None
