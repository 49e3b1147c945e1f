"""Drills: a test message to the people on call for a queue, and when they opened its
link.

A drill is no request, so no statistic of requests counts it. It goes by the same
preferences and channels as a new request at its risk level; quiet hours hold it back
also from people on call, because a drill is no reason to wake anybody.
"""

from __future__ import annotations

from datetime import timedelta

from journal import clock, log, outbox
from journal.clock import format_time
from journal.errors import Conflict, NotFound, NotPermitted
from journal.operations import operation
from policies.choices import Risk, Role
from policies.models import Person, Queue
from policies.people import build_actor
from reviews import locks, permissions
from reviews.models import DrillSighting, Notice, NotificationDrill
from reviews.roles import Permission

from . import duty, shifts

LASTS = timedelta(hours=1)  # what is opened later counts as not seen
REST = timedelta(hours=1)  # between the beginnings of two drills of one queue
ASKED_ROLES = (Role.REVIEWER, Role.SUPERVISOR)


@operation(
    locks="the queue's rota (advisory)",
    writes="NotificationDrill",
    logs="drill.started",
    after="messages to the people asked",
)
def start_drill(*, person: Person, queue: Queue, risk: Risk) -> NotificationDrill:
    """Start a drill: a message to the people on call for the queue, or to all who may
    decide when nobody is on call. Raises NotPermitted, or Conflict within an hour of
    the last one or when nobody could get a message."""
    shifts.check_may_plan(person, queue.pk)
    locks.lock_on_call(queue.pk)
    now = clock.now()
    last = NotificationDrill.objects.filter(queue=queue, started_at__gt=now - REST)
    if recent := last.order_by("-started_at").first():
        again = format_time(recent.started_at + REST)
        raise Conflict(
            f"The last drill of this queue began less than an hour ago. Start the next"
            f" one after {again}. Nothing was sent."
        )
    people = permissions.list_deciders(queue.pk, roles=ASKED_ROLES)
    if not people:
        raise Conflict(
            "Nobody with an address decides in this queue. Ask an administrator to"
            " admit people. Nothing was sent."
        )
    on_call = duty.select_on_call(queue.pk, people, now)
    asked = [
        decider.public_id for decider in people if not on_call or decider.pk in on_call
    ]
    drill = NotificationDrill.objects.create(
        queue=queue,
        risk=risk,
        started_by=person.public_id,
        started_at=now,
        ends_at=now + LASTS,
        people=sorted(asked),
        on_call=bool(on_call),
    )
    log.append(
        "drill.started",
        actor=build_actor(person),
        at=now,
        data={
            "drill": drill.pk,
            "queue": queue.name,
            "risk": drill.risk,
            "people": drill.people,
            "on_call": drill.on_call,
        },
    )
    outbox.publish("drill.started", subject=str(drill.pk))
    return drill


def load_drill(drill_id: int, person: Person) -> NotificationDrill:
    """Load a drill for a person whom it asks, who decides in its queue, or who sees
    everything. Raises NotFound for others."""
    drill = (
        NotificationDrill.objects.select_related("queue").filter(pk=drill_id).first()
    )
    if drill is None:
        raise NotFound
    sees_all = permissions.has_permission(person, Permission.SEE_ALL)
    if not (sees_all or _concerns(drill, person)):
        raise NotFound
    return drill


def _concerns(drill: NotificationDrill, person: Person) -> bool:
    if person.public_id in drill.people:
        return True
    decides = permissions.find_deciding_role(person) is not None
    return decides and drill.queue_id in permissions.queues_of(person)


@operation(writes="DrillSighting", logs="drill.seen")
def record_sighting(
    *, drill_id: int, person: Person, channel: str = ""
) -> DrillSighting:
    """Record that a person opened the link of the message on this channel; the first
    time counts. Raises NotFound, NotPermitted, or Conflict once the drill is over."""
    drill = load_drill(drill_id, person)
    if not _concerns(drill, person):
        raise NotPermitted("This drill does not ask you. Nothing was recorded.")
    now = clock.now()
    sent = Notice.objects.filter(drill=drill, channel=channel)
    row, is_new = DrillSighting.objects.get_or_create(
        drill=drill,
        person=person,
        defaults={"at": now, "channel": channel if sent.exists() else ""},
    )
    if not is_new:
        return row
    if drill.ends_at <= now:
        raise Conflict("This drill is over. Nothing was recorded.")
    log.append(
        "drill.seen",
        actor=build_actor(person),
        at=now,
        data={
            "drill": drill.pk,
            "channel": row.channel,
            "after_s": round((now - drill.started_at).total_seconds()),
        },
    )
    return row
