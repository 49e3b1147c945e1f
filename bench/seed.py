"""People, a policy in force and agents, made by the operations that people use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents import keys, registry
from agents.models import Agent
from journal import log
from policies import people, versions
from policies.choices import Role
from policies.models import Person, Queue
from policies.people import NewPerson

POLICY = Path(__file__).parent / "policy.yaml"
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
# So many that none reaches the shipped 600 proposals a minute or 1,000 waiting: the
# caps stay as they are and are asked every time.
_AGENTS = 64


Cast = dict[str, Person]


@dataclass(frozen=True)
class Seed:
    """Who proposes and who decides. `keys` are the agents', in their order."""

    agents: list[Agent]
    keys: list[str]
    reviewers: list[Person]


def seed_database() -> Seed:
    """A gate that is ready to be asked."""
    cast = add_cast()
    activate_policy(POLICY.read_text(), cast)
    agents = [
        register_agent(number, cast, ["refund", "credit"]) for number in range(_AGENTS)
    ]
    return Seed(
        agents,
        [keys.issue_key(agent=agent, by=cast["owen"]) for agent in agents],
        [Person.objects.get(username=name) for name in ("rita", "tom")],
    )


def add_cast() -> Cast:
    return {name: _add_person(name, role) for name, role in CAST.items()}


def activate_policy(document: str | dict[str, Any], cast: Cast) -> None:
    """A policy that one of the cast wrote and another activated. Those who decide are
    in every queue that it names."""
    draft = versions.save_draft(text_or_mapping=document, author=cast["adam"])
    for name in DECIDING:
        people.admit_to_queues(cast[name], Queue.objects.all(), by=log.SYSTEM)
    versions.activate_version(version_id=draft.pk, by=cast["alma"])


def register_agent(number: int, cast: Cast, tools: Sequence[str]) -> Agent:
    return registry.register_agent(
        slug=format_slug(number),
        name=f"Agent {number}",
        owner=cast["owen"],
        tools=tools,
        by=cast["adam"],
    )


def format_slug(number: int) -> str:
    return f"agent-{number}"


def _add_person(name: str, role: Role) -> Person:
    newcomer = NewPerson(name, f"{name}@example.com", PASSWORD, role)
    return people.add_person(newcomer, by=log.SYSTEM)
