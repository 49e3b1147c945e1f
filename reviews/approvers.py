"""Whether those who said yes may still say it [I11]: right before the effect, for what
a vote was worth when it was given is no reason to act on it now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policies.models import Person

from . import permissions, quorum
from .choices import Scope
from .models import ApprovalRequest, Decision, RequestVersion, Revision, Stop
from .quorum import StepData


@dataclass(frozen=True, slots=True)
class _Vote:
    """A yes that counted, and the role that its place asks for."""

    person: Person
    role: str


def still_hold(request: ApprovalRequest, revision: Revision) -> bool:
    """Whether each of them still has the role of their place, is let into the queue,
    may decide such an amount, and is not stopped. Reads only."""
    stopped = _stopped()
    for vote in _votes(request):
        role = permissions.deciding_role(vote.person)
        valid = (
            role is not None
            and quorum.fills(role, vote.role)
            and request.queue_id in permissions.queues_of(vote.person)
            and vote.person.public_id not in stopped
            and not permissions.above_ceiling(
                vote.person, revision.amount_minor, revision.currency
            )
        )
        if not valid:
            return False
    return True


def _votes(request: ApprovalRequest) -> Iterator[_Vote]:
    """Those on the version that was authorized, and those that it carried on."""
    versions = {
        version.number: version
        for version in RequestVersion.objects.filter(request=request).only(
            "number", "steps", "carried"
        )
    }
    carried = versions[request.version].carried
    given = Decision.objects.filter(request=request, counts=True)
    places = {
        vote.reviewer.public_id: _Vote(vote.reviewer, _role(versions, vote))
        for vote in given.select_related("reviewer").order_by("version")
        if vote.version == request.version or vote.reviewer.public_id in carried
    }
    yield from places.values()
    yield from _others(set(carried) - set(places))


def _role(versions: Mapping[int, RequestVersion], vote: Decision) -> str:
    steps: Sequence[StepData] = versions[vote.version].steps
    return steps[vote.step or 0]["role"]


def _others(people: set[str]) -> Iterator[_Vote]:
    """Whoever was carried on without a vote that counted: in the role they have."""
    if people:
        for person in Person.objects.filter(public_id__in=people):
            yield _Vote(person, permissions.deciding_role(person) or "")


def _stopped() -> set[str]:
    rows = Stop.objects.filter(scope=Scope.REVIEWER, lifted_at__isnull=True)
    return set(rows.values_list("key", flat=True))
