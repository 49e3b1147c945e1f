"""Alarms about requests that nobody can decide: too few people are left who may give
the missing approvals (gate.md section 5)."""

from __future__ import annotations

from django.db import transaction

from journal import clock
from policies.choices import Role
from reviews import locks
from reviews.choices import AlarmKind, ClosedHow
from reviews.governance import voters
from reviews.models import Alarm
from reviews.models.alarms import STANDING

from .standing import CHUNK, close_resolved_alarm, raise_alarm

KIND = AlarmKind.UNDECIDABLE


def sweep_undecidable() -> int:
    """Raise an alarm for each request that nobody can decide, and close the alarms of
    requests that are decidable again or settled. Returns how many changed. Concurrent
    runs are safe."""
    vain = {pk: number for pk, number, _ in voters.list_undecidable_requests()}
    alarms = Alarm.objects.filter(kind=KIND)
    standing = set(alarms.filter(STANDING).values_list("subject", flat=True))
    changed = 0
    for request_id in sorted(vain.keys() - standing - _list_closed_by_person(vain))[
        :CHUNK
    ]:
        changed += raise_undecidable(request_id=request_id)
    for request_id in sorted(standing - vain.keys())[:CHUNK]:
        changed += close_undecidable(request_id=request_id)
    return changed


def _list_closed_by_person(vain: dict[str, int]) -> set[str]:
    """The requests whose alarm about exactly this version a person closed."""
    closed = Alarm.objects.filter(
        kind=KIND, subject__in=vain, closed_how=ClosedHow.PERSON
    )
    said = closed.values_list("subject", "data__version")
    return {subject for subject, number in said if vain[subject] == number}


@transaction.atomic(durable=True)
def raise_undecidable(*, request_id: str) -> bool:
    """Raise the alarm for one request, unless people can decide it by now. Returns
    whether it was raised. Raises NotFound. Locks: the request, the alarm."""
    request = locks.lock_request(request_id)
    found = next(voters.list_undecidable_requests(request.pk), None)
    if found is None:
        return False
    _, number, lacking = found
    people = voters.list_voters(request.queue_id)
    raise_alarm(
        KIND,
        subject=request.pk,
        proposal=request.proposal,
        data={"version": number, "lacking": str(lacking)},
        now=clock.now(),
        # If its queue has no supervisor left, the alarm goes to all supervisors.
        of_queue=any(one.role is Role.SUPERVISOR for one in people),
    )
    return True


@transaction.atomic(durable=True)
def close_undecidable(*, request_id: str) -> bool:
    """Close the alarm of one request, unless people still cannot decide it. Returns
    whether it was closed. Raises NotFound. Locks: the request, the alarm."""
    request = locks.lock_request(request_id)
    if next(voters.list_undecidable_requests(request.pk), None) is not None:
        return False
    return close_resolved_alarm(
        KIND, subject=request.pk, now=clock.now(), code=str(request.status)
    )
