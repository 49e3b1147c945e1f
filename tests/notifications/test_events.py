"""Every event that people are told of stands in the table, and reaches them by the task
of today and by the one that an earlier release wrote down."""

from __future__ import annotations

import ast

import pytest
from django.conf import settings

from hitl import tasks
from hitl.celery import app
from journal.models import OutboxMessage
from notifications import events
from notifications.events import EVENTS
from reviews.transitions import MACHINES
from tests.conftest import Gate
from tests.hitl.tasks.draining import drain, drain_digests, told
from tests.notifications.occasions import OCCASIONS
from tests.sources import product

# What workers and agents are told, and no person. A notice is a mail already planned.
NOBODY = {
    *("execution.queued", "export.asked", "incident.declared", "request.batchable"),
    "dataset.consented",
    *("notice.digest", "notice.due", "notice.test", "stop.raised"),
}
# What the release before routed each event to. Never to be changed, only deleted.
FORMERLY = {
    "request.opened": "mail_opened",
    "request.escalated": "mail_escalated",
    "request.returned": "mail_returned",
    "request.assigned": "mail_assigned",
    "request.freed": "mail_freed",
    "request.offered": "mail_offered",
    "request.broken": "mail_broken",
    "request.handed_over": "mail_handed_over",
    "request.due_soon": "mail_due_soon",
    "request.settled": "mail_settled",
    "proposal.announced": "mail_announced",
    "execution.unknown": "mail_unknown",
    "alarm.raised": "mail_alarm",
    "request.revoked": "mail_revoked",
    "execution.revoked": "mail_revoked_effect",
    "incident.told": "mail_incident",
}


def published() -> set[str]:
    """The topics that the product names where it publishes, and those of its edges."""
    edges = [edge for machine in MACHINES.values() for edge in machine.edges]
    found = {edge.published_as for edge in edges if edge.published_as}
    for source in product():
        for name, call in source.calls():
            topic = call.args[0] if name.startswith("publish") and call.args else None
            if isinstance(topic, ast.Constant):
                found.add(str(topic.value))
    return found


def test_every_event_that_people_are_told_of_is_in_the_table() -> None:
    assert published() - NOBODY == set(EVENTS)
    for topic in EVENTS:
        assert settings.OUTBOX_ROUTES[topic] == events.CHANNEL_TASKS


def test_every_event_has_a_kind_of_its_own() -> None:
    assert len({event.kind for event in EVENTS.values()}) == len(EVENTS)


@pytest.mark.parametrize("topic", EVENTS)
def test_every_event_reaches_people_under_its_title(gate: Gate, topic: str) -> None:
    assert OCCASIONS[topic](gate) == topic
    drain(topic)
    drain_digests()
    assert "sue" in dict(told())
    title = EVENTS[topic].title or "Deadlines are paused"
    assert all(title.startswith(words.partition(",")[0]) for _, words in told())


def test_no_name_of_an_earlier_task_is_forgotten() -> None:
    former = {f"hitl.tasks.{name}" for name in FORMERLY.values()}
    assert set(events.FORMER_TASKS) == set(settings.OUTBOX_FORMER_TASKS) == former


@pytest.mark.parametrize("topic", FORMERLY)
def test_every_earlier_task_still_reaches_the_same_people(
    gate: Gate, topic: str
) -> None:
    OCCASIONS[topic](gate)
    rows = OutboxMessage.objects.filter(topic=topic)
    rows.update(task=f"hitl.tasks.{FORMERLY[topic]}")
    for row in rows:
        tasks.mail_people(row.pk)  # it is not addressed to this one
    assert told() == []
    for _ in range(2):  # the broker repeats itself
        for row in rows:
            app.tasks[row.task](row.pk)
    assert "sue" in dict(told())
    assert len(set(told())) == len(told())
    assert not rows.filter(done_at=None).exists()
