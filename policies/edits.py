"""What a person's edit of a call widens: the amount that it moves, or whom it reaches.
Pure.

Everything is derived from what the policy declares of the tool: its amounts of money,
the keys that its reader resolves, the recipients that choose an effect class, and the
parts of its view that name whom or what the effect reaches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from journal import canonical

from . import amounts
from .amounts import PlacedAmount
from .documents import ToolDefinition
from .effect_classes import Recipients
from .money import InvalidMoney

# View -> the parts of it that name whom or what the effect reaches.
REACHING_PARTS: Mapping[str, frozenset[str]] = {
    "shell": frozenset({"host", "user"}),
    "email": frozenset({"to", "cc", "bcc"}),
    "message": frozenset({"to"}),
    "money": frozenset({"payee", "account"}),
    "sql": frozenset({"database"}),
    "http": frozenset({"url"}),
    "access": frozenset({"who", "resource"}),
    "deploy": frozenset({"repository", "environment"}),
    "publish": frozenset({"where", "audience"}),
    "config": frozenset({"scope", "audience"}),
    "schedule": frozenset({"who", "visibility"}),
}
RAISES = "it raises the amount"
REMOVES = "it leaves out the amount"
CURRENCY = "it changes the currency"


class JudgedCall(NamedTuple):
    """The arguments of a call, and what the tool's reader said about them: the keys,
    and the facts in the form for rules."""

    args: Mapping[str, Any]
    keys: Mapping[str, Any]
    before: Mapping[str, Any]


def list_widenings(
    definition: ToolDefinition, old: JudgedCall, new: JudgedCall
) -> list[str]:
    """Why the edit from `old` to `new` moves more money or reaches somebody else, each
    as the end of a sentence: `it changes the customer`. Empty when it does neither."""
    reasons = [*_list_money_reasons(definition, old, new)]
    for key in definition.keys:
        if old.keys.get(key) != new.keys.get(key):
            reasons.append(f"it changes the {key.replace('_', ' ')}")
    for paths in _list_reaching_paths(definition):
        if (path := _find_widest(paths, old.args, new.args)) is not None:
            reasons.append(f"it changes “{_format_label(definition, path)}”")
    return list(dict.fromkeys(reasons))


def _list_money_reasons(
    definition: ToolDefinition, old: JudgedCall, new: JudgedCall
) -> Iterator[str]:
    try:
        before = amounts.list_placed_amounts(definition, old.args, old.before)
    except InvalidMoney:  # the tool reads the arguments otherwise since
        before = []
    after = amounts.list_placed_amounts(definition, new.args, new.before)
    declared = definition.declared_amounts
    nothing = {amount.name for amount in declared if amount.absent == "none"}
    for name in dict.fromkeys(amount.name for amount in (*before, *after)):
        was = [amount for amount in before if amount.name == name]
        now = [amount for amount in after if amount.name == name]
        if was and not now and not was[0].place and name not in nothing:
            yield REMOVES
        yield from _compare_amounts(was, now)


def _compare_amounts(
    was: Sequence[PlacedAmount], now: Sequence[PlacedAmount]
) -> Iterator[str]:
    """Compare the amounts of one declaration. In a list that became shorter, each row
    that is left belongs to one that was there."""
    pairs = zip_longest(was, now) if len(now) >= len(was) else _match_rows(was, now)
    for earlier, later in pairs:
        if later is None or (earlier is None and not later.money.minor):
            continue
        if earlier is not None and earlier.money.currency != later.money.currency:
            yield CURRENCY
        elif earlier is None or later.money.minor > earlier.money.minor:
            yield RAISES


def _match_rows(
    was: Sequence[PlacedAmount], now: Sequence[PlacedAmount]
) -> Iterator[tuple[PlacedAmount | None, PlacedAmount]]:
    left = list(was)
    for later in now:
        alike = [row for row in left if row.beside == later.beside]
        earlier = max(alike, key=lambda row: row.money.minor, default=None)
        if earlier is not None:
            left.remove(earlier)
        yield earlier, later


def _list_reaching_paths(definition: ToolDefinition) -> Iterator[list[str]]:
    """The arguments that name whom the effect reaches, in groups: whoever moves from
    one argument of a group to another is reached as before."""
    forms = [c.when for c in definition.classes or [] if c.when]
    recipients = [
        name
        for form in forms
        if isinstance(form, Recipients)
        for name in form.recipients
    ]
    parts = REACHING_PARTS.get(definition.presenter, frozenset())
    reaching = {part: path for part, path in definition.roles.items() if part in parts}
    if definition.presenter == "email":
        recipients += reaching.values()
        reaching = {}
    if recipients:
        yield list(dict.fromkeys(recipients))
    yield from ([path] for path in reaching.values())


def _find_widest(
    paths: Sequence[str], old: Mapping[str, Any], new: Mapping[str, Any]
) -> str | None:
    """The first of these arguments that reaches somebody it did not reach before; None
    when the edit only leaves some of them out."""
    was = [value for path in paths for value in _list_values(old, path.split("."))]
    now = [value for path in paths for value in _list_values(new, path.split("."))]
    known = Counter(was)
    if len(now) == len(was) and len(paths) == 1 and _goes_into_rows(old, paths[0]):
        return paths[0] if was != now else None
    if Counter(now) <= known and (now or not was):
        return None
    for path in paths:
        values = Counter(_list_values(new, path.split(".")))
        if not values <= known:
            return path
    return paths[0]


def _goes_into_rows(args: Mapping[str, Any], path: str) -> bool:
    """Whether the argument is in each row of a list, beside others of the same row."""
    part: Any = args
    *around, _ = path.split(".")
    for name in around:
        part = part.get(name) if isinstance(part, Mapping) else None
        if isinstance(part, list):
            return True
    return False


def _list_values(value: Any, steps: Sequence[str]) -> Iterator[bytes]:
    """The values at a path, through all lists on the way, in a form to compare."""
    if isinstance(value, list):
        for element in value:
            yield from _list_values(element, steps)
    elif not steps:
        yield canonical.encode({"value": value})
    elif isinstance(value, Mapping) and steps[0] in value:
        yield from _list_values(value[steps[0]], steps[1:])


def _format_label(definition: ToolDefinition, path: str) -> str:
    usual = path.rpartition(".")[2].replace("_", " ").capitalize()
    return definition.labels.get(path, usual)
