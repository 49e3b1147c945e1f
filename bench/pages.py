"""What people have open in a measurement: fifty waiting refunds, a batch of fifty
credits, and the log of them all."""

from __future__ import annotations

from dataclasses import dataclass

from agents import intake, proposals
from agents.idempotency import StoredAnswer
from agents.schemas import ProposalIn
from reviews.batches import formation
from reviews.models import Batch

from .asked import body
from .seed import House

WAITING = 50


@dataclass(frozen=True)
class Open:
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


def furnish(house: House, more: int) -> Open:
    """Fifty refunds and `more` that can be decided, and the batch."""
    refunds = [_propose(house, body(f"desk-{n}")) for n in range(WAITING + more)]
    for number in range(WAITING):
        _propose(house, _credit(number))
    formation.form_missed_batches()
    waiting = [stored.body["request"]["id"] for stored in refunds]
    return Open(waiting[0], Batch.objects.latest("formed_at").pk, waiting[1:])


def _credit(number: int) -> dict[str, object]:
    amount = "96.00" if number == WAITING // 2 else f"{20 + number % 9}.00"
    args = {"customer": f"C-{number}", "amount": amount, "currency": "USD"}
    said = {**body(f"credit-{number}"), "tool": "credit", "args": args}
    del said["preconditions"]  # nobody reads its state
    return said


def _propose(house: House, said: dict[str, object]) -> StoredAnswer:
    agent = house.agents[0]
    key = intake.parse_call_key(str(said["thread"]), "POST", "/proposals", said)
    asked = intake.build_proposal_input(agent, ProposalIn.model_validate(said))
    return proposals.propose_action(agent=agent, key=key, asked=asked)
