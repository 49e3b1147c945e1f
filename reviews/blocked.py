"""What is said of an action that the policy forbids: the rule, and the argument that
it speaks of."""

from __future__ import annotations

import re

from journal.errors import Policy
from policies import active
from policies.documents import Path

from .governance.ruling import Ruling

_ARGUMENT = re.compile(r"\bargs\.([A-Za-z_]\w*)")


def blocked_edit(ruling: Ruling) -> Policy:
    """The refusal of an edit that the policy forbids, with the rules that say so."""
    return Policy(
        errors=[
            {"path": _place_of(ruling, rule.id), "message": rule.text}
            for rule in ruling.evaluation.rules
            if rule.blocks
        ]
    )


def _amount_place(ruling: Ruling) -> str:
    """The argument that says how much, else all of them."""
    if ruling.definition is None:
        return "args"
    found = [pair.amount for pair in ruling.definition.money]
    found += [
        Path(one.path).steps[0].name for one in ruling.definition.amounts if one.path
    ]
    return f"args.{found[0]}" if found else "args"


def _place_of(ruling: Ruling, rule_id: str) -> str:
    """The argument that a rule speaks of: the first it names, else the amount that it
    sums up."""
    rules = active.compiled(ruling.policy).rules if ruling.policy else []
    condition = next((rule.when for rule in rules if rule.id == rule_id), "")
    named = _ARGUMENT.search(condition)
    if named:
        return f"args.{named[1]}"
    return _amount_place(ruling) if "sum." in condition else "args"
