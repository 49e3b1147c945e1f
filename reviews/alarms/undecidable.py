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

from .standing import CHUNK, close_itself, raise_

KIND = AlarmKind.UNDECIDABLE


def watch() -> int:
    """Raise an alarm for each request that nobody can decide, and close the alarms of
    requests that are decidable again or settled. Returns how many changed. Concurrent
    runs are safe."""
    vain = {pk: number for pk, number, _ in voters.waiting_in_vain()}
    alarms = Alarm.objects.filter(kind=KIND)
    standing = set(alarms.filter(STANDING).values_list("subject", flat=True))
    changed = 0
    for request_id in sorted(vain.keys() - standing - _dealt_with(vain))[:CHUNK]:
        changed += find_undecidable(request_id=request_id)
    for request_id in sorted(standing - vain.keys())[:CHUNK]:
        changed += end_undecidable(request_id=request_id)
    return changed


def _dealt_with(vain: dict[str, int]) -> set[str]:
    """The requests whose alarm about exactly this version a person closed."""
    closed = Alarm.objects.filter(
        kind=KIND, subject__in=vain, closed_how=ClosedHow.PERSON
    )
    said = closed.values_list("subject", "data__version")
    return {subject for subject, number in said if vain[subject] == number}


@transaction.atomic(durable=True)
def find_undecidable(*, request_id: str) -> bool:
    """Raise the alarm for one request, unless people can decide it by now. Returns
    whether it was raised. Raises NotFound. Locks: the request, the alarm."""
    request = locks.approval_request(request_id)
    found = next(voters.waiting_in_vain(request.pk), None)
    if found is None:
        return False
    _, number, lacking = found
    people = voters.of_queue(request.queue_id)
    raise_(
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
def end_undecidable(*, request_id: str) -> bool:
    """Close the alarm of one request, unless people still cannot decide it. Returns
    whether it was closed. Raises NotFound. Locks: the request, the alarm."""
    request = locks.approval_request(request_id)
    if next(voters.waiting_in_vain(request.pk), None) is not None:
        return False
    return close_itself(
        KIND, subject=request.pk, now=clock.now(), code=str(request.status)
    )
