"""One gate with its people, the store's policy and an agent that speaks HTTP."""

from __future__ import annotations

import functools
import itertools
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import yaml
from django.conf import global_settings
from django.contrib.auth.hashers import make_password
from django.test import override_settings

from agents import keys
from agents.models import Agent
from demo import seed
from policies.choices import Role
from policies.models import Person
from reviews.models import ApprovalRequest, Execution
from tests import factories
from tests.journeys.desk.store import Store
from tests.stack import Stack, wait_until

OVERLAY = Path(__file__).parent / "policy.yaml"
CEILING_MINOR = 50_000  # of reviewers, as in the demo
SOON_S = 20
ANSWER_S = 40  # also for fifty at once


@dataclass
class House:
    """Everything outside the browser."""

    live: Stack
    store: Store
    people: dict[str, Person]
    agent: Agent
    key: str
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __getattr__(self, name: str) -> Person:
        try:
            return self.people[name]
        except KeyError:
            raise AttributeError(name) from None

    def rule(self, **changes: Any) -> None:
        """Another policy in force: the journeys', with some of its parts replaced."""
        rule(self.people, self.store, **changes)

    def post(self, path: str, body: Any) -> Any:
        """The agent sends something; the answer's body."""
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Idempotency-Key": f"k-{next(self._numbers)}",
        }
        address = f"{self.live.base_url}/api/v1{path}"
        answer = httpx2.post(
            address, json=body, headers=headers, trust_env=False, timeout=ANSWER_S
        )
        assert answer.is_success, answer.text
        return answer.json()

    def told(self, request: ApprovalRequest) -> Any:
        """What the agent reads of its proposal."""
        headers = {"Authorization": f"Bearer {self.key}"}
        address = f"{self.live.base_url}/api/v1/proposals/{request.proposal_id}"
        return httpx2.get(address, headers=headers, trust_env=False).json()

    def proposes(self, tool: str, args: Any, **fields: Any) -> Any:
        """The answer to a proposal."""
        body = {"thread": f"t-{next(self._numbers)}", "tool": tool, "args": args}
        return self.post("/proposals", {**body, "rationale": "Asked for.", **fields})

    def asks(self, tool: str, args: Any, **fields: Any) -> ApprovalRequest:
        """A proposal that people have to decide."""
        made = self.proposes(tool, args, **fields)
        assert made["status"] == "pending", made
        return ApprovalRequest.objects.get(pk=made["request"]["id"])

    def knows_password(self, name: str) -> None:
        """The password of all tests, as the web process wants it kept."""
        self.people[name].password = hashed()
        self.people[name].save()

    def ran(self, request: ApprovalRequest) -> Execution:
        """The execution, once it is over."""
        found = Execution.objects.filter(proposal=request.proposal_id)
        over = found.filter(finished_at__isnull=False)
        wait_until(over.exists, SOON_S, lambda: self.live.log("worker"))
        return found.get()


@functools.cache
def hashed() -> str:
    """Tests hash passwords cheaply; the web process wants them hashed well."""
    with override_settings(PASSWORD_HASHERS=global_settings.PASSWORD_HASHERS):
        return make_password(factories.PASSWORD)


def furnish(live: Stack, store: Store) -> House:
    """The cast of demo.json, the journeys' policy in force, and one agent."""
    people = {
        name: factories.person(name, role, **_ceiling(role))
        for name, role in factories.CAST.items()
    }
    rule(people, store)
    tools = [*seed.TOOLS, *overlay()["tools"]]
    agent = factories.agent(people["owen"], tools=tools)
    return House(
        live, store, people, agent, keys.issue_key(agent=agent, by=people["owen"])
    )


def _ceiling(role: Role) -> dict[str, Any]:
    if role is not Role.REVIEWER:
        return {}
    return {"ceiling_minor": CEILING_MINOR, "ceiling_currency": "USD"}


def rule(people: dict[str, Person], store: Store, **changes: Any) -> None:
    factories.policy(people, {**document(), **changes}, STORE_URL=store.url)


def overlay() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(OVERLAY.read_text())
    return found


def document() -> dict[str, Any]:
    """The store's policy with the journeys' laid over it, as data."""
    made: dict[str, Any] = yaml.safe_load(seed.POLICY.read_text())
    over = deepcopy(overlay())
    for part in ("queues", "tools"):
        made[part] |= over[part]
    made["rules"] += over["rules"]
    return {**made, "desk": over["desk"]}
