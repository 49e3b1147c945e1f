"""Who takes part in a gate: its people, the policy in force, and the agents that
propose. All of it is made by the operations that people use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agents import keys, registry
from agents.models import Agent
from agents.registry import NewAgent
from journal import log
from policies import people, versions
from policies.choices import Role
from policies.models import Person, PolicyVersion, Queue
from policies.people import NewPerson
from reviews.people import tokens

LOGINS = {
    "rita": Role.REVIEWER,
    "tom": Role.REVIEWER,
    "sue": Role.SUPERVISOR,
    "sam": Role.SUPERVISOR,
    "adam": Role.ADMINISTRATOR,
    "alma": Role.ADMINISTRATOR,
    "owen": Role.OWNER,
}
DECIDERS = ("rita", "tom", "sue", "sam")
PASSWORD = "a long way to the harbour"  # noqa: S105 of people who exist for a run
Cast = dict[str, Person]


def add_cast() -> Cast:
    """The people, each with one role, by their names."""
    return {name: add_person(name, role) for name, role in LOGINS.items()}


def add_person(name: str, role: Role) -> Person:
    newcomer = NewPerson(name, f"{name}@example.com", PASSWORD, role)
    return people.add_person(newcomer, by=log.SYSTEM)


def activate_policy(document: str | dict[str, Any], cast: Cast) -> None:
    """Let one of the cast write the policy and another activate it. Those who decide
    are in every queue that it names."""
    deciders = [cast[name] for name in DECIDERS]
    put_in_force(
        document, cast["adam"], cast["alma"], admit=lambda: admit_everywhere(deciders)
    )


def put_in_force(
    document: str | dict[str, Any],
    author: Person,
    second: Person,
    *,
    admit: Callable[[], None],
    variables: Mapping[str, str] | None = None,
) -> PolicyVersion:
    """Save a policy and activate it; `admit` lets people into its queues before."""
    draft = versions.save_draft(
        text_or_mapping=document, author=author, variables=variables or {}
    )
    versions.prepare_queues(names=draft.document["queues"])
    admit()
    return versions.activate_version(version_id=draft.pk, by=second)


def admit_everywhere(persons: Iterable[Person]) -> None:
    """Let these people decide in every queue there is."""
    for person in persons:
        people.admit_to_queues(person, Queue.objects.all(), by=log.SYSTEM)


def register_agents(
    slugs: Iterable[str], cast: Cast, tools: Sequence[str]
) -> dict[str, Agent]:
    return {
        slug: registry.register_agent(
            new=NewAgent(
                slug, slug.replace("-", " ").capitalize(), cast["owen"], tools
            ),
            by=cast["adam"],
        )
        for slug in slugs
    }


def issue_keys(agents: Mapping[str, Agent], cast: Cast) -> dict[str, str]:
    """A key for each agent, by its slug."""
    return {
        slug: keys.issue_key(agent=agent, by=cast["owen"])
        for slug, agent in agents.items()
    }


def create_tokens(cast: Cast, names: Iterable[str] = DECIDERS) -> dict[str, str]:
    """A personal token for each of these people, by their names."""
    return {
        name: tokens.create_token(person=cast[name], name="world") for name in names
    }
