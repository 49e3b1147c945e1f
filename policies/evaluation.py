"""Evaluates a proposal: a pure function from policy, tool and facts to the authority
that the effect needs.

It uses no database, network or clock, so that stored facts give the same result later.
Every rule that holds applies and the strictest result wins; no rule lowers the floor.
Whatever cannot be evaluated is blocked (docs/invariants.md I13).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from . import solo
from .choices import Risk, Role, Tier
from .conditions import ConditionError, ConditionFacts
from .documents import (
    DEFAULT_FLOOR,
    Document,
    EffectClass,
    Profile,
    Rule,
    Then,
    ToolDefinition,
)
from .money import MIXED, Money

logger = logging.getLogger(__name__)

_BLOCK = Then(block=True)
_APPROVE = Then(tier=Tier.APPROVE)
_ESCALATE = Then(tier=Tier.ESCALATE)
_FLOORS: Mapping[Tier, Then] = {
    tier: Then(tier=tier) for tier in Tier if tier is not Tier.AUTO
}
_UNCERTAIN = Then(tier=Tier.APPROVE, flag="uncertain")
_FLOOR_TEXTS = {
    Tier.NOTIFY: "always reported to supervisors.",
    Tier.APPROVE: "approval is always required.",
    Tier.ESCALATE: "supervisor approval is always required.",
    Tier.BLOCK: "always blocked.",
}
_BLOCKED_TIMEOUT = (
    3600  # seconds; only a placeholder, because a blocked proposal never waits
)


@dataclass(frozen=True, slots=True)
class RequiredStep:
    """How many different people of a role must approve."""

    role: Role
    required: int


@dataclass(frozen=True, slots=True)
class AppliedRule:
    """A rule that held, its text at that time, and in a few words what it asked for."""

    id: str
    text: str
    effect: str

    @property
    def blocks(self) -> bool:
        """Whether this rule alone would have blocked the proposal."""
        return self.effect.split(",")[0] == Tier.BLOCK

    def as_json(self) -> dict[str, str]:
        """Plain data, as it is stored and sealed."""
        return {"id": self.id, "text": self.text, "effect": self.effect}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the policy demands for one revision, stored as the request's snapshot.

    `timeout`, `timeout_max` and `recall` (the recall window) are in seconds.
    """

    tier: Tier
    risk: Risk
    effect_class: str  # empty where the tool has none
    queue: str  # empty when blocked
    steps: tuple[RequiredStep, ...]
    rules: tuple[AppliedRule, ...]
    timeout: int
    timeout_max: int
    recall: int
    requires_reason: bool  # from every reviewer, approval included
    requires_rationale: bool  # from the agent
    step_up: bool
    flags: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data, as it is stored and sealed."""
        return {
            "tier": str(self.tier),
            "risk": str(self.risk),
            "effect_class": self.effect_class,
            "queue": self.queue,
            "steps": [
                {"role": str(step.role), "required": step.required}
                for step in self.steps
            ],
            "rules": [rule.as_json() for rule in self.rules],
            "timeout": self.timeout,
            "timeout_max": self.timeout_max,
            "recall": self.recall,
            "requires_reason": self.requires_reason,
            "requires_rationale": self.requires_rationale,
            "step_up": self.step_up,
            "flags": list(self.flags),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evaluation:
        """The inverse of `as_json`."""
        steps = (RequiredStep(Role(s["role"]), s["required"]) for s in data["steps"])
        return cls(
            **{
                **data,
                "tier": Tier(data["tier"]),
                "risk": Risk(data["risk"]),
                "steps": tuple(steps),
                "rules": tuple(AppliedRule(**rule) for rule in data["rules"]),
                "flags": tuple(data["flags"]),
            }
        )


class Finding(NamedTuple):
    """A reason to demand more: a rule of the document, or a check of the gate."""

    id: str
    text: str
    then: Then


class BaseAuthority(NamedTuple):
    """What is demanded before any rule: by the effect class that the arguments chose,
    or by the tool if it has no classes."""

    tier: Tier
    risk: Risk
    profile: Profile
    effect_class: EffectClass | None
    requires_reason: bool


def evaluate(
    document: Document, tool: ToolDefinition, facts: Mapping[str, Any]
) -> Evaluation:
    """Evaluate one action on the facts that `policies.facts.collect_facts` built.

    It never raises: any error blocks the proposal with the rule `policy.error`.
    """
    try:
        return _evaluate_rules(document, tool, facts)
    except Exception as error:
        # Fail closed, and visibly. Only the type is logged: messages may quote facts.
        logger.error("policy evaluation failed: %s", type(error).__name__)
        text = "The policy could not be evaluated."
        return build_blocked_evaluation("policy.error", text, risk=tool.risk)


def build_blocked_evaluation(
    rule_id: str, text: str, *, risk: Risk = Risk.CRITICAL
) -> Evaluation:
    """The evaluation of a proposal that is blocked before any rule."""
    return Evaluation(
        tier=Tier.BLOCK,
        risk=risk,
        effect_class="",
        queue="",
        steps=(),
        rules=(AppliedRule(rule_id, text, str(Tier.BLOCK)),),
        timeout=_BLOCKED_TIMEOUT,
        timeout_max=_BLOCKED_TIMEOUT,
        recall=0,
        requires_reason=False,
        requires_rationale=False,
        step_up=False,
        flags=(),
    )


def _evaluate_rules(
    document: Document, tool: ToolDefinition, facts: Mapping[str, Any]
) -> Evaluation:
    base = build_base(tool, facts["args"])
    findings = [
        *_list_gate_findings(document, tool, base, facts),
        *_list_rule_findings(document, tool, base, facts),
    ]
    risk = _compute_risk(document, base, findings, facts["money"])
    findings.extend(_list_unreviewable_findings(document, tool, risk, facts))
    tier = _compute_tier(base, risk, findings)
    if (narrowing := _find_narrowing(facts, tier)) is not None:
        findings.append(narrowing)
        tier = narrowing.then.demands
    if not any(finding.then.demands is tier for finding in findings):
        findings.extend(_list_floor_findings(tool, base, tier))
    return _build_evaluation(document, tool, base, (tier, risk), _order(findings))


def build_base(tool: ToolDefinition, args: dict[str, Any]) -> BaseAuthority:
    """What is demanded of this call before any rule."""
    return build_class_base(tool, tool.class_of(args))


def build_class_base(tool: ToolDefinition, chosen: EffectClass | None) -> BaseAuthority:
    """What is demanded before any rule of calls of one class; None: without classes."""
    source = chosen or tool
    least = source.profile.least
    return BaseAuthority(
        tier=max(source.base, least, key=lambda tier: tier.rank),
        risk=source.risk,
        profile=source.profile,
        effect_class=chosen,
        requires_reason=source.requires_reason or tool.requires_reason,
    )


def evaluate_findings(
    document: Document,
    tool: ToolDefinition,
    base: BaseAuthority,
    findings: Iterable[Finding],
    amount: Money | None,
) -> Evaluation:
    """What is demanded of a call of which only this is known: for people who compare
    policies, never for a call. The call can be shown in full, and nothing of it makes
    the gate demand more."""
    known, money = list(findings), {}
    if amount is not None:
        money = {"amount_minor": amount.minor, "currency": amount.currency}
    risk = _compute_risk(document, base, known, money)
    tier = _compute_tier(base, risk, known)
    return _build_evaluation(document, tool, base, (tier, risk), _order(known))


def _order(findings: Iterable[Finding]) -> list[Finding]:
    """The strictest first."""
    return sorted(findings, key=lambda f: (-f.then.demands.rank, f.id, f.text))


def _list_gate_findings(
    document: Document,
    tool: ToolDefinition,
    base: BaseAuthority,
    facts: Mapping[str, Any],
) -> Iterator[Finding]:
    """The gate's own checks, which apply whatever the document's rules are."""
    for key in tool.keys:
        if not facts["keys"].get(key):
            text = f"The {key} of this action could not be resolved."
            yield Finding("key.unresolved", text, _BLOCK)
    for name in facts.get("unread_amounts", ()):
        text = f"The amount {name} of this action could not be read."
        yield Finding("amount.unresolved", text, _BLOCK)
    if float(facts["uncertain"]) > 0:
        yield Finding(
            "agent.uncertain", "The agent says that it is uncertain.", _UNCERTAIN
        )
    if facts.get("resembles"):
        text = "It names someone whose name resembles that of a Counterseal user."
        yield Finding("agent.resemblance", text, _APPROVE)
    if tool.is_undeclared:
        text = "The policy does not declare this tool."
        then = Then(tier=base.tier, flag="not in the policy")
        yield Finding("tool.undeclared", text, then)
    if base.profile.self_modifying:
        text = "It changes the agent itself or its rules."
        yield Finding("tool.self_modifying", text, _APPROVE)
    yield from _list_currency_findings(document, facts)


def _list_currency_findings(
    document: Document, facts: Mapping[str, Any]
) -> Iterator[Finding]:
    """The figures in rules are in the document's currency, so amounts in any other, in
    the proposal or in a sum it belongs to, cannot be compared with them."""
    money, others = facts["money"], facts.get("other_currencies", {})
    if money and money["currency"] == MIXED:
        text = "Its amounts are in several currencies and cannot be added up."
        yield Finding("money.unknown_currency", text, _ESCALATE)
    elif money and money["currency"] != document.currency:
        text = f"The amount is not in {document.currency}, the currency of the rules."
        yield Finding("money.unknown_currency", text, _ESCALATE)
    elif any(others.values()):
        text = f"Earlier amounts of the same key are not in {document.currency}."
        yield Finding("money.unknown_currency", text, _ESCALATE)


def _list_rule_findings(
    document: Document,
    tool: ToolDefinition,
    base: BaseAuthority,
    facts: Mapping[str, Any],
) -> Iterator[Finding]:
    """The document's rules that hold. A rule that cannot be evaluated blocks.

    An amount that the call leaves out and that counts as everything is among the
    arguments. A rule that holds only without it, because it tests whether the argument
    is there, holds as well.
    """
    wholes = facts.get("absent_amounts")
    filled = {**facts["args"], **(wholes or {})}
    bound = _bind_facts(tool, base, {**facts, "args": filled})
    as_sent = _bind_facts(tool, base, facts) if wholes else None
    for rule in document.rules_for(tool.name):
        try:
            if rule.condition.holds(bound) or (
                as_sent is not None and _holds_as_sent(rule, as_sent)
            ):
                yield Finding(rule.id, rule.text, rule.then)
        except ConditionError as error:
            text = f"The rule {rule.id} could not be evaluated: {error}."
            yield Finding("policy.error", text, _BLOCK)


def _holds_as_sent(rule: Rule, as_sent: ConditionFacts) -> bool:
    """A rule that reads the absent amount has been evaluated with what it counts as."""
    try:
        return rule.condition.holds(as_sent)
    except ConditionError:
        return False


def _bind_facts(
    tool: ToolDefinition, base: BaseAuthority, facts: Mapping[str, Any]
) -> ConditionFacts:
    return ConditionFacts(
        {
            **facts,
            "tool": tool.name,
            "risk": str(base.risk),
            "floor": str(base.tier),
            "class": base.effect_class.name if base.effect_class else "",
            "profile": base.profile.model_dump(),
            "uncertain": float(facts["uncertain"]),
        }
    )


def _compute_risk(
    document: Document,
    base: BaseAuthority,
    findings: Iterable[Finding],
    money: Mapping[str, Any],
) -> Risk:
    raised = [finding.then.risk for finding in findings if finding.then.risk]
    figure = document.critical_above
    # A MIXED amount is the part in the document's currency, so it can be compared.
    codes = {figure.currency} if figure else set()
    if document.currency in codes:
        codes.add(MIXED)
    comparable = figure and money and money["currency"] in codes
    if figure and comparable and money["amount_minor"] > figure.money.minor:
        raised.append(Risk.CRITICAL)
    return max([base.risk, *raised], key=lambda risk: risk.rank)


def _list_unreviewable_findings(
    document: Document, tool: ToolDefinition, risk: Risk, facts: Mapping[str, Any]
) -> Iterator[Finding]:
    """A person must not approve an action that no page can show in full.

    The fact `uninspectable` lists the arguments that the tool's view could not decode.
    """
    undecoded = set(facts.get("uninspectable", ()))
    hidden = sorted((set(facts["args"]) - tool.inspectable) | undecoded)
    if not tool.effect and not tool.is_undeclared:
        text = "The tool declares no effect sentence: a person reads a made one."
        yield Finding("unreviewable", text, _APPROVE)
    if not hidden:
        return
    text = (
        f"The argument {hidden[0][:64]} cannot be shown in full: declare it, or split "
        "the action."
    )
    # A guessed view that cannot decode its own argument asks for more, as free form
    # does; without the guess, the argument would be plain text.
    guessed = tool.is_undeclared and set(hidden) <= set(tool.shown.values())
    if risk.rank < Risk.HIGH.rank:
        then = _APPROVE
    else:
        then = _ESCALATE if guessed or tool.name in document.free_form else _BLOCK
    yield Finding("unreviewable", text, then)


def _compute_tier(base: BaseAuthority, risk: Risk, findings: Iterable[Finding]) -> Tier:
    """The strictest tier demanded; a risk that rules raised demands its own floor."""
    raised = DEFAULT_FLOOR[risk] if risk is not base.risk else base.tier
    demands = (finding.then.demands for finding in findings)
    return max([base.tier, raised, *demands], key=lambda tier: tier.rank)


# A claim that keeps one decider out is usual where people use agents of their own.
MOST_BARRED, FEWEST_LEFT = 1, 2
_NEXT_TIER = {
    Tier.AUTO: Tier.NOTIFY,
    Tier.NOTIFY: Tier.APPROVE,
    Tier.APPROVE: Tier.ESCALATE,
    Tier.ESCALATE: Tier.ESCALATE,
}


def is_narrowing(facts: Mapping[str, Any]) -> bool:
    """Whether what the agent says leaves too little choice of who decides."""
    narrowed = facts.get("narrowed") or {}
    barred, left = narrowed.get("barred", 0), narrowed.get("left", FEWEST_LEFT)
    return bool(barred) and (barred > MOST_BARRED or left < FEWEST_LEFT)


def _find_narrowing(facts: Mapping[str, Any], tier: Tier) -> Finding | None:
    """An agent that says who may not decide chooses who may: it takes one tier more.
    The text has no numbers, because the agent reads it."""
    if tier is Tier.BLOCK or not is_narrowing(facts):
        return None
    text = "The agent's claims keep people of the queue from deciding it."
    then = Then(tier=_NEXT_TIER[tier], flag="names deciders")
    return Finding("agent.narrows", text, then)


def _list_floor_findings(
    tool: ToolDefinition, base: BaseAuthority, tier: Tier
) -> Iterator[Finding]:
    """Explains the tier where it comes from the floor and not from a rule."""
    if tier.rank < Tier.NOTIFY.rank:
        return
    chosen = base.effect_class
    name = f"class.{chosen.name}" if chosen else "tool.floor"
    what = (chosen.title or chosen.name) if chosen else tool.title
    yield Finding(name, f"{what}: {_FLOOR_TEXTS[tier]}", _FLOORS[tier])


def _build_evaluation(
    document: Document,
    tool: ToolDefinition,
    base: BaseAuthority,
    outcome: tuple[Tier, Risk],
    findings: Sequence[Finding],
) -> Evaluation:
    tier, risk = outcome
    thens = [finding.then for finding in findings]
    steps = _build_steps(document, tool, tier, thens)
    wanted = [then.timeout for then in thens if then.timeout]
    chosen = base.effect_class
    return Evaluation(
        tier=tier,
        risk=risk,
        effect_class=chosen.name if chosen else "",
        queue="" if tier is Tier.BLOCK else _choose_queue(tool, thens),
        steps=steps,
        rules=tuple(AppliedRule(f.id, f.text, f.then.describe()) for f in findings),
        timeout=_to_seconds(min([tool.timeout, *wanted])),
        timeout_max=_to_seconds(tool.longest),
        recall=_compute_recall_seconds(document, risk, steps),
        requires_reason=base.requires_reason or any(then.reason for then in thens),
        requires_rationale=base.requires_reason or tool.requires_rationale,
        step_up=tier.rank >= Tier.ESCALATE.rank
        or risk is Risk.CRITICAL
        or any(then.step_up for then in thens),
        flags=tuple(sorted({then.flag for then in thens if then.flag})),
    )


def _choose_queue(tool: ToolDefinition, thens: Iterable[Then]) -> str:
    """The queue of the strictest rule that names one, else the tool's. `thens` are
    sorted, the strictest first."""
    return next((then.queue for then in thens if then.queue), tool.queue)


def _build_steps(
    document: Document, tool: ToolDefinition, tier: Tier, thens: Iterable[Then]
) -> tuple[RequiredStep, ...]:
    """The tier's steps, then for each role the largest step that rules add. In solo
    mode one vote takes their place."""
    usual = [
        RequiredStep(Role(spec.role), spec.required)
        for spec in document.steps_for(tool, tier)
    ]
    added: dict[Role, int] = {}
    for then in thens:
        if usual and then.step:
            role = Role(then.step.role)
            added[role] = max(added.get(role, 0), then.step.required)
    further = (RequiredStep(role, added[role]) for role in sorted(added))
    return tuple(solo.cap_votes([*usual, *further]))


def _compute_recall_seconds(
    document: Document, risk: Risk, steps: Sequence[RequiredStep]
) -> int:
    """In seconds; none for a critical effect that at least two people approved."""
    people = sum(step.required for step in steps)
    if risk is Risk.CRITICAL and people > 1:
        return 0
    return document.recall_for(risk)


def _to_seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
