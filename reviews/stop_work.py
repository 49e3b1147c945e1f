"""What a new Stop row takes back: everything under it that has not run."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from .choices import OPEN, GrantStatus, Scope, StopMode
from .models import ApprovalRequest, Decision, Proposal, RequestVersion, Stop


def under(stop: Stop) -> list[str]:
    """Ids of the proposals to take back, oldest first; none under a mere pause."""
    if stop.mode == StopMode.PAUSED or stop.lifted_at is not None:
        return []
    waiting = Q(request__status__in=OPEN) | Q(grants__status=GrantStatus.LIVE)
    mine = within(Scope(stop.scope), stop.key)
    rows = Proposal.objects.filter(waiting, mine).order_by("created_at")
    return list(rows.values_list("pk", flat=True).distinct())


def within(scope: Scope, key: str, path: str = "") -> Q:
    """What a switch is over. `path` leads from the rows asked for to their proposal:
    `"proposal__"` for executions."""
    if scope is Scope.EVERYTHING:
        return Q()
    if scope is Scope.AGENT:
        return Q(**{f"{path}agent": key})
    if scope is Scope.TOOL:
        return Q(**{f"{path}tool_name": key})
    if scope is Scope.THREAD:
        agent, _, thread = key.partition("/")
        return Q(**{f"{path}agent": agent, f"{path}thread": thread})
    return Q(**{f"{path}request__in": approved_by(key)})


def approved_by(reviewer: str) -> QuerySet[ApprovalRequest]:
    """Requests in whose answer this person's approval counts: their vote on the version
    of now, or their place in a step that was complete before it."""
    mine = Decision.objects.filter(reviewer__public_id=reviewer, counts=True)
    of_now = mine.filter(request=OuterRef("pk"), version=OuterRef("version"))
    carried = RequestVersion.objects.filter(
        request=OuterRef("pk"),
        number=OuterRef("version"),
        carried__contains=[reviewer],
    )
    found = ApprovalRequest.objects.filter(pk__in=mine.values("request"))
    return found.filter(Exists(of_now) | Exists(carried))


def counts(request: ApprovalRequest, reviewer: str) -> bool:
    """The same of one request, for who holds its lock."""
    return approved_by(reviewer).filter(pk=request.pk).exists()
