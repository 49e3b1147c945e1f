"""Every event that people are told of stands in the table, and reaches them."""

from __future__ import annotations

import ast

import pytest
from django.conf import settings

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


def test_every_event_has_a_kind_of_its_own_but_a_move() -> None:
    """To the people of the other queue a moved request is a new one."""
    own = {topic: event for topic, event in EVENTS.items() if topic != "request.moved"}
    assert len({event.kind for event in own.values()}) == len(own)
    assert EVENTS["request.moved"] == EVENTS["request.opened"]


# Of mails that have their own.
OWN_TITLES = {
    "incident.told": "Deadlines are paused",
    "person.linked": "Choose your password",
}


@pytest.mark.parametrize("topic", EVENTS)
def test_every_event_reaches_people_under_its_title(gate: Gate, topic: str) -> None:
    assert OCCASIONS[topic](gate) == topic
    drain(topic)
    drain_digests()
    assert "sue" in dict(told())
    title = EVENTS[topic].title or OWN_TITLES[topic]
    assert all(title.startswith(words.partition(",")[0]) for _, words in told())
