"""The routing table: which rows hold, and what it refuses."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from notifications.events import EVENTS
from policies.choices import Risk, Tier
from policies.documents import (
    InvalidPolicy,
    Place,
    Route,
    RoutedMessage,
    parse_document,
    select_places,
)
from policies.documents.routes import Moment, Priority
from tests.policies import builders

MESSAGE = RoutedMessage(
    at="opened", queue="money", tool="pay", risk="high", tier="approve", priority="low"
)
SLACK = Place("slack", "#money")


@pytest.mark.parametrize(
    ("row", "holds"),
    [
        ({}, True),
        ({"queues": ["money"], "at": ["escalated", "opened"]}, True),
        ({"queues": ["mail"]}, False),
        ({"tools": ["pay"], "risks": [Risk.HIGH]}, True),
        ({"tools": ["pay"], "risks": [Risk.CRITICAL]}, False),
        ({"tiers": [Tier.ESCALATE]}, False),
        ({"priorities": ["critical"]}, False),
        ({"at": ["settled"]}, False),
    ],
)
def test_a_row_holds_where_all_its_keys_do(row: dict[str, Any], holds: bool) -> None:
    places = select_places([Route(to=["slack:#money"], **row)], MESSAGE)
    assert places == ([SLACK] if holds else None)


def test_rows_count_together_and_a_place_once() -> None:
    rows = [Route(to=["email", "slack:#money"]), Route(to=["slack:#money", "sms"])]
    places = select_places(rows, MESSAGE)
    assert places == [Place("email", ""), SLACK, Place("sms", "")]


def test_what_the_policy_does_not_have_is_refused() -> None:
    rows = [{"to": ["Slack"]}, {"to": ["sms"], "queues": ["mony"], "tools": ["pray"]}]
    with pytest.raises(InvalidPolicy) as refused:
        parse_document(builders.data() | {"routes": rows})
    assert "write a channel" in str(refused.value.errors)
    with pytest.raises(InvalidPolicy) as refused:
        parse_document(builders.data() | {"routes": rows[1:]})
    assert {error["path"] for error in refused.value.errors} == {
        "routes.0.queues",
        "routes.0.tools",
    }


def test_the_table_can_name_every_event_of_people() -> None:
    # None is about a request; a drill goes where a new one would.
    kinds = {event.kind for event in EVENTS.values()} - {"incident", "drill", "linked"}
    assert set(get_args(Moment)) == kinds
    assert set(get_args(Priority)) == {"low", "normal", "high", "critical"}
