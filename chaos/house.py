"""People, a policy in force and agents, made by the operations that people use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents import endpoints, keys, registry
from agents.models import Agent
from journal import log
from policies import people, versions
from policies.choices import Role
from policies.models import Person, Queue
from policies.people import Newcomer
from reviews import preferences, tokens
from reviews.preferences import Notifications

from .postbook import Listener

CAST = {
    "adam": Role.ADMINISTRATOR,
    "alma": Role.ADMINISTRATOR,
    "owen": Role.OWNER,
    "rita": Role.REVIEWER,
    "tom": Role.REVIEWER,
    "sue": Role.SUPERVISOR,
    "sam": Role.SUPERVISOR,
}
PASSWORD = "a long way to the harbour"  # noqa: S105 of people who exist for a run
DECIDING = ("rita", "tom", "sue", "sam")
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


def slug(number: int) -> str:
    return f"agent-{number}"


def house(document: dict[str, Any], hooks: str) -> House:
    """A gate that is ready to be asked; `hooks` is where agents' servers are."""
    cast = {name: _person(name, role) for name, role in CAST.items()}
    draft = versions.save_draft(text_or_mapping=document, author=cast["adam"])
    for name in DECIDING:
        people.admit(cast[name], Queue.objects.all(), by=log.SYSTEM)
        asked = Notifications(per_hour=MAILS_AN_HOUR)
        preferences.save(person=cast[name], notifications=asked)
    versions.activate(version_id=draft.pk, by=cast["alma"])
    agents = [_agent(number, cast, list(document["tools"])) for number in range(AGENTS)]
    return House(
        {agent.slug: keys.issue(agent=agent, by=cast["owen"]) for agent in agents},
        {name: tokens.mint(person=cast[name], name="chaos") for name in DECIDING},
        {agent.slug: _endpoint(agent, hooks, cast) for agent in agents[:HOOKED]},
    )


def _person(name: str, role: Role) -> Person:
    newcomer = Newcomer(name, f"{name}@example.com", PASSWORD, role)
    return people.add(newcomer, by=log.SYSTEM)


def _endpoint(agent: Agent, hooks: str, cast: dict[str, Person]) -> str:
    """Its secret."""
    url = f"{hooks}/{agent.slug}"
    return endpoints.register(agent=agent, url=url, by=cast["owen"])[1]


def _agent(number: int, cast: dict[str, Person], tools: list[str]) -> Agent:
    return registry.register(
        slug=slug(number),
        name=f"Agent {number}",
        owner=cast["owen"],
        tools=tools,
        by=cast["adam"],
    )
