"""The routing table: on which channels people hear of what. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, StringConstraints

from ..choices import Risk, Tier
from .names import CHANNEL, DocumentPart, Slug, ToolName

Priority = Literal["low", "normal", "high", "critical"]
# The steps of a request's way, and what is told of effects and alarms.
Moment = Literal[
    "opened",
    "escalated",
    "returned",
    "asked",
    "answered",
    "revoked",
    "half_time",
    "due_soon",
    "assigned",
    "freed",
    "offered",
    "declined",
    "broken",
    "handed_over",
    "settled",
    "ran",
    "unknown",
    "cancelled",
    "alarm",
    "question",
]


class Place(NamedTuple):
    """A channel, and the place on it: `#refunds` of `slack:#refunds`. The place is
    empty for the channel's default and for channels that reach one person."""

    channel: str
    target: str


class Route(DocumentPart):
    """A row of the routing table: `to` names the channels of every message that has all
    of the other keys. A key without values holds for every message.

    All rows that hold count together. A message that no row matches goes by mail,
    and by push to the browsers that people registered. A person whom none of the named
    channels reaches gets mail.
    """

    # email, push, sms, slack, chat or webhook. A place may follow: `slack:#refunds`,
    # `chat:ops`
    to: list[Annotated[str, StringConstraints(pattern=CHANNEL)]] = Field(min_length=1)
    queues: list[Slug] = Field(default_factory=list)
    tools: list[ToolName] = Field(default_factory=list)
    risks: list[Risk] = Field(default_factory=list)
    tiers: list[Tier] = Field(default_factory=list)
    priorities: list[Priority] = Field(default_factory=list)  # as the agent claimed
    # The steps of a request: `opened`, `escalated`, `due_soon`, `settled` and so on
    at: list[Moment] = Field(default_factory=list)

    @property
    def places(self) -> list[Place]:
        """`to` in its parts."""
        return [Place(*text.partition(":")[::2]) for text in self.to]


@dataclass(frozen=True, slots=True)
class RoutedMessage:
    """What the routing table reads of a message. Empty where it does not apply."""

    at: str
    queue: str = ""
    tool: str = ""
    risk: str = ""
    tier: str = ""
    priority: str = ""


def select_places(
    routes: Iterable[Route], message: RoutedMessage
) -> list[Place] | None:
    """The places of all rows that hold, each once; None where no row holds."""
    matching = [route for route in routes if _holds(route, message)]
    if not matching:
        return None
    return list(dict.fromkeys(place for route in matching for place in route.places))


def _holds(route: Route, message: RoutedMessage) -> bool:
    asked: tuple[tuple[list[str], str], ...] = (
        ([*route.queues], message.queue),
        ([*route.tools], message.tool),
        ([*route.risks], message.risk),
        ([*route.tiers], message.tier),
        ([*route.priorities], message.priority),
        ([*route.at], message.at),
    )
    return all(not values or value in values for values, value in asked)


def list_route_problems(
    routes: Iterable[Route], queues: Mapping[str, object], tools: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    """A (path, message) for each queue and tool that the policy does not have."""
    for number, route in enumerate(routes):
        for name in route.queues:
            if name not in queues:
                yield f"routes.{number}.queues", f"{name} is not a queue of this policy"
        for name in route.tools:
            if name not in tools:
                yield f"routes.{number}.tools", f"{name} is not a tool of this policy"
