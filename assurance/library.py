"""The library of defects as administrators set it: how often each kind is planted.

Canaries are only worth something while reviewers cannot guess them, and a kind that is
off measures nobody. So one administrator proposes a change and another one confirms it,
each in a log record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError
from django.db.models import QuerySet

from journal import clock
from journal.errors import Conflict, InvalidArgs, NotFound, build_field_error
from journal.operations import operation
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions, transitions
from reviews.administration import second_person
from reviews.choices import ChangeStatus, DefectKind
from reviews.models import DefectChange
from reviews.roles import Permission

USUAL_WEIGHT, MOST_WEIGHT = 1, 5  # 0 is never


def load_weights() -> dict[DefectKind, int]:
    """How often each kind is planted, compared with others; 0 is never. One query."""
    weights = dict.fromkeys(DefectKind, USUAL_WEIGHT)
    for change in _select_in_force():
        weights[DefectKind(change.defect)] = change.weight
    return weights


def _select_in_force() -> QuerySet[DefectChange]:
    """The newest confirmed change of each kind."""
    confirmed = DefectChange.objects.filter(status=ChangeStatus.CONFIRMED)
    return confirmed.order_by("defect", "-settled_at", "-pk").distinct("defect")


@operation(writes="DefectChange", logs="defect.proposed")
def propose_change(
    *, person: Person, kind: DefectKind, weight: int, reason: str
) -> DefectChange:
    """Propose how often a kind is planted; another administrator must confirm. Raises
    NotPermitted, TextMissing, InvalidArgs for a weight that is wrong or in force, and
    Conflict while a change of this kind waits."""
    permissions.check_permission(person, Permission.MANAGE_DEFECTS)
    if why := _find_weight_problem(kind, weight):
        errors = [build_field_error("weight", why)]
        raise InvalidArgs("Nothing was proposed.", errors=errors)
    change = DefectChange(
        defect=kind,
        weight=weight,
        reason=second_person.read_reason(reason),
        asked_by=person,
        asked_at=clock.now(),
    )
    try:
        return transitions.defect_change.create(
            change,
            "propose",
            actor=build_actor(person),
            now=change.asked_at,
            data={"defect": kind, "weight": weight},
            private={"reason": change.reason},
        )
    except IntegrityError:
        raise Conflict(
            "A change of this kind waits for an answer already. Nothing was proposed."
        ) from None


def _find_weight_problem(kind: DefectKind, weight: int) -> str:
    """Why a weight cannot be proposed for a kind; empty when it can."""
    weights: Mapping[DefectKind, int] = load_weights()
    if not 0 <= weight <= MOST_WEIGHT:
        return f"Choose a frequency from 0 to {MOST_WEIGHT}."
    if weight == weights[kind]:
        return "This frequency is in force already. Choose another one."
    return ""


@operation(locks="change", writes="DefectChange", logs="defect.changed")
def confirm_change(*, change_id: int, person: Person) -> DefectChange:
    """Put a proposed change in force. Raises NotFound, NotPermitted, Conflict when it
    does not wait."""
    change = _lock_answerable(change_id, person)
    return _settle(change, "confirm", person)


@operation(locks="change", writes="DefectChange", logs="defect.refused")
def refuse_change(*, change_id: int, person: Person, reason: str) -> DefectChange:
    """Refuse a proposed change. Raises NotFound, NotPermitted, TextMissing, Conflict
    when it does not wait."""
    change = _lock_answerable(change_id, person)
    return _settle(change, "refuse", person, second_person.read_reason(reason))


def _lock_answerable(change_id: int, person: Person) -> DefectChange:
    permissions.check_permission(person, Permission.MANAGE_DEFECTS)
    change = locks.lock_defect_change(change_id)
    why_not = describe_why_no_answer(change, person)
    second_person.check_may_answer(change, why_not, ChangeStatus.PROPOSED)
    return change


def load_change(person: Person, change_id: int) -> DefectChange:
    """A change of the library. Raises NotPermitted, NotFound."""
    permissions.check_permission(person, Permission.MANAGE_DEFECTS)
    change = DefectChange.objects.filter(pk=change_id).first()
    if change is None:
        raise NotFound
    return change


def describe_why_no_answer(change: DefectChange, person: Person) -> str:
    """Why this administrator may not confirm or refuse; empty when they may."""
    if person.pk == change.asked_by_id:  # guard: second-administrator
        return "You proposed it. Another administrator must answer."
    return ""


def _settle(
    change: DefectChange, event: str, person: Person, refusal: str = ""
) -> DefectChange:
    return second_person.settle_row(
        transitions.defect_change,
        change,
        event,
        person=person,
        refusal=refusal,
        log_data=_build_log_data(change),
    )


@operation(locks="change", writes="DefectChange", logs="defect.withdrawn")
def withdraw_change(*, change_id: int, person: Person) -> DefectChange:
    """Withdraw a change that this person proposed. Raises NotFound, NotPermitted,
    Conflict when it does not wait."""
    permissions.check_permission(person, Permission.MANAGE_DEFECTS)
    change = locks.lock_defect_change(change_id)
    return second_person.withdraw_row(
        transitions.defect_change,
        change,
        person=person,
        open_status=ChangeStatus.PROPOSED,
        log_data=_build_log_data(change),
    )


def _build_log_data(change: DefectChange) -> dict[str, Any]:
    return {"data": {"defect": change.defect, "weight": change.weight}}


@operation(locks="changes (skip locked)", writes="DefectChange", logs="defect.lapsed")
def lapse_changes() -> int:
    """End the changes that nobody answered within a week. Returns how many."""
    rows = DefectChange.objects.filter(status=ChangeStatus.PROPOSED)
    return second_person.lapse_unanswered(
        transitions.defect_change, rows, _build_log_data
    )
