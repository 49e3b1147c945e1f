"""Raising an alarm, and letting one close itself, inside the transaction that found
out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import F

from journal import log
from reviews import locks, transitions
from reviews.choices import AlarmKind, ClosedHow
from reviews.models import Alarm, ApprovalRequest, Proposal

WATCH = log.Actor("system", "watch")


def raise_(
    kind: AlarmKind,
    *,
    subject: str,
    proposal: Proposal | None,
    data: Mapping[str, Any],
    now: datetime,
    actor: log.Actor = WATCH,
    of_queue: bool = True,
) -> Alarm:
    """Have people told of it, once: raised again while it stands it is only counted.
    It is a matter of the proposal's queue, unless it is everybody's.

    `data` holds facts and codes, never anybody's words. Caller holds a transaction, and
    takes no other lock after this.
    """
    standing = locks.standing_alarm(kind, subject)
    if standing is not None:
        return _again(standing, now, actor)
    alarm = Alarm(
        kind=kind,
        subject=subject,
        proposal=proposal,
        queue_id=_queue_of(proposal) if of_queue else None,
        data=dict(data),
        opened_at=now,
        last_seen_at=now,
    )
    said = _said(alarm) | {"facts": dict(data)}
    return transitions.alarm.create(alarm, "raise", actor=actor, now=now, data=said)


def _again(alarm: Alarm, now: datetime, actor: log.Actor) -> Alarm:
    Alarm.objects.filter(pk=alarm.pk).update(times=F("times") + 1, last_seen_at=now)
    alarm.times, alarm.last_seen_at = alarm.times + 1, now
    log.append(
        "alarm.repeated",
        actor=actor,
        at=now,
        **transitions.alarm.context(alarm),
        data=_said(alarm) | {"times": alarm.times},
    )
    return alarm


def _said(alarm: Alarm) -> dict[str, Any]:
    return {"code": str(alarm.kind), "subject": alarm.subject}


def _queue_of(proposal: Proposal | None) -> int | None:
    """Where it was asked, or the home of its tool."""
    if proposal is None:
        return None
    asked = ApprovalRequest.objects.filter(proposal=proposal)
    queue: int | None = asked.values_list("queue_id", flat=True).first()
    tool = None if queue else proposal.current.tool
    return tool.queue_id if tool else queue


def close_itself(kind: AlarmKind, *, subject: str, now: datetime, code: str) -> bool:
    """What it warned of holds no more; whether there was one. Caller holds a
    transaction, and takes no other lock after this."""
    alarm = locks.standing_alarm(kind, subject)
    if alarm is None:
        return False
    transitions.alarm.apply(
        alarm,
        "close",
        actor=WATCH,
        now=now,
        changes={"closed_at": now, "closed_how": ClosedHow.ITSELF},
        data=_said(alarm) | {"because": code},
    )
    return True
