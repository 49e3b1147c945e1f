"""The demo's store inside the tests' process: its policy with callables in the place
of webhooks, what its readers say, and effects that succeed, fail or get lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from demo.store import database, readers
from reviews.tool_services.executors import Call, KnownFailure
from tests.policies import store
from tests.reviews.presenters import kinds

HERE = "tests.gallery.shop"
RECALL_S = 600
CASEY = "C-1017"  # bought 78291, the laptop of 899.00
FORGOTTEN = "C-1040"  # no law keeps their invoices any more
PAYMENT: dict[str, Any] = {"refund": "RF-20418", "status": "submitted"}
# The file of the store, and what becomes of effects until a test says otherwise.
NOW: dict[str, Any] = {}


def opened(folder: Path) -> None:
    """A fresh store, as on its first day."""
    NOW.clear()
    NOW["file"] = folder / "store.sqlite3"
    database.prepare(NOW["file"])
    with database.writing(NOW["file"]) as db:
        forget = "UPDATE customer SET retention_until = placed WHERE id = ?"
        db.execute(forget.replace("placed", "'2020-01-01T00:00:00Z'"), [FORGOTTEN])


def changed(order: str, status: str) -> None:
    """Something happens to an order that nobody proposed."""
    with database.writing(NOW["file"]) as db:
        db.execute(
            "UPDATE purchase SET carrier_status = ?, version = version + 1"
            " WHERE id = ?",
            [status, order],
        )


def orders() -> list[str]:
    """One order a customer: the policy sums over customers."""
    with database.reading(NOW["file"]) as db:
        rows = db.execute(
            "SELECT min(id) FROM purchase WHERE total_minor > 6000 AND customer != ?"
            " GROUP BY customer ORDER BY 1",
            [CASEY],
        )
        return [row[0] for row in rows]


def policy(**changes: Any) -> dict[str, Any]:
    """The store's policy, and beside it a tool of every other kind."""
    made = store.data()
    other: dict[str, Any] = yaml.safe_load(kinds.POLICY.read_text())
    made["tools"] = _inside(other["tools"]) | _inside(made["tools"])
    made["queues"] |= other["queues"]
    made["measures"] |= other["measures"]
    made["free_form"] = other["free_form"]
    made["recall"] = {"low": RECALL_S, "medium": RECALL_S, "high": RECALL_S}
    made["desk"] = {
        "time_floor": dict.fromkeys(("low", "medium", "high", "critical"), 0),
        "micro_check": {"low": 0, "medium": 0, "high": 1, "critical": 1},
    }
    return {**made, **changes}


def _inside(tools: dict[str, Any]) -> dict[str, Any]:
    """Nothing leaves the process; what the agent performs itself it still does."""
    for name, tool in tools.items():
        tool.setdefault("execution_class", "keyed")
        if tool["executor"]["kind"] == "webhook":
            tool["executor"] = {"kind": "callable", "path": f"{HERE}.perform"}
        if "reader" in tool or name in kinds.EXAMPLES:
            tool["reader"] = {"kind": "callable", "path": f"{HERE}.read_{name}"}
    return tools


def perform(call: Call) -> dict[str, Any]:
    """What happens is said by `NOW["effects"]`: done, declined, busy or lost."""
    effects = NOW.get("effects", "done")
    if effects == "declined" or call.args.get("order_id") in NOW.get("declined", ()):
        raise KnownFailure("declined", "The payment provider declined the refund.")
    if effects == "busy":
        said = "The payment provider asks for another try."
        raise KnownFailure("busy", said, again=True)
    if effects == "lost":
        raise TimeoutError
    return PAYMENT


def find(call: Call) -> dict[str, Any]:
    """Asked what became of it, the store's site cannot say yet."""
    return {"status": "pending"}


def __getattr__(name: str) -> Callable[..., dict[str, Any]]:
    """`read_<tool>`: the tool's reader, by the name that the policy gives it."""
    verb, _, tool = name.partition("_")
    if verb != "read":
        raise AttributeError(name)
    return partial(_read, tool)


def _read(tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
    if tool in readers.READERS:
        return readers.read(NOW["file"], tool, args)
    return {"before": kinds.EXAMPLES[tool][1], "source": "shop", "keys": {}}
