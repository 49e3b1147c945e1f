"""A supervisor's bulk actions when more requests wait than people can decide.

They extend deadlines that are about to pass and assign requests to colleagues. Each
request has its own transaction and log record, and one call changes a bounded number.
"""

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
    """Extend up to 100 of these deadlines as far as the policy allows; return how many.

    Requests that cannot be extended, for example because they were decided in the
    meantime, are skipped. Raises NotYours.
    """
    check(person)
    return _each(
        islice(request_ids, MOST_EXTENDED),
        lambda pk: deadlines.extend(request_id=pk, person=person),
    )


def share(*, request_ids: Iterable[str], person: Person, to: Person) -> int:
    """Assign the first 5 of these requests to a colleague; return how many.

    The colleague gets a mail; other people may still decide the requests. Requests
    decided in the meantime, or that the colleague may not decide, are skipped. Raises
    NotYours.
    """
    check(person)
    return _each(
        islice(request_ids, MOST_GIVEN),
        lambda pk: returns.assign(request_id=pk, person=person, to=to),
    )


def check(person: Person) -> None:
    """Raises NotYours unless the person decides as a supervisor."""
    if permissions.deciding_role(person) is not Role.SUPERVISOR:
        raise NotYours("Only a supervisor may do that. Nothing was changed.")


def _each(ids: Iterable[str], operation: Callable[[str], object]) -> int:
    done = 0
    for pk in ids:
        try:
            operation(pk)
        except DomainError:
            continue  # one failure must not keep the rest waiting
        done += 1
    return done
