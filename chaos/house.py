"""People, a policy in force and agents, made by the operations that people use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents import keys as agents_keys
from agents.models import Agent
from agents.webhooks import endpoints
from bench.seed import DECIDING, Cast, agent, everybody, in_force, slug
from reviews.people import preferences
from reviews.people import tokens as people_tokens
from reviews.people.preferences import Notifications

from .receivers import Listener

AGENTS = 8
HOOKED = 4  # of them, the first ones, hear of outcomes by post
CALLS = 2  # the one of these that says by a call of the gate that it has an outcome
FROM_DRIVER = 3  # from this one on, agents also say so when they see the end themselves
MAILS_AN_HOUR = 100  # to each person: letters and effects must not wait for mails


@dataclass(frozen=True)
class House:
    """Who knocks and who decides, by what they carry."""

    keys: dict[str, str]  # agent -> its key
    tokens: dict[str, str]  # person -> personal token
    secrets: dict[str, str]  # agent -> its endpoint's secret

    def listeners(self, gate: Sequence[str]) -> list[Listener]:
        """The agents' servers; `gate` are the addresses of the web processes."""
        return [
            Listener(
                agent,
                secret,
                self.keys[agent],
                " ".join(gate),
                "call" if agent == slug(CALLS) else "answer",
            )
            for agent, secret in self.secrets.items()
        ]


def house(document: dict[str, Any], hooks: str) -> House:
    """A gate that is ready to be asked; `hooks` is where agents' servers are."""
    cast = everybody()
    for name in DECIDING:
        asked = Notifications(per_hour=MAILS_AN_HOUR)
        preferences.save(person=cast[name], notifications=asked)
    in_force(document, cast)
    agents = [agent(number, cast, list(document["tools"])) for number in range(AGENTS)]
    return House(
        {
            agent.slug: agents_keys.issue(agent=agent, by=cast["owen"])
            for agent in agents
        },
        {
            name: people_tokens.mint(person=cast[name], name="chaos")
            for name in DECIDING
        },
        {agent.slug: _endpoint(agent, hooks, cast) for agent in agents[:HOOKED]},
    )


def _endpoint(agent: Agent, hooks: str, cast: Cast) -> str:
    """Its secret."""
    url = f"{hooks}/{agent.slug}"
    return endpoints.register(agent=agent, url=url, by=cast["owen"])[1]
