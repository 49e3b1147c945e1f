"""Whether the list that a person decides on is the one they saw: every item of it, in
order, as it was, and nobody else (gate.md 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from journal.errors import BatchChanged, FieldError, Invalid, Policy, at
from policies import tools
from reviews.models import Batch

from . import similarity
from .membership import Member
from .said import SaidOfMany

MOST = 50  # items of one decision


def check(said: SaidOfMany, members: Sequence[Member]) -> None:
    """That the list is what the person saw: the same items, in the same order, each
    as it was. Raises BatchChanged, Invalid."""
    if not said.items or len(said.items) > MOST:
        raise Invalid(f"Choose 1 to {MOST} items. Nothing was recorded.")
    changes = _changes(said.items, members, said.marks, left_out=said.left_out)
    staying = {member.id: member for member in members if not member.gone}
    ordered = [pk for pk in staying if pk in set(said.items)]
    if not changes and ordered != list(said.items):
        raise Invalid("Name each item once, in the order of the batch.")
    now = similarity.digest(staying[pk].entry for pk in ordered)
    if changes or now != said.digest:
        raise BatchChanged(_changed_said(len(changes), len(said.items)), errors=changes)


def since(marks: Mapping[str, str], members: Sequence[Member]) -> list[FieldError]:
    """What became of the rows of a page, ticked or not, by what each of them was."""
    return _changes(list(marks), members, marks)


def _changes(
    items: Sequence[str],
    members: Sequence[Member],
    marks: Mapping[str, str],
    left_out: Sequence[str] = (),
) -> list[FieldError]:
    known, seen = {member.id for member in members}, set(items)
    found = [
        at(pk, "It is no longer in this batch.") for pk in items if pk not in known
    ]
    for member in members:
        if member.id in seen:
            why = member.gone or _moved(member, marks.get(member.id))
        elif member.gone or member.id in left_out:
            continue
        else:
            why = "It joined after this page was made."
        if why:
            found.append(at(member.id, why))
    return found


def _moved(member: Member, mark: str | None) -> str:
    if mark is None or mark == member.mark:
        return ""
    if member.changed:
        return f"The agent replaced it at {member.version.created_at:%H:%M:%S} UTC."
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
    total = similarity.total_of(member.version for member in chosen)
    if not similarity.too_much(total, definition):
        return
    most = definition.batchable.total if definition.batchable else None
    limit = f"{most.amount} {most.currency}" if most else "the ceiling"
    raise Policy(
        f"Together this is above {limit}, the most for one batch. None was decided."
        " Leave some out.",
        errors=[at("items", f"at most {limit} in one batch")],
    )
