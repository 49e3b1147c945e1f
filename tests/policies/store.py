"""The shipped store policy, and the facts of a proposal to the store."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from policies import active, amounts, calendars, money
from policies.documents import Document, ToolDefinition, parse_document
from policies.evaluation import Evaluation, evaluate
from policies.models import PolicyVersion
from policies.undeclared_tools import build_definition

POLICY = Path(__file__).resolve().parents[2] / "demo" / "policy.yaml"
VARIABLES = {"STORE_URL": "http://127.0.0.1:8010"}

# In New York: a Wednesday at noon, its evening, and a Saturday night.
NOON = datetime(2026, 11, 18, 17, 0, tzinfo=UTC)
EVENING = datetime(2026, 11, 18, 23, 0, tzinfo=UTC)
SATURDAY_NIGHT = datetime(2026, 11, 22, 4, 0, tzinfo=UTC)

EVERY_DAY = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
STORE_HOURS = [{"days": EVERY_DAY, "from": "08:00", "to": "18:00"}]
WAREHOUSE_HOURS = [
    {"days": EVERY_DAY[:5], "from": "06:00", "to": "22:00"},
    {"days": ["sat"], "from": "06:00", "to": "18:00"},
]

ADDRESS = {
    "line1": "12 Alder Row",
    "city": "Harwick",
    "region": "NY",
    "postcode": "10001",
    "country": "US",
}
ARGS: dict[str, dict[str, Any]] = {
    "look_up_order": {"order_id": "78291"},
    "check_inventory": {"sku": "NG-1004"},
    "draft_reply": {"order_id": "78291", "body": "We are looking into it."},
    "add_label": {"order_id": "78291", "label": "carrier claim"},
    "send_email": {
        "to": ["casey@mail.example"],
        "subject": "Your order",
        "body": "We are looking into it.",
    },
    "create_return_label": {"order_id": "78291", "carrier": "Harrow Parcel"},
    "process_refund": {
        "order_id": "78291",
        "amount": "40.00",
        "currency": "USD",
        "reason": "not_received",
    },
    "change_shipped_address": {"order_id": "78291", "address": ADDRESS},
    "delete_customer": {"customer_id": "C-1001"},
}
ORDER = {
    "order_total": 89900,
    "order_total_currency": "USD",
    "order_refunded": 0,
    "order_refunded_currency": "USD",
    "delivered": True,
    "shipped": True,
    "carrier_status": "Delivered",
}
BEFORE: dict[str, dict[str, Any]] = {
    "process_refund": ORDER,
    "create_return_label": ORDER,
    "change_shipped_address": ORDER,
    "delete_customer": {"under_retention": False, "orders": 2, "deleted": False},
}
KEYS = {
    "process_refund": {"customer": "C-1001", "order": "78291"},
    "create_return_label": {"customer": "C-1001", "order": "78291"},
    "change_shipped_address": {"customer": "C-1001", "order": "78291"},
    "delete_customer": {"customer": "C-1001"},
}


def text() -> str:
    return POLICY.read_text()


def data() -> dict[str, Any]:
    """The shipped policy as plain data, to change before parsing."""
    return load_yaml(POLICY)


def load_yaml(path: Path) -> dict[str, Any]:
    """A copy of a policy's data. A file is read once a process: reading one takes as
    long as a test."""
    return copy.deepcopy(_load_once(path))


@cache
def _load_once(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(path.read_text())
    return data


@cache
def shipped() -> Document:
    """As the demo runs it: always open."""
    return parse_document(text(), variables=VARIABLES)


@cache
def with_hours() -> Document:
    """The same rules in a store that closes: 08:00-18:00, and no warehouse on
    Saturday night and on Sunday."""
    changed = data()
    changed["calendars"]["store"]["open"] = STORE_HOURS
    changed["calendars"]["warehouse"]["open"] = WAREHOUSE_HOURS
    return parse_document(changed, variables=VARIABLES)


def facts(
    document: Document,
    tool: str,
    args: Mapping[str, Any] | None = None,
    *,
    now: datetime = NOON,
    unattended: bool = False,
    uncertain: float = 0.0,
    earlier: Iterable[int] = (),
    counts: Mapping[str, int] | None = None,
    before: Mapping[str, Any] | None = None,
    keys: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What `policies.facts.collect_facts` would say.

    `earlier` are refunds in minor units, of the same customer and order, that were not
    refused; `counts` overrides counts, for example of failures.
    """
    given = {**ARGS.get(tool, {}), **(args or {})}
    definition = _define(document, tool, given)
    moved = amounts.list_amounts(definition, given)
    amount = money.combine_amounts([part.money for part in moved], document.currency)
    refunded = [*earlier, amount.minor] if amount else []
    refunds = ("refunds_by_customer", "refunds_by_order")
    open_now = {f"{n}_open": c.is_open(now) for n, c in document.calendars.items()}
    return {
        "tool": tool,
        "args": amounts.to_minor_units(definition, given),
        "money": {"amount_minor": amount.minor, "currency": amount.currency}
        if amount
        else {},
        "agent": {"name": "riley", "unattended": unattended},
        "thread": "order_78291",
        "uncertain": uncertain,
        "clock": {**calendars.build_clock_facts(now, document.zone), **open_now},
        "before": BEFORE.get(tool, {}) if before is None else dict(before),
        "keys": KEYS.get(tool, {}) if keys is None else dict(keys),
        "sum": dict.fromkeys(refunds, sum(refunded)) if amount else {},
        "count": {
            **(dict.fromkeys(refunds, len(refunded)) if amount else {}),
            **({"mails_10m": 1, "mails_1h": 1} if tool == "send_email" else {}),
            "failures": 0,
            **(counts or {}),
        },
        "other_currencies": {},
    }


def judge(
    tool: str,
    args: Mapping[str, Any] | None = None,
    *,
    document: Document | None = None,
    **changes: Any,
) -> Evaluation:
    """Evaluate one proposal; of a tool that nobody declared too, as in
    `reviews.governance.ruling`."""
    document = document or shipped()
    found = facts(document, tool, args, **changes)
    return evaluate(document, _define(document, tool, found["args"]), found)


def _define(document: Document, tool: str, args: Mapping[str, Any]) -> ToolDefinition:
    declared, held = document.tools.get(tool), document.held_unknown
    if declared or held is None:
        return document.tools[tool]
    return build_definition(tool, args, held)


def ids(evaluation: Evaluation) -> set[str]:
    return {rule.id for rule in evaluation.rules}


def load_active_policy() -> PolicyVersion:
    """The active policy version, which there must be."""
    version = active.find_active_policy()
    assert version is not None
    return version
