"""Substitutes: a person who is away hands queues to another person until a date.

The substitute gets no more than the person who is away has, who decides nothing in
these queues meanwhile, so that two votes never become three. What counts is computed
by the view of `Admission` whenever somebody decides: nothing has to run at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError
from django.db.models import F, Q, QuerySet

from journal import clock, log, transactions
from journal.errors import (
    Conflict,
    FieldError,
    InvalidInput,
    NotFound,
    NotPermitted,
    build_field_error,
)
from journal.operations import operation

from . import money, people, staffing
from .choices import Role
from .models import Admission, Person, Queue, Substitution

LONGEST = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Absence:
    """Who decides in which queues for a person, until when."""

    substitute: Person
    queues: Collection[str]  # names
    until: datetime


@operation(writes="Substitution", logs="substitution.began", after="wake-up")
def appoint_substitute(person: Person, absence: Absence) -> None:
    """Hand the person's queues to a substitute. Raises NotPermitted for somebody who
    decides nothing, InvalidInput with what is wrong, and Conflict for a queue that is
    handed on already."""
    role = _find_role(person)
    if role is None or not person.is_active:
        raise NotPermitted("You decide in no queue, so there is nothing to hand over.")
    now = clock.now()
    queues = list(Queue.objects.filter(name__in=absence.queues).order_by("name"))
    if problems := _list_problems(person, role, absence, queues, now):
        raise InvalidInput(errors=problems)
    Substitution.objects.filter(person=person, ended_at=None, until__lte=now).update(
        ended_at=F("until")
    )
    rows = [
        Substitution(
            person=person,
            substitute=absence.substitute,
            queue=queue,
            began_at=now,
            until=absence.until,
        )
        for queue in queues
    ]
    try:
        with transactions.open_savepoint("Appointing a substitute"):
            Substitution.objects.bulk_create(rows)
    except IntegrityError:
        raise Conflict(
            "One of these queues was handed over just now. Nothing was changed."
        ) from None
    _log_change(
        "substitution.began",
        person,
        absence.substitute,
        by=people.build_actor(person),
        queues=[queue.name for queue in queues],
        until=absence.until.isoformat(),
    )


@operation(writes="Substitution", logs="substitution.ended", after="wake-up")
def end_substitution(pk: int, *, by: Person) -> None:
    """End a substitution before its time. Raises NotFound for one that is over, or
    that is neither theirs nor, for administrators, anybody's."""
    rows = _select_in_force()
    if not people.is_administrator(by):
        rows = rows.filter(Q(person=by) | Q(substitute=by))
    row = rows.filter(pk=pk).first()
    if row is None:
        raise NotFound("This substitution is over. Nothing was changed.")
    now = clock.now()
    if not _select_in_force().filter(pk=pk).update(ended_at=now):
        raise Conflict("This substitution has just ended. Nothing was changed.")
    _log_change(
        "substitution.ended",
        row.person,
        row.substitute,
        by=people.build_actor(by),
        queues=[row.queue.name],
    )


def end_all(public_id: str, now: datetime) -> None:
    """End what a person handed over, whose decisions are being stopped. Caller holds a
    transaction, and logs the stop."""
    rows = Substitution.objects.filter(person__public_id=public_id, ended_at=None)
    rows.update(ended_at=now)


def end_of(person: Person, *, by: log.Actor) -> None:
    """End everything in which this person, whose account ends, is away or stands in.
    Caller holds a transaction."""
    now = clock.now()
    for row in list_substitutions(person):
        if _select_in_force().filter(pk=row.pk).update(ended_at=now):
            names = [row.queue.name]
            _log_change(
                "substitution.ended", row.person, row.substitute, by=by, queues=names
            )


def list_substitutions(person: Person) -> Sequence[Substitution]:
    """Those in which this person is away or stands in, the one that ends first
    first."""
    rows = _select_in_force().filter(Q(person=person) | Q(substitute=person))
    return list(rows)


def list_own_queues(person: Person) -> list[Queue]:
    """The queues that this person may hand over: admitted and not handed on."""
    admitted = Admission.objects.filter(person=person).values("queue_id")
    taken = _select_in_force().filter(substitute=person).values("queue_id")
    return list(Queue.objects.filter(pk__in=admitted).exclude(pk__in=taken))


def list_candidates(person: Person) -> list[Person]:
    """Active people of the same role, whose ceiling is not above this person's."""
    role = _find_role(person)
    others = Person.objects.filter(is_active=True, groups__name=role)
    named = others.exclude(pk=person.pk).order_by("first_name", "last_name", "username")
    return [
        other
        for other in named.prefetch_related("groups")
        if _find_role(other) is role
        and money.is_narrower_ceiling(person.ceiling, other.ceiling)
    ]


def _list_problems(
    person: Person,
    role: Role,
    absence: Absence,
    queues: Sequence[Queue],
    now: datetime,
) -> list[FieldError]:
    other, problems = absence.substitute, list[FieldError]()
    if other.pk == person.pk or not other.is_active or _find_role(other) is not role:
        text = f"Choose an active {role} other than yourself."
        problems.append(build_field_error("substitute", text))
    elif not money.is_narrower_ceiling(person.ceiling, other.ceiling):
        text = f"{other} may decide higher amounts than you. Choose somebody else."
        problems.append(build_field_error("substitute", text))
    if not now < absence.until <= now + LONGEST:
        text = f"Choose a time in the next {LONGEST.days} days."
        problems.append(build_field_error("until", text))
    own = {queue.pk for queue in list_own_queues(person)}
    if not queues or not {queue.pk for queue in queues} <= own:
        text = "Choose queues in which you decide and which you have not handed over."
        problems.append(build_field_error("queues", text))
    there = Admission.objects.filter(person=other, queue__in=queues)
    names = set(there.values_list("queue__name", flat=True))
    handed = _select_in_force().filter(person=other, queue__in=queues)
    if handed.exists():
        text = f"{other} is away too, and handed one of these queues over."
        problems.append(build_field_error("substitute", text))
    if names:
        text = f"{other} decides in {', '.join(sorted(names))} already: leave it out."
        problems.append(build_field_error("queues", text))
    return problems


def _select_in_force() -> QuerySet[Substitution]:
    rows = Substitution.objects.filter(ended_at=None, until__gt=clock.now())
    return rows.select_related("person", "substitute", "queue")


def _find_role(person: Person) -> Role | None:
    names = {group.name for group in person.groups.all()}
    return staffing.find_deciding_role([role for role in Role if role.value in names])


def _log_change(
    kind: str, person: Person, substitute: Person, *, by: log.Actor, **data: object
) -> None:
    log.append(
        kind,
        actor=by,
        at=clock.now(),
        data={
            "person": person.public_id,
            "substitute": substitute.public_id,
            **data,
        },
    )
