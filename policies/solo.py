"""Solo mode: one person tries the whole gate on their own machine.

Their account has every role. What needs two people elsewhere needs this one, each
request asks for one vote, and every record of a person in the log says `solo`. Only a
gate that is private to one machine starts in this mode (hitl/environment.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.conf import settings

from .choices import Role

Step = TypeVar("Step", bound=Any)


def is_solo() -> bool:
    """Whether this gate runs in solo mode."""
    return bool(settings.COUNTERSEAL.solo)


def cap_votes(steps: Sequence[Step]) -> Sequence[Step]:
    """The steps as they are or, in solo mode, one that asks for one vote of the highest
    of their roles. Steps have a `role` and how many people are `required`."""
    if not steps or not is_solo():
        return steps
    roles = {step.role for step in steps}
    role = Role.SUPERVISOR if Role.SUPERVISOR in roles else Role.REVIEWER
    return [type(steps[0])(role=role, required=1)]


def lacks_second_person(first: object, second: object) -> bool:
    """Whether a step that takes two people has only one: both ids are the same, and the
    gate is not in solo mode."""
    return first == second and not is_solo()
