"""A function of Riley's own, which nobody has declared: its call waits in the queue
that the store's policy names for unknown tools.

Two lines make it a tool: the decorator, and the call. An administrator can declare it
from the page of its request.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

from counterseal_client import CountersealError, Gate, ToolError, get_claim

log = logging.getLogger("riley")

THREAD = "goodwill_C-1004"


def offer_credit(gate: Gate, ledger: Path) -> None:
    """Ask for one goodwill credit, and book it in Riley's ledger once a person has
    approved it. Returns when the call has ended, in this process or an earlier one."""

    @gate.tool
    def issue_credit(customer: str, amount: str, currency: str, note: str) -> str:
        """Issue a store credit to a customer as goodwill.

        The amount is in full units of the currency. The credit is booked at once and
        cannot be taken back.
        """
        key = get_claim().idempotency_key
        row = {"customer": customer, "amount": amount, "currency": currency}
        with ledger.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, **row, "note": note}) + "\n")
        return f"{amount} {currency} credited to {customer}"

    rationale = "Two deliveries in a row were late. A small credit keeps the customer."
    try:
        with gate.thread(THREAD, rationale=rationale, source="goodwill"):
            result = issue_credit("C-1004", "15.00", "USD", "Two late deliveries")
    except (ToolError, CountersealError) as error:
        log.info("%s: no credit: %s", THREAD, error)
    else:
        log.info("%s: %s", THREAD, result)
