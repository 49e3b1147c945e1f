"""What people have open in a measurement: fifty waiting refunds, a batch of fifty
credits, and the log of them all."""

from __future__ import annotations

from dataclasses import dataclass

from agents import intake, proposals
from agents.idempotency import StoredAnswer
from agents.schemas import ProposalIn
from reviews.batches import formation
from reviews.models import Batch

from .asked import build_proposal_body
from .seed import Seed

_WAITING = 50


@dataclass(frozen=True)
class OpenPages:
    """The addresses, and the requests that a measurement may decide."""

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
    """Fifty refunds and `more` that can be decided, and the batch."""
    refunds = [
        _propose(seed, build_proposal_body(f"desk-{n}")) for n in range(_WAITING + more)
    ]
    for number in range(_WAITING):
        _propose(seed, _build_credit_body(number))
    formation.form_missed_batches()
    waiting = [stored.body["request"]["id"] for stored in refunds]
    return OpenPages(waiting[0], Batch.objects.latest("formed_at").pk, waiting[1:])


def _build_credit_body(number: int) -> dict[str, object]:
    amount = "96.00" if number == _WAITING // 2 else f"{20 + number % 9}.00"
    args = {"customer": f"C-{number}", "amount": amount, "currency": "USD"}
    said = {**build_proposal_body(f"credit-{number}"), "tool": "credit", "args": args}
    del said["preconditions"]  # nobody reads its state
    return said


def _propose(seed: Seed, said: dict[str, object]) -> StoredAnswer:
    agent = seed.agents[0]
    key = intake.parse_call_key(str(said["thread"]), "POST", "/proposals", said)
    asked = intake.build_proposal_input(agent, ProposalIn.model_validate(said))
    return proposals.propose_action(agent=agent, key=key, asked=asked)
