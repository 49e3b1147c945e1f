"""Which calls a standing grant covers, and what the policy demands of them then. Pure.

A standing grant stands for the one approval that the policy's own rules ask for. It
never stands for a tool's floor, a check of the gate, an escalation, or a decision that
the policy wants a person to think about: a reason, a step-up, a flag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .choices import Tier
from .documents import Document, Then, ToolDefinition
from .evaluation import AppliedRule, Evaluation, build_base

RULE_ID = "standing.grant"


def find_uncovered_reason(
    document: Document,
    tool: ToolDefinition,
    evaluation: Evaluation,
    args: Mapping[str, Any],
) -> str:
    """Why a standing grant of this tool does not cover this call, as the end of a
    sentence; "" if it does."""
    if tool.standing_grant is None:
        return "the policy allows no standing grant for this tool"
    if evaluation.tier is not Tier.APPROVE:
        return "the policy does not ask one reviewer to approve this call"
    base = build_base(tool, dict(args))
    if base.tier.rank > Tier.NOTIFY.rank or evaluation.risk is not base.risk:
        return "approval is always required for calls of this kind"
    if evaluation.step_up or evaluation.requires_reason or evaluation.flags:
        return "the policy requires a person to look at each of these calls"
    own = {rule.id: rule.then for rule in document.rules_for(tool.name)}
    if not all(_is_plain(rule, own) for rule in evaluation.rules):
        return (
            "a check of Counterseal, or a rule that names who approves, requires this"
            " approval"
        )
    return ""


def _is_plain(rule: AppliedRule, own: Mapping[str, Then]) -> bool:
    """Whether the rule asks no approval, or is the policy's and asks for one."""
    if rule.effect.split(",")[0] != Tier.APPROVE:
        return True
    then = own.get(rule.id)
    return then is not None and then.step is None


def lower_evaluation(evaluation: Evaluation, text: str) -> Evaluation:
    """The evaluation of a call that a standing grant covers: it runs, and people are
    told at once. `text` is the explanation, which its agent reads as well."""
    rule = AppliedRule(RULE_ID, text, str(Tier.NOTIFY))
    return replace(
        evaluation,
        tier=Tier.NOTIFY,
        steps=(),
        recall=0,
        rules=(rule, *evaluation.rules),
    )
