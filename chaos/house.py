"""People, a policy in force and agents, made by the operations that people use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agents import keys, registry
from journal import log
from policies import people, versions
from policies.choices import Role
from policies.models import Person, Queue
from policies.people import Newcomer
from reviews import tokens

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


@dataclass(frozen=True)
class House:
    """Who knocks and who decides, by what they carry."""

    keys: dict[str, str]  # agent -> its key
    tokens: dict[str, str]  # person -> personal token


def house(document: dict[str, Any]) -> House:
    """A gate that is ready to be asked."""
    cast = {name: _person(name, role) for name, role in CAST.items()}
    draft = versions.save_draft(text_or_mapping=document, author=cast["adam"])
    for name in DECIDING:
        people.admit(cast[name], Queue.objects.all(), by=log.SYSTEM)
    versions.activate(version_id=draft.pk, by=cast["alma"])
    return House(
        dict(_agent(number, cast, list(document["tools"])) for number in range(AGENTS)),
        {name: tokens.mint(person=cast[name], name="chaos") for name in DECIDING},
    )


def _person(name: str, role: Role) -> Person:
    newcomer = Newcomer(name, f"{name}@example.com", PASSWORD, role)
    return people.add(newcomer, by=log.SYSTEM)


def _agent(number: int, cast: dict[str, Person], tools: list[str]) -> tuple[str, str]:
    slug = f"agent-{number}"
    row = registry.register(
        slug=slug,
        name=f"Agent {number}",
        owner=cast["owen"],
        tools=tools,
        by=cast["adam"],
    )
    return slug, keys.issue(agent=row, by=cast["owen"])
