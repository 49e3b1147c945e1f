"""What a new Stop row takes back: everything under it that has not run."""

from __future__ import annotations

from django.db.models import Q

from .choices import OPEN, GrantStatus, Scope, StopMode
from .models import Proposal, Stop


def under(stop: Stop) -> list[str]:
    """Ids of the proposals to withdraw, oldest first; none under a mere pause."""
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
    return Q(pk__in=[])  # a reviewer's approvals are caught by the re-check
