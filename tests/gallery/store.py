"""The demo's store inside the tests' process: its policy without webhooks, its data,
effects that succeed, fail or get lost, and an agent that proposes what it would."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from demo.store import database, readers
from policies.models import Person
from reviews.decisions import drafts
from reviews.executions import run
from reviews.holds import take
from reviews.models import ApprovalRequest, Execution, Proposal
from reviews.tool_services.executors import Call, KnownFailure
from tests import factories
from tests.conftest import Gate
from tests.policies import store
from tests.reviews.presenters import kinds

HERE = "tests.gallery.store"
RECALL_S = 600
CEILING_MINOR = 50_000  # of reviewers, as in the demo
LAPTOP = "78291"  # of 899.00, bought by Casey
CASEY = "C-1017"
FORGOTTEN = "C-1040"  # no law keeps their invoices any more
LABEL = {"order_id": LAPTOP, "label": "carrier claim"}
PAYMENT: dict[str, Any] = {"refund": "RF-20418", "status": "submitted"}
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
MAIL = {
    "to": ["casey.lindholm@mail.example", "desk@northgate-electronics.example"],
    "subject": "Your order 78291",
    "body": "Hello Casey,\n\nwe have refunded 899.00 USD for your laptop. The money is"
    " with your bank in three days.\n\nNorthgate Electronics",
}
# The store's file, and what becomes of effects until a test says otherwise.
STATE: dict[str, Any] = {}


@dataclass(frozen=True)
class StoreGate(Gate):
    """A gate with the store's policy in force."""

    orders: Iterator[str]  # one a customer: the policy sums over customers
    tickets: Iterator[int] = field(default_factory=lambda: itertools.count(481))

    def adopt(self, document: dict[str, Any] | None = None, **changes: Any) -> None:
        """Put the store's policy in force, with some of its parts replaced."""
        factories.policy(self.people, (document or policy()) | changes)

    def propose(self, tool: str, args: dict[str, Any], **fields: Any) -> Proposal:
        """One proposal in a thread of its own, unless `thread` names one."""
        fields = {"thread": f"ticket-{next(self.tickets)}", **WORDS, **fields}
        rationale = RATIONALE.format(order=args.get("order_id", LAPTOP))
        fields.setdefault("rationale", rationale)
        return factories.propose(self.agent, tool, args=args, **fields)

    def ask(self, tool: str, args: dict[str, Any], **fields: Any) -> ApprovalRequest:
        """A proposal that people have to decide."""
        proposal = self.propose(tool, args, **fields)
        request = ApprovalRequest.objects.filter(proposal=proposal).first()
        assert request is not None, (tool, proposal.blocked_by)
        return request

    def refund(
        self, amount: str = "40.00", order: str = "", **fields: Any
    ) -> ApprovalRequest:
        """High: money, to the customer of an order that no other scene has."""
        args = {"order_id": order or next(self.orders), "amount": amount}
        args |= {"currency": "USD", "reason": "not_received"}
        return self.ask("process_refund", args, **fields)

    def mail(self, **args: Any) -> ApprovalRequest:
        """High, with a reason: it leaves the store."""
        return self.ask("send_email", {**MAIL, **args})

    def label(self, **fields: Any) -> ApprovalRequest:
        """Medium: announced, were the agent sure of it."""
        return self.ask("add_label", dict(LABEL), uncertain=True, **fields)

    def address(self) -> ApprovalRequest:
        """Critical, of two supervisors: the parcel is on its way."""
        args = {"order_id": "78298", "address": store.ADDRESS}
        return self.ask("change_shipped_address", args)

    def deletion(self) -> ApprovalRequest:
        """Critical, of one reviewer."""
        return self.ask("delete_customer", {"customer_id": FORGOTTEN})

    def example(self, tool: str) -> ApprovalRequest:
        """A tool of another kind, with the arguments of its example."""
        return self.ask(tool, kinds.EXAMPLES[tool][0], uncertain=True)

    def revise(self, request: ApprovalRequest, **args: Any) -> ApprovalRequest:
        """The agent changes some arguments of a request that waits."""
        changed = {**request.sealed.revision.args, **args}
        factories.revised(self.agent, request.proposal, changed)
        return request

    def hold(self, request: ApprovalRequest, person: Person) -> ApprovalRequest:
        take.take_hold(request_id=request.pk, person=person)
        return request

    def save_draft(
        self, request: ApprovalRequest, reason_code: str = "unsafe"
    ) -> ApprovalRequest:
        """What Rita wrote into the panel of Reject and did not send."""
        drafts.save_draft(
            person=self.rita,
            request_id=request.pk,
            version=1,
            panel="reject",
            reason_code=reason_code,
            reason="The address does not fit",
        )
        return request

    def approve(self, request: ApprovalRequest) -> Execution:
        """The execution of what Rita approved, its recall window past."""
        factories.decide(request, self.rita, reason_code="verified")
        factories.window_over(request)
        return Execution.objects.get(proposal=request.proposal_id)

    def perform(self, execution: Execution, effects: str = "done") -> Execution:
        """What the worker does, with this outcome: done, declined or busy."""
        STATE["effects"] = effects
        run.run_execution(execution.pk)
        STATE["effects"] = "done"
        return execution

    def refunded(self, effects: str = "done") -> ApprovalRequest:
        """A refund that was approved and attempted."""
        request = self.refund("59.00")
        self.perform(self.approve(request), effects)
        return request

    def labelled(self, label: str = LABEL["label"], order: str = LAPTOP) -> Execution:
        """What asks nobody, and can be undone, after its effect."""
        args = {"order_id": order, "label": label}
        execution: Execution = self.propose("add_label", args).executions.get()
        return self.perform(execution)


def open_store(gate: Gate, folder: Path) -> StoreGate:
    """The store as on its first day, its policy in force; reviewers decide up to their
    ceiling."""
    STATE.clear()
    STATE["file"] = folder / "store.sqlite3"
    database.prepare(STATE["file"])
    with database.writing(STATE["file"]) as db:
        forget = "UPDATE customer SET retention_until = ? WHERE id = ?"
        db.execute(forget, ["2020-01-01T00:00:00Z", FORGOTTEN])
    made = StoreGate(gate.people, gate.policy, gate.agent, itertools.cycle(_orders()))
    made.adopt()
    gate.agent.tools = sorted(policy()["tools"])
    gate.agent.save()
    for name in ("rita", "tom"):
        person = gate.people[name]
        person.ceiling_minor, person.ceiling_currency = CEILING_MINOR, "USD"
        person.save()
    return made


def _orders() -> list[str]:
    with database.reading(STATE["file"]) as db:
        rows = db.execute(
            "SELECT min(id) FROM purchase WHERE total_minor > 6000 AND customer != ?"
            " GROUP BY customer ORDER BY 1",
            [CASEY],
        )
        return [row[0] for row in rows]


def change_order(request: ApprovalRequest, status: str) -> None:
    """Something happens to a request's order that nobody proposed."""
    with database.writing(STATE["file"]) as db:
        db.execute(
            "UPDATE purchase SET carrier_status = ?, version = version + 1"
            " WHERE id = ?",
            [status, request.sealed.revision.args["order_id"]],
        )


def policy() -> dict[str, Any]:
    """The store's policy, and beside it a tool of every other kind."""
    made = store.data()
    other = store.load_yaml(kinds.POLICY)
    made["tools"] = _replace_webhooks(other["tools"] | made["tools"])
    made["queues"] |= other["queues"]
    made["measures"] |= other["measures"]
    made["free_form"] = other["free_form"]
    made["recall"] = {"low": RECALL_S, "medium": RECALL_S, "high": RECALL_S}
    made["desk"] = {
        "time_floor": dict.fromkeys(("low", "medium", "high", "critical"), 0),
        "micro_check": {"low": 0, "medium": 0, "high": 1, "critical": 1},
        "written_answer": [],
    }
    return made


def hidden_mail() -> dict[str, Any]:
    """The same with the text of a mail as a sensitive value."""
    document = policy()
    document["tools"]["send_email"]["sensitive"] = ["body"]
    return document


def _replace_webhooks(tools: dict[str, Any]) -> dict[str, Any]:
    """Nothing leaves the process; what the agent performs itself it still does."""
    for name, tool in tools.items():
        tool.setdefault("execution_class", "keyed")
        if tool["executor"]["kind"] == "webhook":
            tool["executor"] = {"kind": "callable", "path": f"{HERE}.perform"}
        if "reader" in tool or name in kinds.EXAMPLES:
            tool["reader"] = {"kind": "callable", "path": f"{HERE}.read_{name}"}
    return tools


def perform(call: Call) -> dict[str, Any]:
    """The executor of every tool: `STATE` says what becomes of the effect."""
    effects = STATE.get("effects", "done")
    if effects == "declined" or call.args.get("order_id") in STATE.get("declined", ()):
        raise KnownFailure("declined", "The payment provider declined the refund.")
    if effects == "busy":
        detail = "The payment provider asks for another try."
        raise KnownFailure("busy", detail, again=True)
    return PAYMENT


def find(call: Call) -> dict[str, Any]:
    """Asked what became of an effect, the store's site cannot say yet."""
    return {"status": "pending"}


def __getattr__(name: str) -> Callable[..., dict[str, Any]]:
    """`read_<tool>`: the tool's reader, by the name that the policy gives it."""
    verb, _, tool = name.partition("_")
    if verb != "read":
        raise AttributeError(name)
    return partial(_read, tool)


def _read(tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
    if tool in readers.READERS:
        return readers.read(STATE["file"], tool, args)
    return {"before": kinds.EXAMPLES[tool][1], "source": "shop", "keys": {}}
