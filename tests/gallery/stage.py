"""What scenes are built with: the cast at the demo's store, and an agent that asks for
what a shop's agent asks for, in words a shop's agent would use."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policies.models import Person
from reviews.decisions import drafts
from reviews.models import ApprovalRequest, Proposal
from tests import factories
from tests.conftest import Gate
from tests.policies import store
from tests.reviews.presenters import kinds

from . import shop

BACKEND = "django.contrib.auth.backends.ModelBackend"
CEILING_MINOR = 50_000  # of reviewers, as in the demo
RATIONALE = (
    "The customer says that the parcel of order {order} never reached them. The"
    " carrier shows it as left at the front door, without a signature. Two neighbours"
    " were asked and have nothing. The amount is what the customer paid for the item"
    " that is missing."
)
WORDS: dict[str, Any] = {
    "expected_outcome": "The customer has the money within three days.",
    "alternatives": [
        {"action": "Send it again", "why_not": "The item is out of stock."},
        {"action": "Claim it from the carrier first", "why_not": "Takes six weeks."},
    ],
    "evidence": [
        {
            "kind": "message",
            "source": "support inbox",
            "text": "Hi,\n\nmy order shows as delivered two days ago, but I never got"
            " it. I was at home all day. Please refund it.\n\nCasey Lindholm\n"
            "casey.lindholm@mail.example, +1 202 555 0143",
            "at": "2026-11-18T14:20:00Z",
        },
        {
            "kind": "carrier scan",
            "source": "Harrow Parcel",
            "text": "Delivered, left at front door. No signature.",
        },
    ],
    "checkpoint": {
        "summary": "Works on a message about a parcel; waits for the refund.",
        "state": {"intent": "refund", "steps": 4, "agenda": ["refund", "reply"]},
        "blob": "c2VjcmV0",
        "resume_at": "refund",
    },
    "source": "support inbox",
}


@dataclass
class Stage:
    """One gate in the demo's store."""

    gate: Gate
    orders: Iterator[str]
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __getattr__(self, name: str) -> Person:
        try:
            return self.gate.people[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def agent(self) -> Any:
        return self.gate.agent

    def asked(self, tool: str, args: dict[str, Any], **words: Any) -> Proposal:
        """One proposal in a run of its own, unless `thread` names one."""
        said = {"thread": f"ticket-{480 + next(self._numbers)}", **WORDS, **words}
        said.setdefault(
            "rationale", RATIONALE.format(order=args.get("order_id", "78291"))
        )
        return factories.propose(self.agent, tool, args=args, **said)

    def wants(self, tool: str, args: dict[str, Any], **words: Any) -> ApprovalRequest:
        """The same, where people have to decide."""
        made = self.asked(tool, args, **words)
        found = ApprovalRequest.objects.filter(proposal=made).first()
        assert found is not None, (tool, made.blocked_by)
        return found

    def refund(
        self, amount: str = "40.00", order: str = "", **words: Any
    ) -> ApprovalRequest:
        """High: money, to the customer of an order that no other scene has."""
        args = {"order_id": order or next(self.orders), "amount": amount}
        args |= {"currency": "USD", "reason": "not_received"}
        return self.wants("process_refund", args, **words)

    def mail(self, **args: Any) -> ApprovalRequest:
        """High, with a reason: it leaves the store."""
        letter = {
            "to": ["casey.lindholm@mail.example", "desk@northgate-electronics.example"],
            "subject": "Your order 78291",
            "body": "Hello Casey,\n\nwe have refunded 899.00 USD for your laptop. The "
            "money is with your bank in three days.\n\nNorthgate Electronics",
        }
        return self.wants("send_email", {**letter, **args})

    def label(self, **words: Any) -> ApprovalRequest:
        """Medium: announced, were the agent sure of it."""
        args = {"order_id": "78291", "label": "carrier claim"}
        return self.wants("add_label", args, **{"uncertain": True, **words})

    def address(self) -> ApprovalRequest:
        """Critical, of two supervisors: the parcel is on its way."""
        args = {"order_id": "78298", "address": store.ADDRESS}
        return self.wants("change_shipped_address", args)

    def deletion(self) -> ApprovalRequest:
        """Critical, of one reviewer."""
        return self.wants("delete_customer", {"customer_id": "C-1040"})

    def typed(self, request: ApprovalRequest, reason_code: str = "unsafe") -> None:
        """What Rita wrote into the panel of Reject and did not send."""
        drafts.save_draft(
            person=self.rita,
            request_id=request.pk,
            version=1,
            verdict="reject",
            reason_code=reason_code,
            reason="The address does not fit",
        )

    def kind(self, tool: str) -> ApprovalRequest:
        """A tool of another kind, with the arguments of its example."""
        return self.wants(tool, kinds.EXAMPLES[tool][0], uncertain=True)


def set_up(gate: Gate, folder: Path) -> Stage:
    """The store's policy in force; reviewers decide up to their ceiling."""
    shop.opened(folder)
    document = shop.policy()
    factories.policy(gate.people, document)
    gate.agent.tools = sorted(document["tools"])
    gate.agent.save()
    for name in ("rita", "tom"):
        person = gate.people[name]
        person.ceiling_minor, person.ceiling_currency = CEILING_MINOR, "USD"
        person.save()
    return Stage(gate, itertools.cycle(shop.orders()))


def path(request: ApprovalRequest, *more: str) -> str:
    """An address of this request."""
    return "/".join(["/requests", request.pk, *more, ""])
