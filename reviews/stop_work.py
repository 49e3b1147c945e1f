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
    rows = Proposal.objects.filter(waiting, _within(stop)).order_by("created_at")
    return list(rows.values_list("pk", flat=True).distinct())


def _within(stop: Stop) -> Q:
    if stop.scope == Scope.EVERYTHING:
        return Q()
    if stop.scope == Scope.AGENT:
        return Q(agent=stop.key)
    if stop.scope == Scope.TOOL:
        return Q(tool_name=stop.key)
    if stop.scope == Scope.THREAD:
        agent, _, thread = stop.key.partition("/")
        return Q(agent=agent, thread=thread)
    return Q(pk__in=[])  # a reviewer's approvals are caught by the re-check
