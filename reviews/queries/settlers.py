"""Who may say what became of an effect that nobody knows of."""

from __future__ import annotations

from collections.abc import Collection

from journal.errors import NotYours
from policies.models import Person
from reviews import permissions
from reviews.choices import Scope
from reviews.models import Execution, Stop
from reviews.permissions import Known


def of(execution: Execution) -> list[Person]:
    """All of them, by the operation's own check; in four queries."""
    queue = execution.grant.revision.known_tool.queue_id
    people = permissions.with_standing(permissions.admitted(queue))
    off = _stopped(people)
    return [one for one in people if _may(one, execution, off)]


def _stopped(people: Collection[Person]) -> set[str]:
    rows = Stop.objects.filter(scope=Scope.REVIEWER, lifted_at__isnull=True)
    keys = [one.public_id for one in people]
    return set(rows.filter(key__in=keys).values_list("key", flat=True))


def _may(person: Person, execution: Execution, off: Collection[str]) -> bool:
    known = Known(stopped=person.public_id in off, votes=permissions.NO_VOTES)
    try:
        permissions.check_can_settle(person, execution, known)
    except NotYours:
        return False
    return True
