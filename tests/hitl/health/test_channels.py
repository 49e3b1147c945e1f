"""The page of the channels: set up or not, whom they reach, and what failed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django import Settings

from hitl.health import channels
from hitl.health.channels import ChannelLine, build_channels_page
from journal import clock
from notifications.channels import registry
from policies.documents import Route
from policies.models import Person
from reviews.models import Notice
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.desk.conftest import as_ as as_
from tests.markup import find_element, read_page


def find_line(gate: Gate, name: str) -> ChannelLine:
    lines = build_channels_page(gate.adam).lines
    (line,) = (line for line in lines if line.report.channel.name == name)
    return line


def test_every_channel_is_listed_with_what_sets_it_up(gate: Gate, as_: SignIn) -> None:
    source = read_page(as_("alma").get("/channels/"))
    for name, channel in registry.load_channels().items():
        part = find_element(source, f"channel-{name}")
        assert channel.title in part
        for variable in channel.variables:
            assert variable in part
    assert "Not set up" in find_element(source, "channel-slack")
    assert "Mail server" in find_element(source, "channel-email")


def test_a_personal_channel_reaches_whoever_has_an_address(gate: Gate) -> None:
    Person.objects.filter(pk=gate.rita.pk).update(email="")
    Person.objects.filter(pk=gate.tom.pk).update(is_active=False)
    active = Person.objects.filter(is_active=True).count()
    line = find_line(gate, "email")
    assert line.reach == f"{active - 1} of {active} active people"
    assert find_line(gate, "slack").reach == "nobody"


def test_a_place_is_named_with_the_messages_that_go_there(
    gate: Gate, settings: Settings
) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"slack_bot_token": "xoxb-1"}
    )
    routes = [
        Route(to=["slack:#refunds", "slack"], queues=["money"], risks=["high"]),
        Route(to=["slack:#refunds"], at=["due_soon"]),
    ]
    slack = registry.load_channels()["slack"]
    assert channels.describe_reach(slack, [], routes) == "#refunds, its default place"
    assert list(channels.list_messages(slack, routes, {"money": "Money out"})) == [
        "Messages of queue Money out, risk high",
        "Messages of event due soon",
    ]


def test_the_last_success_and_the_repair_of_a_failure_are_shown(
    gate: Gate, as_: SignIn
) -> None:
    now, request = clock.now(), factories.propose(gate.agent).request
    Notice.objects.all().delete()
    Notice.objects.create(
        person=gate.rita,
        request=request,
        kind="opened",
        at=now,
        due_at=now,
        error="the server refused it",
        attempts=1,
    )
    part = find_element(read_page(as_("otto").get("/channels/")), "channel-email")
    assert "Attention" in part
    assert "the server refused it" in part
    assert "1 tried again, 0 given up" in part
    assert '<a href="/me/notifications/#try">Send a test message</a>' in part
    Notice.objects.update(error="", sent_at=now + timedelta(minutes=1))
    part = find_element(read_page(as_("otto").get("/channels/")), "channel-email")
    assert "Send a test message" not in part


@pytest.mark.parametrize("name", ["rita", "sue", "owen"])
def test_only_who_reads_health_reads_it(gate: Gate, as_: SignIn, name: str) -> None:
    client = as_(name)
    assert client.get("/channels/").status_code == 403
    assert 'href="/channels/"' not in read_page(client.get("/me/"))
    assert 'href="/channels/"' in read_page(as_("alma").get("/me/"))
