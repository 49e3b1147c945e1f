"""Who is asked when something is handed up: the supervisors of its queue, which of them
are on call, and what time it is where they are."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from policies.models import Person
from reviews.desk.components import holding
from reviews.models import ApprovalRequest
from reviews.people import preferences
from reviews.people.preferences import Notifications

SHOWN = 4  # people by name


def said(request: ApprovalRequest, person: Person, now: datetime) -> str:
    """Whom this person would be asking, those on call first; in one query."""
    found = holding.supervisors(request).exclude(pk=person.pk)
    told = [
        (preferences.of(one).notifications, str(one))
        for one in found.select_related("preferences").order_by("username")
    ]
    if not told:
        return "No other supervisor is admitted to this queue: it would wait for one."
    told.sort(key=lambda one: not one[0].on_call)
    names = [f"{name} ({_when(wants, now)})" for wants, name in told[:SHOWN]]
    more = [f"{len(told) - SHOWN} more"] if len(told) > SHOWN else []
    return f"Asked as well: {', '.join([*names, *more])}."


def _when(wants: Notifications, now: datetime) -> str:
    local = f"{now.astimezone(ZoneInfo(wants.zone)):%H:%M} there"
    return f"on call, {local}" if wants.on_call else local
