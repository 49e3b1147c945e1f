"""What a new policy changes for people: first who decides which amounts, then part by
part. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from . import bands, changes
from .bands import Band
from .changes import Direction, PolicyChange, describe_change
from .choices import Role
from .documents import Document, EffectClass, ToolDefinition
from .evaluation import Evaluation

# Of a tool, what its bands say.
_IN_BANDS = re.compile(r"(floor|risk|queue|timeout) .* → ")
LAXER = frozenset({Direction.LESS, Direction.MAYBE_LESS})


class ChangeGroup(NamedTuple):
    """Changes that go the same way."""

    title: str
    laxer: bool
    changes: list[PolicyChange]


def compare_policies(before: Document, after: Document) -> list[PolicyChange]:
    """The changes from one policy to another, what asks for less first. Of the same
    direction, those that say who decides which amounts come first."""
    by_amount = [*_list_band_changes(before, after)]
    names = {change.what.split()[0].rstrip(",") for change in by_amount}
    shown = {f"Tool {name}" for name in names}
    by_part = changes.list_changes(before, after)
    listed = [
        *by_amount,
        *(c for c in by_part if c.what not in shown or not _IN_BANDS.match(c.how)),
    ]
    order = list(Direction)
    return sorted(dict.fromkeys(listed), key=lambda c: order.index(c.direction))


def group_changes(listed: Iterable[PolicyChange]) -> list[ChangeGroup]:
    """Laxer ones, stricter ones and others, in this order, without empty groups."""
    listed = list(listed)
    groups = [
        ("Asks for less", LAXER),
        ("Asks for more", {Direction.MORE}),
        ("Other changes", {Direction.CHANGED}),
    ]
    parted = (
        ChangeGroup(
            title, chosen is LAXER, [c for c in listed if c.direction in chosen]
        )
        for title, chosen in groups
    )
    return [group for group in parted if group.changes]


def _list_band_changes(before: Document, after: Document) -> Iterator[PolicyChange]:
    for name, tool in after.tools.items():
        former = before.tools.get(name)
        if former is None:
            continue
        for old_class, new_class in _pair_classes(former, tool):
            what = f"{name}, class {new_class.name}" if new_class else name
            limits = {
                *bands.list_limits(before, former),
                *bands.list_limits(after, tool),
            }
            old = bands.list_bands(before, former, old_class, limits)
            new = bands.list_bands(after, tool, new_class, limits)
            yield from _compare_bands(what, old, new)


def _pair_classes(
    old: ToolDefinition, new: ToolDefinition
) -> Iterator[tuple[EffectClass | None, EffectClass | None]]:
    if not old.classes and not new.classes:
        yield None, None
    former = {part.name: part for part in old.classes or ()}
    for part in new.classes or ():
        if part.name in former:
            yield former[part.name], part


def _compare_bands(
    what: str, old: Iterable[Band], new: Iterable[Band]
) -> Iterator[PolicyChange]:
    """Neighbours that change in the same way are one change."""
    rows = [
        (tuple(_list_differences(was.asked, now.asked)), now.span)
        for was, now in zip(old, new, strict=True)
    ]
    for differences, group in groupby(rows, key=lambda row: row[0]):
        spans = [span for _, span in group]
        whole = spans[0]._replace(most=spans[-1].most)
        named = " ".join(part for part in (what, whole.text) if part)
        for direction, how in differences:
            yield describe_change(direction, named, how)


def _list_differences(
    old: Evaluation, new: Evaluation
) -> Iterator[tuple[Direction, str]]:
    people = bands.describe_people(old), bands.describe_people(new)
    if people[0] != people[1]:
        yield _compare_authority(old, new), " → ".join(people)
    if old.risk is not new.risk:
        less = new.risk.rank < old.risk.rank
        how = f"risk {old.risk} → {new.risk}"
        yield Direction.LESS if less else Direction.MORE, how
    if old.queue != new.queue and old.queue and new.queue:
        yield Direction.CHANGED, f"queue {old.queue} → {new.queue}"
    deadlines = bands.describe_deadline(old), bands.describe_deadline(new)
    if all(deadlines) and old.timeout != new.timeout:
        less = new.timeout > old.timeout
        how = f"deadline {' → '.join(deadlines)}"
        yield Direction.LESS if less else Direction.MORE, how
    if new.steps:
        yield from _list_extra_differences(old, new)


def _list_extra_differences(
    old: Evaluation, new: Evaluation
) -> Iterator[tuple[Direction, str]]:
    was, now = bands.list_extras(old), bands.list_extras(new)
    for name in was:
        if name not in now:
            yield Direction.LESS, f"no longer needs: {name}"
    for name in now:
        if name not in was:
            yield Direction.MORE, f"needs now: {name}"


def _compare_authority(old: Evaluation, new: Evaluation) -> Direction:
    """Less where any of tier, people and supervisors is less."""
    pairs = [
        (old.tier.rank, new.tier.rank),
        (bands.count_people(old), bands.count_people(new)),
        (
            bands.count_people(old, Role.SUPERVISOR),
            bands.count_people(new, Role.SUPERVISOR),
        ),
    ]
    if pairs[0][0] != pairs[0][1]:
        pairs = pairs[:1]
    less = any(now < was for was, now in pairs)
    return Direction.LESS if less else Direction.MORE
