"""People, a policy in force and agents, made by the operations that people use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agents import keys, registry
from agents.models import Agent
from journal import log
from policies import people, versions
from policies.choices import Role
from policies.models import Person, Queue
from policies.people import Newcomer

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
AGENTS = 64


@dataclass(frozen=True)
class House:
    """Who proposes and who decides. `keys` are the agents', in their order."""

    agents: list[Agent]
    keys: list[str]
    reviewers: list[Person]


def house() -> House:
    """A gate that is ready to be asked."""
    cast = {name: _person(name, role) for name, role in CAST.items()}
    draft = versions.save_draft(text_or_mapping=POLICY.read_text(), author=cast["adam"])
    for name in DECIDING:
        people.admit(cast[name], Queue.objects.all(), by=log.SYSTEM)
    versions.activate(version_id=draft.pk, by=cast["alma"])
    agents = [_agent(number, cast) for number in range(AGENTS)]
    return House(
        agents,
        [keys.issue(agent=agent, by=cast["owen"]) for agent in agents],
        [Person.objects.get(username=name) for name in ("rita", "tom")],
    )


def _person(name: str, role: Role) -> Person:
    newcomer = Newcomer(name, f"{name}@example.com", PASSWORD, role)
    return people.add(newcomer, by=log.SYSTEM)


def _agent(number: int, cast: dict[str, Person]) -> Agent:
    return registry.register(
        slug=f"agent-{number}",
        name=f"Agent {number}",
        owner=cast["owen"],
        tools=["refund", "credit"],
        by=cast["adam"],
    )
