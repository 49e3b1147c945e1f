"""A case and its next move as the gate wants to hear them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from holdpoint_client import Details, Proposal

from .case import MOST_STEPS, Case, Message
from .moves import Draft, order_of
from .planner import Answer

HEAD, TAIL = 14_000, 5_000
"""Characters kept of a long text: the gate takes 20,000, and lies hide at the end."""


def details(case: Case, draft: Draft, message: Message) -> Details:
    """Everything a proposal says beside the action. `case` is the case as it waits."""
    said: Details = {
        "rationale": draft.rationale,
        "expected_outcome": draft.expected_outcome,
        "reversal": draft.reversal,
        "alternatives": [
            {"action": action, "why_not": why} for action, why in draft.alternatives
        ],
        "evidence": [_written(message), *_seen(case)],
        "checkpoint": {
            "summary": f"Works on a message of intent {case.intent}; waits for"
            f" {case.move}.",
            "state": {
                "goal": f"Settle a message of intent {case.intent}.",
                "plan": _plan(case),
                "budget": {"proposals": f"{case.steps} of at most {MOST_STEPS}"},
                "notes": list(case.notes),
            },
            "blob": base64.b64encode(case.dump()).decode("ascii"),
            "resume_at": case.move,
        },
        "source": "support inbox",
        "group": f"message {case.message}",
    }
    if draft.uncertain:
        said["uncertain"] = True
    customer = case.known.get("customer_id") or order_of(case).get("customer_id")
    if customer:
        said["on_behalf_of"] = {"kind": "customer", "id": str(customer)}
    return said


def _plan(case: Case) -> list[dict[str, str]]:
    """The moves of the case: what is done, what waits and what is still to come."""
    done = [{"step": move, "state": "done"} for move in case.known.get("did", {})]
    ahead = [
        {"step": move, "state": "next" if number else "waiting"}
        for number, move in enumerate(case.agenda)
    ]
    return [*done, *ahead]


def answer(proposal: Proposal, proposed: Mapping[str, Any]) -> Answer:
    """The outcome in the planner's words."""
    decision, execution = proposal.decision, proposal.execution
    return Answer(
        status=proposal.status,
        reason_code=decision.reason_code if decision else "",
        reason=decision.reason if decision else "",
        proposed=proposed,
        final_args=decision.final_args if decision else None,
        result=execution.result if execution else None,
        code=execution.code if execution else "",
        rules=tuple(rule.id for rule in proposal.rules),
    )


def shortened(text: str) -> str:
    """At most what the gate takes, with both ends and a count of what is left out."""
    left_out = len(text) - HEAD - TAIL
    if left_out <= 0:
        return text
    return f"{text[:HEAD]}\n[{left_out} characters left out]\n{text[-TAIL:]}"


def _written(message: Message) -> dict[str, Any]:
    text = f"From: {message.name} <{message.sender}>\nSubject: {message.subject}\n\n"
    return {
        "kind": "message",
        "source": f"inbox {message.id}",
        "at": message.received_at,
        "text": shortened(text + message.text),
    }


def _seen(case: Case) -> list[dict[str, Any]]:
    """What the store itself says, so that a reviewer can hold it against the words."""
    order = order_of(case)
    if not order:
        return []
    text = (
        f"Order {order['order_id']}: {order['status']}, total {order['total']}"
        f" {order['currency']}, refunded {order['refunded']}."
    )
    if order.get("carrier_status"):
        text += f" {order['carrier']} says: {order['carrier_status']}."
    return [{"kind": "order record", "source": "the store", "text": text}]
