"""The people, the policy in force, the agents and what these propose.

All of it is made by the operations that people and agents use. The floor keeps the same
proposal: its reasons and its checkpoint are part of the unit of work.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents import intake, keys, proposals, registry
from agents.idempotency import StoredAnswer
from agents.models import Agent
from agents.schemas.proposals import ProposalIn
from journal import log
from policies import people, versions
from policies.choices import Role
from policies.models import Person, Queue
from policies.people import NewPerson
from reviews.batches import formation
from reviews.models import Batch

POLICY = Path(__file__).parent / "policy.yaml"
_BLOB = base64.b64encode(bytes(range(256))).decode()
_WAITING = 50  # refunds, and credits of one batch
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
    """The agents that propose and the people who decide; `keys` are the agents', in
    the same order."""

    agents: list[Agent]
    keys: list[str]
    reviewers: list[Person]


def seed_database() -> Seed:
    """Make a gate that is ready for proposals."""
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
    """Let one of the cast write the policy and another activate it. Those who decide
    are in every queue that it names."""
    draft = versions.save_draft(text_or_mapping=document, author=cast["adam"])
    versions.prepare_queues(names=draft.document["queues"])
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


def build_proposal_body(thread: str) -> dict[str, Any]:
    """A body of `POST /proposals` about an order of its own, with things to redact."""
    order = uuid.uuid4().hex[:12].upper()
    return {
        "thread": thread,
        "tool": "refund",
        "args": {"order_id": order, "amount": "40.00", "currency": "USD"},
        "rationale": f"Mary Poe (mary@example.com) says that {order} came broken.",
        "expected_outcome": "40.00 USD go back to the card.",
        "evidence": [
            {"kind": "message", "source": "inbox", "text": "The lid is cracked."},
            {"kind": "order", "source": "store", "text": "Delivered two days ago."},
        ],
        "checkpoint": {
            "summary": "Waits for the refund, then answers Mary.",
            "state": {"step": "refund", "order": order, "tries": 1},
            "blob": _BLOB,
            "resume_at": "after_refund",
        },
        "preconditions": {"order_version": 7},
    }


def build_proposal_headers(agent_key: str, idempotency_key: str) -> dict[str, str]:
    """The headers of `POST /proposals` by the agent with this key."""
    return {
        "Authorization": f"Bearer {agent_key}",
        "Content-Type": "application/json",
        "Idempotency-Key": idempotency_key,
    }


def propose_body(
    agent: Agent, body: dict[str, Any], idempotency_key: str
) -> StoredAnswer:
    """Propose as the API does once it has read the body."""
    key = intake.parse_call_key(idempotency_key, "POST", "/proposals", body)
    asked = intake.build_proposal_input(agent, ProposalIn.model_validate(body))
    return proposals.propose_action(agent=agent, key=key, asked=asked)


@dataclass(frozen=True)
class OpenPages:
    """The addresses of pages, and the requests that a measurement may decide."""

    review: str
    batch: str
    requests: list[str]

    @property
    def paths(self) -> dict[str, str]:
        return {
            "queue": "/queue/",
            "review": f"/requests/{self.review}/",
            "batch": f"/batches/{self.batch}/",
            "log": "/log/",
        }


def propose_pages(seed: Seed, more: int) -> OpenPages:
    """Propose fifty refunds and `more` that can be decided, and form the batch."""
    agent = seed.agents[0]
    refunds = [
        propose_body(agent, build_proposal_body(f"desk-{n}"), f"desk-{n}")
        for n in range(_WAITING + more)
    ]
    for n in range(_WAITING):
        propose_body(agent, _build_credit_body(n), f"credit-{n}")
    formation.form_missed_batches()
    waiting = [stored.body["request"]["id"] for stored in refunds]
    return OpenPages(waiting[0], Batch.objects.latest("formed_at").pk, waiting[1:])


def _build_credit_body(number: int) -> dict[str, Any]:
    amount = "96.00" if number == _WAITING // 2 else f"{20 + number % 9}.00"
    args = {"customer": f"C-{number}", "amount": amount, "currency": "USD"}
    body = {**build_proposal_body(f"credit-{number}"), "tool": "credit", "args": args}
    del body["preconditions"]  # nobody reads its state
    return body
