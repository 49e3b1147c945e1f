"""One gated round trip by the product's own operations, with everything on: caps,
stops, look-ups, policy, sums, redaction, checkpoint, log, outbox, re-checks."""

from __future__ import annotations

import copy
import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import connection

from agents import intake, proposals
from agents.idempotency import StoredAnswer
from agents.schemas import ProposalIn
from policies.models import Person
from reviews.choices import VERDICT_SPECS, Verdict
from reviews.decisions import decide as decisions
from reviews.decisions.submission import VerdictSubmission
from reviews.executions import run as executions
from reviews.models import ApprovalRequest

from .asked import build_proposal_body
from .seed import Seed

ACTIONS_A_THREAD = 10
_EXECUTION = "SELECT id FROM reviews_execution WHERE proposal_id = %s"


@dataclass
class ProductClient:
    """One client: its own threads, agents in turn, a reviewer."""

    seed: Seed
    number: int
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    count: Iterator[int] = field(default_factory=itertools.count)

    def action(self) -> None:
        """Checkpointed, decided, performed once and recorded."""
        request = self.decide(self.propose())
        self.perform(request.proposal_id)

    def propose(self) -> StoredAnswer:
        thread, turn = divmod(next(self.count), ACTIONS_A_THREAD)
        agents = self.seed.agents
        agent = agents[(self.number + thread) % len(agents)]
        said = build_proposal_body(f"{self.run}-{self.number}-{thread}")
        key = intake.parse_call_key(
            f"{said['thread']}-{turn}", "POST", "/proposals", said
        )
        asked = intake.build_proposal_input(agent, ProposalIn.model_validate(said))
        return proposals.propose_action(agent=agent, key=key, asked=asked)

    def decide(
        self, stored: StoredAnswer, verdict: Verdict = Verdict.APPROVE
    ) -> ApprovalRequest:
        asked = stored.body["request"]
        return decisions.decide_request(
            VerdictSubmission(
                request_id=asked["id"],
                person=self._reviewer(),
                verdict=verdict,
                reason_code=VERDICT_SPECS[verdict].reasons[0],
                version=asked["version"],
                action_hash=stored.body["action_hash"],
            )
        )

    def perform(self, proposal_id: str) -> None:
        """As the worker does it, without the broker between."""
        with connection.cursor() as cursor:
            cursor.execute(_EXECUTION, [proposal_id])
            (execution_id,) = cursor.fetchone()
        executions.run_execution(execution_id)

    def _reviewer(self) -> Person:
        """As a sign-in finds them: roles and queues are not remembered from before."""
        reviewers = self.seed.reviewers
        return copy.copy(reviewers[self.number % len(reviewers)])


@contextmanager
def open_product_client(seed: Seed, number: int) -> Iterator[Callable[[], object]]:
    """One client of the whole round trip on a connection of its own."""
    try:
        yield ProductClient(seed, number).action
    finally:
        connection.close()
