"""The page of the notification channels: which are set up, whom they reach with what,
and how the latest messages went, by the checks of the health page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from notifications.channels import routing
from notifications.channels.contract import Channel
from policies import active
from policies.documents import Route
from policies.models import Person
from reviews import permissions
from reviews.effects.wording import format_people
from reviews.roles import Permission

from . import page, records
from .page import CHANNELS, MAIL, HealthRow
from .records import ChannelReport

USUAL_MESSAGES = "Every message that no route of the policy names"
EVERY_MESSAGE = "Every message"
NO_MESSAGES = "No route of the policy names it"
# What narrows a route, by its key.
ROUTE_LABELS = {
    "queues": "queue",
    "tools": "tool",
    "risks": "risk",
    "tiers": "tier",
    "priorities": "priority",
    "at": "event",
}


@dataclass(frozen=True, slots=True)
class ChannelLine:
    """One channel: whom it reaches, and which messages the active policy sends by
    it."""

    report: ChannelReport
    row: HealthRow
    reach: str
    messages: Sequence[str]


@dataclass(frozen=True, slots=True)
class ChannelsPage:
    """Every channel, and what the mail server answers."""

    lines: Sequence[ChannelLine]
    mail: Sequence[HealthRow]


def build_channels_page(person: Person) -> ChannelsPage:
    """Build the page. Raises NotPermitted for those who may not see the health page."""
    permissions.check_permission(person, Permission.SEE_HEALTH)
    policy = active.find_active_policy()
    document = active.load_document(policy) if policy else None
    routes = document.routes if document else []
    titles = document.queues if document else {}
    everybody = Person.objects.filter(is_active=True).select_related("preferences")
    people = list(everybody)
    return ChannelsPage(
        lines=[
            ChannelLine(
                report,
                HealthRow(CHANNELS, records.describe_channel(report)),
                describe_reach(report.channel, people, routes),
                list(list_messages(report.channel, routes, titles)),
            )
            for report in sorted(
                records.list_channel_reports(),
                key=lambda report: not report.channel.is_configured(),
            )
        ],
        mail=page.run_areas([MAIL], time.monotonic() + page.TIME_LIMIT_S),
    )


def describe_reach(
    channel: Channel, people: Sequence[Person], routes: Sequence[Route]
) -> str:
    """The number of people with an address there, or the places that routes name."""
    if not channel.is_configured():
        return "nobody"
    if channel.is_personal:
        reached = len(channel.select_reachable(people))
        return f"{reached} of {format_people(len(people), 'active person')}"
    places = [place for route in routes for place in route.places]
    targets = [place.target for place in places if place.channel == channel.name]
    return ", ".join(target or "its default place" for target in dict.fromkeys(targets))


def list_messages(
    channel: Channel, routes: Sequence[Route], titles: Mapping[str, str]
) -> Iterator[str]:
    named = [
        route
        for route in routes
        if any(place.channel == channel.name for place in route.places)
    ]
    yield from (_describe_route(route, titles) for route in named)
    if channel.name in {place.channel for place in routing.DEFAULT_PLACES}:
        usual = USUAL_MESSAGES if routes else EVERY_MESSAGE
        yield usual if channel.is_configured() else f"{usual}, once it is set up"
    elif not named:
        yield NO_MESSAGES


def _describe_route(route: Route, titles: Mapping[str, str]) -> str:
    parts = []
    for key, label in ROUTE_LABELS.items():
        values = [titles.get(value, value) for value in getattr(route, key)]
        if values:
            parts.append(f"{label} {' or '.join(values)}".replace("_", " "))
    return f"Messages of {', '.join(parts)}" if parts else EVERY_MESSAGE
