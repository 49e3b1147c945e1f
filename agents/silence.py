"""How long nothing has been heard of a run: whoever ends it by hand waits that long."""

from __future__ import annotations

from datetime import datetime, timedelta

from reviews.models import Proposal

from .models import Thread

QUIET = timedelta(minutes=10)


def is_silent(thread: Thread, now: datetime) -> bool:
    """Whether neither its start nor a proposal of it is newer than that."""
    asked = Proposal.objects.filter(agent=thread.agent.slug, thread=thread.name)
    newest = asked.order_by("-created_at").values_list("created_at", flat=True).first()
    return max(thread.started_at, newest or thread.started_at) + QUIET <= now
