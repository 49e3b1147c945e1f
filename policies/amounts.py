"""The amounts of money that one call moves, as its tool declares them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    """Every declared amount that a call moves; amounts in lists one by one.

    An amount that the call leaves out is everything if the tool declares `absent: all`:
    what the reader's fact says, else `money.WHOLE`. `before` are the reader's facts in
    the form for rules (`facts.parse_reader_facts`). A fact that is missing or no amount
    is left out; `list_unread_facts` names it. Raises `InvalidMoney` for an argument
    that is no amount.
    """
    moved = []
    for field in definition.money:
        if not is_left_out(field, args):
            moved.append(MovedAmount(field.amount, parse_money_field(field, args)))
        elif field.absent == "all":
            whole = _find_whole(field, args.get(field.currency), before)
            moved.append(MovedAmount(field.amount, whole))
    for amount in definition.amounts:
        if amount.path:
            walked = _walk_sent_amounts(amount, args, before)
            moved += [MovedAmount(amount.name, sent) for _, sent, _ in walked]
        elif (known := _find_fact_amount(amount.fact, before)) is not None:
            moved.append(MovedAmount(amount.name, known))
    return moved


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
    placed = [
        PlacedAmount(moved.name, (), moved.money, b"")
        for moved in list_amounts(definition, args, before)
        if moved.name not in {amount.name for amount in lists}
    ]
    for amount in lists:
        for place, sent, given in _walk_sent_amounts(amount, args, before):
            rest = _encode_rest(amount, args, place) if given else b""
            placed.append(PlacedAmount(amount.name, place, sent, rest))
    return placed


def _encode_rest(amount: Amount, args: Mapping[str, Any], place: ListIndexes) -> bytes:
    """The row of the innermost list that the amount is in, without the amount."""
    around = ArgumentPath(amount.path or "").list_of
    row = _find_value(args, f"{around}[*]", place) if around else {}
    own = {(path or "").rpartition(".")[2] for path in (amount.path, amount.times)}
    members = row.items() if isinstance(row, Mapping) else ()
    return canonical.encode({name: value for name, value in members if name not in own})


def is_left_out(field: MoneyField, args: Mapping[str, Any]) -> bool:
    """Whether a call leaves the amount out: it does not have the argument, or it sends
    null and the policy says what that means."""
    return field.amount not in args or (
        args[field.amount] is None and field.absent is not None
    )


def list_absent(
    definition: ToolDefinition, args: Mapping[str, Any]
) -> list[MoneyField | Amount]:
    """The declared amounts of which this call leaves at least one out: it does not have
    the argument, or sends null or an empty list."""
    fields = [field for field in definition.money if is_left_out(field, args)]
    paths = [
        amount
        for amount in definition.amounts
        if not all(given for _, given in _walk_places(amount, args))
    ]
    return [*fields, *paths]


def list_absent_wholes(
    definition: ToolDefinition, args: Mapping[str, Any], before: Mapping[str, Any] = {}
) -> dict[str, int]:
    """The arguments that rules compare with figures, that this call leaves out, and
    that count as everything: what each counts as, in minor units."""
    return {
        sent.name: _find_whole(sent, None, before).minor
        for sent in list_absent(definition, args)
        if sent.absent == "all" and sent.name in definition.plain_amounts
    }


def list_unread_facts(
    definition: ToolDefinition, before: Mapping[str, Any]
) -> list[str]:
    """The facts declared as amounts that are missing or no amount in `before`."""
    declared = [amount.fact for amount in definition.amounts if amount.fact]
    return [fact for fact in declared if _find_fact_amount(fact, before) is None]


def parse_money_field(field: MoneyField, args: Mapping[str, Any]) -> Money:
    """The amount in the two arguments of a `money` pair. Raises `InvalidMoney`."""
    return _parse_sent(field, args.get(field.amount), args.get(field.currency))


def to_minor_units(
    definition: ToolDefinition, args: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments in the form for rules: an argument that `money` names is an integer
    in minor units, or left out if it is null, and all others stay as they are. Raises
    `InvalidMoney`."""
    converted = dict(args)
    for field in definition.money:
        if not is_left_out(field, args):
            converted[field.amount] = parse_money_field(field, args).minor
        else:
            converted.pop(field.amount, None)
    return converted


def list_minor_currencies(
    definition: ToolDefinition, args: Mapping[str, Any]
) -> dict[str, str]:
    """The path of each amount in a call that is a whole number of minor units, such as
    `items[0].price`, and its currency; an empty text for one that cannot be read."""
    codes = {
        field.amount: args.get(field.currency)
        for field in definition.money
        if field.unit and not is_left_out(field, args)
    }
    for amount in definition.amounts:
        if amount.unit and amount.path:
            path = ArgumentPath(amount.path)
            for place in _find_places(amount, args):
                currency = _find_currency(amount, args, place)
                codes[_format_place(path, place)] = currency
    return {
        path: code if isinstance(code, str) and money.CURRENCY.fullmatch(code) else ""
        for path, code in codes.items()
    }


def list_errors(
    definition: ToolDefinition, args: Mapping[str, Any]
) -> Iterator[FieldError]:
    """An error for each declared amount that is not valid money, and one where the
    total exceeds the largest amount."""
    amounts: list[Money] = []
    for field in definition.money:
        if not is_left_out(field, args):
            try:
                amounts.append(parse_money_field(field, args))
            except InvalidMoney as error:
                yield build_field_error(f"args.{field.amount}", str(error))
    for amount in definition.amounts:
        for place in _find_places(amount, args):
            try:
                amounts.append(_parse_amount(amount, args, place))
            except InvalidMoney as error:
                yield build_field_error(
                    f"args.{_format_place(ArgumentPath(amount.path or ''), place)}",
                    str(error),
                )
    totals = money.sum_by_currency(amounts)
    if any(minor > money.MAX_MINOR for minor in totals.values()):
        yield build_field_error(
            "args", f"its amounts are more than {money.MAX_MINOR} minor units"
        )


def _walk_sent_amounts(
    amount: Amount, args: Mapping[str, Any], before: Mapping[str, Any]
) -> Iterator[tuple[ListIndexes, Money, bool]]:
    """Each place of the amount that moves something, what it moves, and whether the
    call has a value there. Raises `InvalidMoney`."""
    for place, given in _walk_places(amount, args):
        if given:
            yield place, _parse_amount(amount, args, place), True
        elif amount.absent == "all":
            currency = _find_currency(amount, args, place)
            yield place, _find_whole(amount, currency, before), False


def _find_whole(
    sent: MoneyField | Amount, currency: object, before: Mapping[str, Any]
) -> Money:
    """What an amount that was left out counts as: the reader's fact, else the whole."""
    known = _find_fact_amount(sent.whole, before) if sent.whole else None
    if known is not None:
        return known
    named = isinstance(currency, str) and money.CURRENCY.fullmatch(currency)
    return Money(money.WHOLE, str(currency) if named else money.MIXED)


def _find_places(amount: Amount, args: Mapping[str, Any]) -> list[ListIndexes]:
    return [place for place, given in _walk_places(amount, args) if given]


def _walk_places(
    amount: Amount, args: Mapping[str, Any]
) -> Iterator[tuple[ListIndexes, bool]]:
    """The places of the amount, and whether the call has a value there. A list without
    elements, and a member without a value, is one place without one."""
    if amount.path is None:
        return
    reached: list[tuple[ListIndexes, Any]] = [((), args)]
    for step in ArgumentPath(amount.path).steps:
        inside = [(place, _find_member(value, step.name)) for place, value in reached]
        reached = []
        for place, value in inside:
            if value is _ABSENT or value is None:
                yield place, False
            elif not step.each:
                reached.append((place, value))
            elif isinstance(value, list) and value:
                reached += [((*place, n), element) for n, element in enumerate(value)]
            else:
                yield place, False
    for place, value in reached:
        yield place, value is not None or amount.absent is None


def _parse_amount(amount: Amount, args: Mapping[str, Any], place: ListIndexes) -> Money:
    """Raises `InvalidMoney`."""
    currency = _find_currency(amount, args, place)
    single = _parse_sent(amount, _find_value(args, amount.path, place), currency)
    if amount.times is None:
        return single
    times = _find_value(args, amount.times, place)
    if times is _ABSENT or times is None:
        return single
    if isinstance(times, bool) or not isinstance(times, int) or times < 0:
        raise InvalidMoney("how many of it is a whole number that is not negative")
    if single.minor * times > money.MAX_MINOR:
        raise InvalidMoney(f"the largest amount is {money.MAX_MINOR} minor units")
    return Money(single.minor * times, single.currency)


def _find_currency(amount: Amount, args: Mapping[str, Any], place: ListIndexes) -> Any:
    currency = _find_value(args, amount.currency, place)
    return amount.code if currency is _ABSENT and amount.code else currency


def _parse_sent(sent: MoneyField | Amount, value: Any, currency: Any) -> Money:
    """Raises `InvalidMoney`."""
    if sent.unit == "minor":
        return money.parse_minor(value, currency)
    return money.parse(value, currency)


def _find_value(args: Mapping[str, Any], path: str | None, place: ListIndexes) -> Any:
    """The value at a path, in the list elements of `place`; _ABSENT without one."""
    value: Any = args
    numbers = iter(place)
    for step in ArgumentPath(path or "").steps:
        value = _find_member(value, step.name)
        if step.each:
            number = next(numbers, None)
            inside = isinstance(value, list) and number is not None
            if not inside or number >= len(value):  # type: ignore[operator]
                return _ABSENT
            value = value[number]
    return value


def _find_member(value: Any, name: str) -> Any:
    return value.get(name, _ABSENT) if isinstance(value, Mapping) else _ABSENT


def _format_place(path: ArgumentPath, place: ListIndexes) -> str:
    """`items[2].price`."""
    numbers = iter(place)
    parts = (s.name + (f"[{next(numbers)}]" if s.each else "") for s in path.steps)
    return ".".join(parts)


def _find_fact_amount(fact: str | None, before: Mapping[str, Any]) -> Money | None:
    """A fact as an amount; None if it is missing, no amount, or negative."""
    minor, currency = before.get(str(fact)), before.get(f"{fact}_currency")
    if isinstance(minor, bool) or not isinstance(minor, int) or minor < 0:
        return None
    return Money(minor, currency) if isinstance(currency, str) and currency else None
