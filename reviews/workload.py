"""A supervisor's bulk actions when more requests wait than people can decide.

They extend deadlines that are about to pass and assign requests to colleagues. Each
request has its own transaction and log record, and one call changes a bounded number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from journal.errors import DomainError, NotPermitted
from policies.choices import Role
from policies.models import Person

from . import deadlines, permissions
from .decisions import returns

MAX_EXTENDED = 100
MAX_ASSIGNED = 5


def extend_deadlines(*, request_ids: Iterable[str], person: Person) -> int:
    """Extend up to 100 of these deadlines as far as the policy allows; return how many.
    Requests that cannot be extended, for example because they were decided in the
    meantime, are skipped. Raises NotPermitted."""
    check_supervisor(person)
    return _apply_to_each(
        islice(request_ids, MAX_EXTENDED),
        lambda pk: deadlines.extend_deadline(request_id=pk, person=person),
    )


def assign_requests(*, request_ids: Iterable[str], person: Person, to: Person) -> int:
    """Assign the first 5 of these requests to a colleague; return how many.

    The colleague gets a mail; other people may still decide the requests. Requests
    decided in the meantime, or that the colleague may not decide, are skipped. Raises
    NotPermitted.
    """
    check_supervisor(person)
    return _apply_to_each(
        islice(request_ids, MAX_ASSIGNED),
        lambda pk: returns.assign_request(request_id=pk, person=person, to=to),
    )


def check_supervisor(person: Person) -> None:
    """Raises NotPermitted unless the person decides as a supervisor."""
    if permissions.find_deciding_role(person) is not Role.SUPERVISOR:
        raise NotPermitted("Only a supervisor may do this. Nothing was changed.")


def _apply_to_each(ids: Iterable[str], operation: Callable[[str], object]) -> int:
    done = 0
    for pk in ids:
        try:
            operation(pk)
        except DomainError:
            continue  # one failure must not keep the rest waiting
        done += 1
    return done
