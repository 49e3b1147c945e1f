"""What Riley can propose: each action of actions.yaml, filled in from the case.

A draft depends on the case alone, so the same case always gives the same bytes under
the same idempotency key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from .cases import SPECS, Case

SIGNATURE = "\n\nRiley\nNorthgate Electronics support"
QUESTION = "what we can do, and for which order"


@dataclass(frozen=True, slots=True)
class Draft:
    """One action as Riley proposes it."""

    tool: str
    args: dict[str, Any]
    rationale: str
    expected_outcome: str
    reversal: str = ""
    alternatives: Sequence[Mapping[str, str]] = ()


def build_draft(case: Case) -> Draft | None:
    """The draft of the case's next action; None where a fact for it is missing, so that
    the action makes no sense any more."""
    try:
        facts = _collect_facts(case)
        draft = Draft(**_fill(SPECS["actions"][_choose_variant(case)], facts))
    except KeyError:
        return None
    if case.action == "refund":
        amount, total = draft.args["amount"], case.order["total"]
        if Decimal(amount) < Decimal(total):
            draft.args["partial"] = True
    return draft


def choose_amount(case: Case) -> str:
    """The amount that the message names, or the order's total."""
    return str(case.known.get("amount") or case.order.get("total", "0"))


def compute_refundable(case: Case) -> Decimal:
    """What the order has left to refund, by the last look-up."""
    total, refunded = (case.order.get(name, "0") for name in ("total", "refunded"))
    return Decimal(total) - Decimal(refunded)


def _choose_variant(case: Case) -> str:
    """The name of the action in actions.yaml: some depend on what was done before."""
    if case.action == "refund" and case.known.get("explain"):
        return "refund_explained"
    if case.action == "mail_listed":
        usual = "order" if case.order else "test"
        return f"mail_listed_{'quoted' if 'quoted' in case.known else usual}"
    if case.action == "reply":
        for action in ("delete", "redirect", "stock"):
            if case.get_result(action):
                return f"reply_{action}"
        if case.intent == "thanks":
            return "reply_thanks"
        return "reply_status" if case.order else "ask"
    return case.action


def _collect_facts(case: Case) -> dict[str, Any]:
    order, known = case.order, case.known
    results = {name: result for name, result in known.get("did", {}).items() if result}
    facts: dict[str, Any] = {
        "signature": SIGNATURE,
        "question": QUESTION,
        "document": "copy",
        # Without an order a draft is kept under the message that it answers.
        "about": known.get("order_id", case.message),
        "mailbox": order.get("customer_email") or known.get("sender"),
        "name": (str(order.get("customer_name") or "").split() or ["there"])[0],
        **results,
        **SPECS["intents"][case.intent],
        **known,
    }
    if order:
        facts |= _describe_order(case, facts)
    return facts


def _describe_order(case: Case, facts: Mapping[str, Any]) -> dict[str, Any]:
    order, left = case.order, compute_refundable(case)
    carrier, report = order["carrier"], order.get("carrier_status")
    described: dict[str, Any] = {
        "return_carrier": case.known.get("carrier") or carrier or "Harrow Parcel",
        "report": f"{carrier} says: {report}." if report else "",
        "refundable": choose_amount(case),
    }
    if "sku" not in facts and order.get("items"):
        described["sku"] = order["items"][0]["sku"]
    if "rationale" in facts:
        described["rationale"] = _fill(facts["rationale"], facts)
    # After a second look-up Riley asks for at most what is left.
    if case.known.get("fresh") and Decimal(described["refundable"]) > left:
        described["refundable"] = str(left)
        if left <= 0:
            del described["refundable"]
    return described


def _fill(template: Any, facts: Mapping[str, Any]) -> Any:
    """The template with its facts; `{name}` alone gives the fact as it is. Raises
    KeyError for a fact that is missing."""
    if isinstance(template, dict):
        return {name: _fill(part, facts) for name, part in template.items()}
    if isinstance(template, list):
        return [_fill(part, facts) for part in template]
    name = template[1:-1]
    whole = template == f"{{{name}}}" and name in facts
    return facts[name] if whole else template.format_map(facts)
