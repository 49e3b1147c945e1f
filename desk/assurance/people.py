"""How the people of a supervisor did with canaries and in practice.

A supervisor's people are those who decide in a queue that the supervisor decides in.
The rows are in the order of the names: nobody is ranked (docs/metrics.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Q

from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.models import Canary, PracticeItem
from stats.charts import format_rate
from stats.readings import Rate

from . import practice_page

PERIOD = timedelta(days=30)
Caught = tuple[int, int]  # how many were caught, of how many


@dataclass(frozen=True, slots=True)
class PersonRow:
    """One person's figures, each with its count."""

    person: Person
    canaries: str
    practice: str


def build_person_rows(reader: Person, now: datetime) -> Sequence[PersonRow] | None:
    """The rows of the reader's people who met a canary or practised in the last 30
    days; None for anybody but a supervisor. Four queries."""
    if permissions.find_deciding_role(reader) is not Role.SUPERVISOR:
        return None
    since = now - PERIOD
    canaries, practised = _count_canaries(since), _count_practice(since)
    people_met = permissions.list_people_with_roles(canaries.keys() | practised.keys())
    people = [person for person in people_met if _is_supervised(reader, person)]
    return [
        PersonRow(
            person,
            format_rate(Rate(*canaries.get(person.pk, (0, 0)))),
            format_rate(Rate(*practised.get(person.pk, (0, 0)))),
        )
        for person in sorted(people, key=str)
    ]


def _is_supervised(reader: Person, person: Person) -> bool:
    if person.pk == reader.pk or permissions.find_deciding_role(person) is None:
        return False
    return bool(permissions.queues_of(reader) & permissions.queues_of(person))


def _count_canaries(since: datetime) -> dict[int, Caught]:
    rows = Canary.objects.filter(caught__isnull=False, ended_at__gt=since)
    counted = rows.values("reviewer").annotate(
        n=Count("pk"), caught_n=Count("pk", filter=Q(caught=True))
    )
    return {row["reviewer"]: (row["caught_n"], row["n"]) for row in counted}


def _count_practice(since: datetime) -> dict[int, Caught]:
    by_person: dict[int, list[PracticeItem]] = defaultdict(list)
    rows = PracticeItem.objects.filter(answered_at__gt=since)
    for item in rows.select_related("practice"):
        by_person[item.practice.reviewer_id].append(item)
    counts = {pk: practice_page.count_answers(items) for pk, items in by_person.items()}
    return {pk: (count.caught, count.planted) for pk, count in counts.items()}
