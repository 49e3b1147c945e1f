"""Races need commits: real transactions on real connections."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
import redis
from guardian.shortcuts import assign_perm
from pytest_django import Settings

from policies.choices import Role
from policies.models import Person, Queue
from tests import factories
from tests.conftest import Gate


@pytest.fixture(autouse=True)
def _swept(transactional_db: None, settings: Settings) -> Iterator[None]:
    """No agent's caps, and no nudges left for the workers of a later test."""
    many = {"agent_rate_per_minute": 10**6, "agent_pending_cap": 10**6}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=many)
    yield
    with redis.Redis.from_url(settings.COUNTERSEAL.redis_url) as client:
        client.flushdb()


@pytest.fixture
def crowd(gate: Gate) -> Callable[..., list[Person]]:
    """`crowd(32, Role.REVIEWER)`: so many people of a role, admitted to every queue."""

    def make(count: int, role: Role) -> list[Person]:
        people = [factories.person(f"{role[:3]}{n}", role) for n in range(count)]
        for person, queue in itertools.product(people, Queue.objects.all()):
            assign_perm("policies.decide", person, queue)
        return people

    return make
