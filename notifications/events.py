"""The outbox events that people are notified of: one table of the kind of notice that
each event plans, whom it concerns and the first words of its message.

hitl/settings.py makes the outbox routes from the table before Django loads the models,
so this module imports none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

# One task plans the notices of all channels. Each notice is then sent on its own.
CHANNEL_TASKS = ("hitl.tasks.notify_people",)


class Audience(StrEnum):
    """Whom an event concerns; `plan` loads the people."""

    DECIDERS = "deciders"  # everybody who may decide the request
    SUPERVISORS = "supervisors"  # the supervisors among them
    ASSIGNEE = "assignee"  # the person to whom a supervisor assigned the request
    NAMED = "named"  # the decider whom the outbox message names
    EXECUTION = "execution"  # the supervisors of the queue that the effect concerns
    ANNOUNCEMENT = "announcement"  # the same; the message names its proposal
    ALARM = "alarm"  # the supervisors of the alarm's queue
    DRILL = "drill"  # the people whom the drill asks
    QUESTION = "question"  # the people who may answer the question
    LINKED = "linked"  # the person who chooses a password; without a notice
    INCIDENT = "incident"  # the supervisor whom the message names; without a notice


@dataclass(frozen=True, slots=True)
class NotificationEvent:
    """What an outbox event notifies people of, and whom."""

    kind: str  # of the notices that it plans
    audience: Audience
    title: str  # the first words of its mail; "" if the mail has its own
    waits: bool  # asks for a decision or an answer: obsolete once it is given


_ask = partial(NotificationEvent, waits=True)
_tell = partial(NotificationEvent, waits=False)

EVENTS: Mapping[str, NotificationEvent] = {
    "request.opened": _ask("opened", Audience.DECIDERS, "Approval needed"),
    "request.escalated": _ask(
        "escalated", Audience.SUPERVISORS, "Escalated to supervisors"
    ),
    # To the people of the other queue it is a new request.
    "request.moved": _ask("opened", Audience.DECIDERS, "Approval needed"),
    "request.returned": _ask("returned", Audience.DECIDERS, "Returned with guidance"),
    "request.asked": _ask("asked", Audience.DECIDERS, "Question from the agent"),
    "request.answered": _ask("answered", Audience.NAMED, "The agent answered"),
    "request.revoked": _ask("revoked", Audience.DECIDERS, "Approval needed again"),
    "request.half_time": _ask(
        "half_time", Audience.DECIDERS, "Half of the time is over"
    ),
    "request.due_soon": _ask("due_soon", Audience.DECIDERS, "Expires soon"),
    "request.assigned": _ask("assigned", Audience.ASSIGNEE, "Assigned to you"),
    "request.freed": _ask("freed", Audience.NAMED, "Available again"),
    "request.offered": _ask("offered", Audience.NAMED, "Offered to you"),
    "request.declined": _ask("declined", Audience.NAMED, "Your offer was not accepted"),
    "request.broken": _ask("broken", Audience.NAMED, "Your claim was ended"),
    "request.handed_over": _ask("handed_over", Audience.NAMED, "Handed over"),
    "request.settled": _tell("settled", Audience.SUPERVISORS, "Resolved"),
    "proposal.announced": _tell(
        "ran", Audience.ANNOUNCEMENT, "Allowed without approval"
    ),
    "execution.unknown": _tell("unknown", Audience.EXECUTION, "Unknown result"),
    "execution.revoked": _tell(
        "cancelled", Audience.EXECUTION, "Cancelled after a revoked approval"
    ),
    "alarm.raised": _tell("alarm", Audience.ALARM, "Alarm"),
    "question.asked": _ask("question", Audience.QUESTION, "An agent asks"),
    "drill.started": _tell("drill", Audience.DRILL, "Drill"),
    "person.linked": _tell("linked", Audience.LINKED, ""),
    # The mail's own facts say whether deadlines are paused or resumed.
    "incident.told": _tell("incident", Audience.INCIDENT, ""),
}

NOTICE_TITLES = {event.kind: event.title for event in EVENTS.values() if event.title}
WAITING_KINDS = frozenset(event.kind for event in EVENTS.values() if event.waits)
