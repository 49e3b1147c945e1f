"""What an administrator still has to do before a first request is decided, and what
else waits for one: gaps in the staff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from agents.models import AgentKey
from policies import active
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.models import Decision
from reviews.roles import Permission

from ..queues.page import build_queues_page


@dataclass(frozen=True, slots=True)
class FirstStep:
    label: str
    hint: str
    url: str
    done: bool


@dataclass(frozen=True, slots=True)
class AdministratorPart:
    """`steps` is empty once all are done; `gaps` counts what the policy asks for and
    the staff cannot give, or only just."""

    steps: Sequence[FirstStep]
    gaps: int

    @property
    def done(self) -> int:
        return sum(step.done for step in self.steps)


def build_administrator_part(person: Person, deciding: int) -> AdministratorPart | None:
    """The part, or None for people who administer nothing. `deciding` people may decide
    something."""
    if not permissions.has_permission(person, Permission.MANAGE_PEOPLE):
        return None
    policy, steps = active.find_active_policy(), _list_steps(deciding)
    return AdministratorPart(
        steps if not all(step.done for step in steps) else (),
        len(build_queues_page(person).gaps) if policy else 0,
    )


def _list_steps(deciding: int) -> list[FirstStep]:
    administrators = Person.objects.filter(
        is_active=True, groups__name=Role.ADMINISTRATOR
    )
    people = reverse("reviews:people")
    return [
        FirstStep(
            "A second administrator",
            "What widens somebody's authority takes two.",
            people,
            administrators.count() > 1,
        ),
        FirstStep(
            "An active policy",
            "One administrator writes it, another activates it.",
            reverse("policies:policies"),
            active.find_active_policy() is not None,
        ),
        FirstStep(
            "Two people who decide",
            "Invite reviewers and supervisors, and give them queues.",
            people,
            deciding > 1,
        ),
        FirstStep(
            "An agent with a key",
            "Register it, and give its key to whoever runs it.",
            reverse("agents:agents"),
            AgentKey.objects.filter(revoked_at__isnull=True).exists(),
        ),
        FirstStep(
            "A first decision",
            "Hold a function of your own, and let a person decide.",
            reverse("client"),
            Decision.objects.exists(),
        ),
    ]
