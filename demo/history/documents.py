"""The policies that were in force before the one that ships with the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
IN_PROCESS = {
    "executor": {"kind": "callable", "path": "demo.history.tools.perform"},
    "reader": {"kind": "callable", "path": "demo.history.tools.read"},
}
# Two refunds that are small alone were paid before this rule was added.
ADDED_RULE = "refund.rolling_sum"


def build_former_policies(shipped: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first policy and the second one, made from the text of the shipped one: an
    agent enters store credit by itself, and the store's effects run in the gate's
    process. The first one lacks a rule."""
    second: dict[str, Any] = yaml.safe_load(shipped)
    for tool in second["tools"].values():
        tool |= {part: how for part, how in IN_PROCESS.items() if part in tool}
    credit = yaml.safe_load((FOLDER / "credit.yaml").read_text("utf-8"))
    second["tools"] |= credit["tools"]
    first = {
        **second,
        "rules": [rule for rule in second["rules"] if rule["id"] != ADDED_RULE],
    }
    return first, second
