"""Whether the list that a person decides on is the one they saw: every item of it, in
order, as it was, and nobody else (gate.md 6)."""

from __future__ import annotations

from collections.abc import Sequence

from journal.errors import BatchChanged, FieldError, Invalid, Policy, at
from policies import tools
from reviews import alike
from reviews.membership import Member
from reviews.models import Batch

from .said import SaidOfMany

MOST = 50  # items of one decision


def check(said: SaidOfMany, members: Sequence[Member]) -> None:
    """That the list is what the person saw: the same items, in the same order, each
    as it was. Raises BatchChanged, Invalid."""
    if not said.items or len(said.items) > MOST:
        raise Invalid(f"Choose 1 to {MOST} items. Nothing was recorded.")
    changes = list(_changes(said, members))
    staying = {member.id: member for member in members if not member.gone}
    ordered = [pk for pk in staying if pk in set(said.items)]
    if not changes and ordered != list(said.items):
        raise Invalid("Name each item once, in the order of the batch.")
    now = alike.digest(staying[pk].entry for pk in ordered)
    if changes or now != said.digest:
        raise BatchChanged(_changed_said(len(changes), len(said.items)), errors=changes)


def _changes(said: SaidOfMany, members: Sequence[Member]) -> list[FieldError]:
    known = {member.id: member for member in members}
    found = [
        at(pk, "It is no longer in this batch.") for pk in said.items if pk not in known
    ]
    for member in members:
        if why := _change(said, member):
            found.append(at(member.id, why))
    return found


def _change(said: SaidOfMany, member: Member) -> str:
    if member.id in said.items:
        return member.gone or _moved(said, member)
    if member.gone or member.id in said.left_out:
        return ""
    return "It joined after this page was made."


def _moved(said: SaidOfMany, member: Member) -> str:
    mark = said.marks.get(member.id)
    if mark is None or mark == member.mark:
        return ""
    if member.changed:
        return f"The agent replaced it at {member.version.created_at:%H:%M:%S}."
    return "The record changed after this page was made."


def _changed_said(changed: int, of: int) -> str:
    if not changed:
        return (
            "This batch is not as it was when you opened it. None of its items was"
            " decided. Look at it again, then confirm."
        )
    return (
        f"{changed} of {of} items changed or expired since you opened this batch. None"
        f" of the {of} was decided. See the {changed}, then confirm again."
    )


def check_total(batch: Batch, chosen: Sequence[Member]) -> None:
    definition = tools.definition(batch.tool)
    total = alike.total_of(member.version for member in chosen)
    if not alike.too_much(total, definition):
        return
    most = definition.batchable.total if definition.batchable else None
    limit = f"{most.amount} {most.currency}" if most else "the ceiling"
    raise Policy(
        f"Together this is above {limit}, the most for one batch. None was decided."
        " Leave some out.",
        errors=[at("items", f"at most {limit} in one batch")],
    )
