"""What a supervisor does when more waits than the desk can decide: more time for what
is about to expire, and more hands. Each request is its own transaction with its own
record, and no press moves more than a bounded number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from journal.errors import DomainError, NotYours
from policies.choices import Role
from policies.models import Person

from . import deadlines, permissions
from .decisions import returns

MOST_EXTENDED = 100
MOST_GIVEN = 5


def extend_all(*, request_ids: Iterable[str], person: Person) -> int:
    """More time for each, as far as the policy allows; how many got it.

    Who asks has picked what expires soon; what was decided or has no more time
    meanwhile is passed over. Raises NotYours.
    """
    check(person)
    return _each(
        islice(request_ids, MOST_EXTENDED),
        lambda pk: deadlines.extend(request_id=pk, person=person),
    )


def share(*, request_ids: Iterable[str], person: Person, to: Person) -> int:
    """Give the first few to a colleague, who gets a mail; others may still answer them.

    How many were given: what was decided meanwhile, or is not theirs to decide, is
    passed over. Raises NotYours.
    """
    check(person)
    return _each(
        islice(request_ids, MOST_GIVEN),
        lambda pk: returns.assign(request_id=pk, person=person, to=to),
    )


def check(person: Person) -> None:
    """Raises NotYours for all but supervisors."""
    if permissions.deciding_role(person) is not Role.SUPERVISOR:
        raise NotYours("Only a supervisor may do that. Nothing was changed.")


def _each(ids: Iterable[str], operation: Callable[[str], object]) -> int:
    done = 0
    for pk in ids:
        try:
            operation(pk)
        except DomainError:
            continue  # the others are as urgent
        done += 1
    return done
