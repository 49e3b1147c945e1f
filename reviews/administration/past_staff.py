"""Who could decide in a queue at a moment of the past.

The present state is taken back record by record: the audit log has each change of what
a person may do, and rows that never change have the substitutes and the stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F, Q
from django.db.models.functions import Least

from journal.models import LogRecord
from policies import staffing
from policies.choices import Role
from policies.models import Person, Queue, Substitution
from policies.money import Money, format_money

from .. import permissions
from ..choices import Scope
from ..models import Stop
from . import authority

KINDS = (
    "person.added",
    "person.changed",
    "person.admitted",
    "person.dismissed",
    "person.deactivated",
    "person.reactivated",
)


@dataclass(slots=True)
class PastPerson:
    """A person as of the moment. `ceiling` is in words; `stopped` while a stop over
    their decisions was in force; `stands_in_for` names whom they stood in for."""

    person: Person
    role: Role | None
    active: bool
    queues: set[str]
    ceiling: str
    added: bool = True
    stopped: bool = False
    stands_in_for: list[Person] = field(default_factory=list)
    handed_to: list[Person] = field(default_factory=list)

    @property
    def why_not(self) -> str:
        """Why the person could not decide, of those who were admitted; "" for who
        could."""
        if not self.active:
            return "was deactivated"
        if self.handed_to:
            return f"had handed the queue to {self.handed_to[0]}"
        if self.stopped:
            return "was stopped from deciding"
        if self.role is None or not staffing.find_deciding_role({self.role}):
            return f"decided nothing as {self.role}" if self.role else "had no role"
        return ""


def list_past_staff(queue: Queue, at: datetime) -> Sequence[PastPerson]:
    """Everybody who was admitted to the queue at this moment, or stood in for somebody
    who was; those who could decide first. Reads the records since then."""
    people = {
        person.public_id: _describe_present(person)
        for person in Person.objects.exclude(username="AnonymousUser")
    }
    _take_back(people, at)
    own = {key for key, past in people.items() if queue.name in past.queues}
    _add_substitutes(people, queue, at)
    stops = Stop.objects.filter(scope=Scope.REVIEWER, at__lte=at)
    for row in stops.filter(Q(lifted_at=None) | Q(lifted_at__gt=at)):
        if row.key in people:
            people[row.key].stopped = True
    staff = [
        past
        for key, past in people.items()
        if past.added and (key in own or past.stands_in_for)
    ]
    return sorted(staff, key=lambda past: (bool(past.why_not), str(past.person)))


def find_log_start() -> datetime | None:
    """When the log that is here begins: nothing is known of an earlier moment. None for
    an empty one."""
    at = LogRecord.objects.order_by("pk").values_list("at", flat=True)
    return at.first()


def _describe_present(person: Person) -> PastPerson:
    roles = permissions.roles_of(person)
    minor = person.ceiling_minor
    ceiling = "any amount"
    if minor is not None:
        ceiling = format_money(Money(minor, person.ceiling_currency))
    return PastPerson(
        person,
        next((role for role in Role if role in roles), None),
        person.is_active,
        set(authority.load_authority(person).queues),
        ceiling,
    )


def _take_back(people: dict[str, PastPerson], at: datetime) -> None:
    """Take back what changed after the moment, the newest change first."""
    for record in _select_records().filter(at__gt=at).order_by("-pk"):
        data = record.data
        past = people.get(data.get("person", ""))
        if past is not None:
            _take_back_record(past, record.kind, data)


def _take_back_record(past: PastPerson, kind: str, data: dict[str, Any]) -> None:
    match kind:
        case "person.added":
            past.added = False
        case "person.admitted":
            past.queues.discard(data["queue"])
        case "person.dismissed":
            past.queues.add(data["queue"])
        case "person.deactivated":
            past.active = True
        case "person.reactivated":
            past.active = False
        case _:
            before = data.get("before", {})
            if "role" in before:
                past.role = next((r for r in Role if r in before["role"].split()), None)
            if "ceiling" in before:
                none = before["ceiling"] == "none"
                past.ceiling = "any amount" if none else before["ceiling"]


def _select_records() -> Any:
    # The index of records without a proposal: all others are many times as many.
    return LogRecord.objects.filter(proposal="", kind__in=KINDS)


def _add_substitutes(people: dict[str, PastPerson], queue: Queue, at: datetime) -> None:
    ends = Least(F("until"), F("ended_at"))  # the one that is not null, or the earlier
    rows = Substitution.objects.annotate(ends=ends).filter(
        queue=queue, began_at__lte=at, ends__gt=at
    )
    for row in rows.select_related("person", "substitute"):
        away = people[row.person.public_id]
        if queue.name in away.queues and away.active:
            people[row.substitute.public_id].stands_in_for.append(row.person)
            away.handed_to.append(row.substitute)
