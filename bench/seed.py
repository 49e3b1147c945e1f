"""The people, the policy in force, the agents and what these propose.

All of it is made by the operations that people and agents use. The floor keeps the same
proposal: its reasons and its checkpoint are part of the unit of work.
"""

from __future__ import annotations

import base64
import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents import intake, proposals
from agents.idempotency import StoredAnswer
from agents.models import Agent
from agents.schemas.proposals import ProposalIn
from policies.models import Person
from reviews.batches import formation
from reviews.choices import VERDICT_SPECS, Verdict
from reviews.models import Batch
from world import cast as world_cast

POLICY = Path(__file__).parent / "policy.yaml"
_BLOB = base64.b64encode(bytes(range(256))).decode()
ACTIONS_A_THREAD = 10
_WAITING = 50  # refunds, and credits of one batch
# So many that none reaches the shipped 600 proposals a minute or 1,000 waiting: the
# caps stay as they are and are asked every time.
_AGENTS = 64


@dataclass(frozen=True)
class Seed:
    """The agents that propose and the people who decide; `keys` are the agents', in
    the same order."""

    agents: list[Agent]
    keys: list[str]
    reviewers: list[Person]


def seed_database() -> Seed:
    """Make a gate that is ready for proposals."""
    cast = world_cast.add_cast()
    world_cast.activate_policy(POLICY.read_text(), cast)
    slugs = [f"agent-{number}" for number in range(_AGENTS)]
    agents = world_cast.register_agents(slugs, cast, ["refund", "credit"])
    return Seed(
        list(agents.values()),
        list(world_cast.issue_keys(agents, cast).values()),
        [Person.objects.get(username=name) for name in ("rita", "tom")],
    )


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


def build_headers(credential: str, **headers: str) -> dict[str, str]:
    """The headers of a call with a body by the agent or person with this credential."""
    return {
        "Authorization": f"Bearer {credential}",
        "Content-Type": "application/json",
        **headers,
    }


@dataclass(frozen=True, slots=True)
class ProposalCall:
    """What `POST /proposals` takes, and the key of the agent that sends it."""

    number: int
    key: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class ProposalCalls:
    """Calls of the agents in turn; so many proposals of one thread follow one another.
    Those at work at a time do not queue for one thread's lock."""

    keys: list[str]
    per_thread: int = ACTIONS_A_THREAD
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def build_next(self) -> ProposalCall:
        number = next(self.numbers)
        turn, lane = divmod(number, len(self.keys))
        key = self.keys[lane]
        return ProposalCall(
            number,
            key,
            build_headers(key, **{"Idempotency-Key": f"{self.run}-{number}"}),
            build_proposal_body(f"{self.run}-{lane}-{turn // self.per_thread}"),
        )


def build_verdict(
    proposal: dict[str, Any], verdict: Verdict, **fields: str
) -> tuple[str, dict[str, Any]]:
    """The path and the body of a verdict on a proposal, as its agent sees it."""
    request = proposal["request"]
    body = {
        "version": request["version"],
        "action_hash": proposal["action_hash"],
        "verdict": verdict,
        "reason_code": VERDICT_SPECS[verdict].reasons[0],
        **fields,
    }
    return f"/api/v1/requests/{request['id']}/decide", body


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
