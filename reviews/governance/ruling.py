"""What the policy says about one exact action, and the refusal when it forbids it.

Apart from simulation, only this module evaluates a policy: propose, revise, MODIFY,
canaries and the check before execution all call it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

from journal import canonical as journal_canonical
from journal.errors import InvalidArgs, PolicyViolation
from policies import active, conflicts, tools
from policies import evaluation as policies_evaluation
from policies import facts as policies_facts
from policies import locks as policies_locks
from policies.choices import Risk, Tier
from policies.documents import ArgumentPath, Document, ToolDefinition
from policies.evaluation import Evaluation
from policies.facts import RevisionInputs, Windows
from policies.models import PolicyVersion, Tool
from policies.money import InvalidMoney, Money
from policies.tool_descriptions import NOTHING_SAID, ToolDescription
from reviews.models import Revision
from reviews.presenters import Presentation, present_effect
from reviews.presenters.shapes import RiskIndicator
from reviews.tool_services.readers import ToolReading

from . import voters


@dataclass(frozen=True, slots=True)
class ProposedAction:
    """One exact action as proposed, with what the tool's reader said about it."""

    proposal: str
    tool: str
    args: Mapping[str, Any]
    agent: str
    thread: str
    preconditions: Mapping[str, Any]
    reading: ToolReading | None = None
    uncertain: float = 0.0
    unattended: bool = False
    risk_ceiling: Risk = Risk.CRITICAL
    resembles: bool = False  # the agent names someone similar to a person here
    # Public ids of everybody who may not decide it, and of those among them whom the
    # agent chose by what it says.
    barred: Sequence[str] = ()
    claimed: Sequence[str] = ()
    # What the claims did to the people of the queue, where that is known already.
    narrowed: Mapping[str, int] = field(default_factory=dict)
    # What the agent says of a tool that the policy does not declare.
    described: ToolDescription = NOTHING_SAID
    # What an edited action was before the edit: the tool of an earlier revision.
    earlier_tool: Tool | None = None
    agent_version: str = ""  # from the registry; not part of the canonical form
    # The canonical form by the version of the tool, so that it is built once.
    _forms: dict[int, bytes] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def canonical(self, tool_version: int) -> bytes:
        """The bytes that are hashed, approved and executed (RFC 8785)."""
        if tool_version not in self._forms:
            self._forms[tool_version] = journal_canonical.encode(
                {
                    "tool": self.tool,
                    "tool_version": tool_version,
                    "args": self.args,
                    "agent": self.agent,
                    "thread": self.thread,
                    "preconditions": self.preconditions,
                }
            )
        return self._forms[tool_version]


@dataclass(frozen=True, slots=True)
class Ruling:
    """How much authority the policy demands, and everything the answer is based on."""

    evaluation: Evaluation
    tool: Tool | None = None
    definition: ToolDefinition | None = None
    policy: PolicyVersion | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    money: Money | None = None
    inputs: RevisionInputs | None = None

    @property
    def tier(self) -> Tier:
        return self.evaluation.tier

    @property
    def blocked_by(self) -> str:
        """The rule that blocks, or "" when none does."""
        if self.tier is not Tier.BLOCK:
            return ""
        return next((r.id for r in self.evaluation.rules if r.blocks), "policy.block")


def govern(
    action: ProposedAction,
    *,
    now: datetime,
    policy: PolicyVersion | None = None,
    sums: KnownSums | None = None,
    firmly: bool = True,
) -> Ruling:
    """Validate the arguments, gather the facts under their locks, evaluate the policy.
    The caller holds the thread's or the request's lock; this takes the advisory locks
    of the sums it reads. A preview that decides nothing passes `firmly=False` and takes
    no locks. `policy` is the active one, and `sums` its sums, where the caller has just
    read them. Raises InvalidArgs with the paths of the wrong arguments."""
    policy = policy or active.find_active_policy()
    tool = find_tool(action, policy, firmly=firmly) if policy else None
    if policy is None or tool is None:
        return Ruling(_build_no_tool_evaluation(policy, action), policy=policy)
    definition = tools.load_definition(tool)
    if problems := tools.list_argument_errors(tool, action.args):
        raise InvalidArgs(errors=problems)
    document = active.load_document(policy)
    inputs = _action_to_inputs(action, tool)
    if action.claimed and not action.narrowed:
        money = policies_facts.compute_moved_money(document, definition, inputs)
        narrowed = _count_barred_deciders(action, tool, money)
        inputs = replace(inputs, narrowed=narrowed)
    plain = policies_facts.build_plain_facts(document, definition, inputs, now=now)
    # Slow, so before the sums are locked, and without the sums.
    shown = present_effect(
        definition,
        action.args,
        before=action.reading.before if action.reading else None,
        facts=plain,
        domains=document.own_domains,
    )
    windows = sums.windows if sums and sums.policy.pk == policy.pk else None
    if firmly and windows is None:
        policies_locks.lock_measures(policies_facts.list_measures(document, inputs))
    gathered = policies_facts.collect_facts(
        document, inputs, now=now, windows=windows, plain=plain
    )
    gathered["uninspectable"] = sorted({part.argument for part in shown.uninspectable})
    gathered["conflicts"] = conflicts.list_conflicts(definition, gathered)
    if indicators := _list_indicators(shown, gathered["conflicts"]):
        gathered["indicators"] = indicators
    evaluation = policies_evaluation.evaluate(document, definition, gathered)
    return Ruling(
        _apply_risk_ceiling(evaluation, action.risk_ceiling),
        tool=tool,
        definition=definition,
        policy=policy,
        facts=gathered,
        money=policies_facts.compute_moved_money(document, definition, inputs),
        inputs=inputs,
    )


def find_tool(
    action: ProposedAction, policy: PolicyVersion, *, firmly: bool = False
) -> Tool | None:
    """The tool that the policy declares, or the one that stands for an unknown tool
    whose calls it holds. Only `firmly` adds one of a call that nobody made before."""
    if action.earlier_tool is not None:
        return tools.find_successor(action.earlier_tool, policy)
    declared = tools.find_current_tool(action.tool, policy)
    return declared or tools.find_undeclared_tool(
        action.tool, action.args, policy, described=action.described, add=firmly
    )


@dataclass(frozen=True, slots=True)
class KnownSums:
    """The sums of other proposals that count for an action under a policy, read under
    their locks."""

    policy: PolicyVersion
    windows: Windows


def lock_action_sums(
    action: ProposedAction, policy: PolicyVersion | None
) -> Mapping[str, Any]:
    """Lock the sums of an action under a policy, and return the parameters that read
    them as a column of the next statement. The caller is in a transaction."""
    tool = tools.find_current_tool(action.tool, policy) if policy else None
    if policy is None or tool is None:
        return policies_facts.NO_WINDOW_VALUES
    document, inputs = active.load_document(policy), _action_to_inputs(action, tool)
    policies_locks.lock_measures(policies_facts.list_measures(document, inputs))
    return policies_facts.build_window_values(document, inputs)


def sum_moved_money(
    action: ProposedAction, policy: PolicyVersion | None
) -> Mapping[str, int]:
    """The minor units that the action moves of each currency under a policy. Empty for
    arguments that `govern` refuses."""
    tool = tools.find_current_tool(action.tool, policy) if policy else None
    if tool is None:
        return {}
    definition = tools.load_definition(tool)
    try:
        return policies_facts.sum_moved_money(
            definition, _action_to_inputs(action, tool)
        )
    except InvalidMoney:
        return {}


def record_observations(ruling: Ruling, *, now: datetime, asks: bool = True) -> None:
    """Count the action in later sums. `asks` says that people are asked first;
    otherwise the action runs by the end of its execution window, if at all. The caller
    is in the transaction of `govern`."""
    if ruling.policy is None or ruling.inputs is None or ruling.definition is None:
        return
    document = active.load_document(ruling.policy)
    ran_by = None if asks else now + ruling.definition.window
    policies_facts.record_observations(document, ruling.inputs, at=now, ran_by=ran_by)


def reevaluate_revision(
    revision: Revision,
    policy: PolicyVersion | None,
    *,
    now: datetime,
    reading: ToolReading | None = None,
) -> Evaluation:
    """Evaluate `policy` with the facts known at proposal time. When the policy has
    changed since the proposal, the facts are converted to its definitions, so that a
    more permissive policy never refuses because a fact was renamed. `reading` is a new
    answer of the tool's reader, needed when `is_reading_incomplete` says so."""
    current = tools.find_successor(revision.known_tool, policy)
    if policy is None or current is None:
        return _build_no_tool_evaluation(policy)
    document, definition = active.load_document(policy), tools.load_definition(current)
    known: Mapping[str, Any] = revision.facts
    if revision.policy_id not in {None, policy.pk} and known:
        known = _rebase_facts(revision, document, current, reading, now)
    return policies_evaluation.evaluate(document, definition, known)


def reevaluate_under_draft(
    revision: Revision, draft: PolicyVersion, *, now: datetime
) -> Evaluation | None:
    """Evaluate a policy that is not active, whose tools are not stored, with the facts
    known at proposal time. None where it lacks the tool, or the tool takes other
    arguments."""
    document, before = active.load_document(draft), revision.known_tool
    definition = document.tools.get(before.name)
    held = document.held_unknown
    if definition is None and held and held.hold == before.queue.name:
        own = tools.load_definition(before)
        definition = own if own.is_undeclared else None
    if definition is None or not definition.validator.is_valid(revision.args):
        return None
    data = active.to_plain_data(definition)
    row = Tool(name=definition.name, definition=data)
    row.digest = active.compute_digest(data)
    known = revision.facts
    if known:
        known = _rebase_facts(revision, document, row, None, now)
    return policies_evaluation.evaluate(document, definition, known)


def is_reading_incomplete(revision: Revision, policy: PolicyVersion | None) -> bool:
    """Whether `policy` declares keys or facts that were not read at proposal time. Then
    the tool's reader has to be called again before `reevaluate_revision`."""
    current = tools.find_successor(revision.known_tool, policy)
    if current is None or not revision.facts:
        return False
    definition = tools.load_definition(current)
    facts = revision.facts
    return definition.reader is not None and (
        bool(set(definition.keys) - set(facts["keys"]))
        or bool(set(definition.facts) - set(facts["before"]))
    )


def read_claims(revision: Revision) -> dict[str, Any]:
    """What the agent's names of people did to a revision, for another action of the
    same proposal, or a clone of it."""
    facts = revision.facts
    return {
        "resembles": bool(facts.get("resembles")),
        "narrowed": facts.get("narrowed") or {},
    }


def _rebase_facts(
    revision: Revision,
    document: Document,
    current: Tool,
    reading: ToolReading | None,
    now: datetime,
) -> dict[str, Any]:
    stored = revision.facts
    known = dict(revision.reading.get("facts") or {})
    inputs = RevisionInputs(
        tool=current,
        args=revision.args,
        agent=stored["agent"]["name"],
        unattended=stored["agent"]["unattended"],
        thread=stored["thread"],
        uncertain=stored["uncertain"],
        keys={**(reading.keys if reading else {}), **stored["keys"]},
        before={**(reading.facts if reading else {}), **known},
        proposal=revision.proposal_id,
    )
    proposed_under = revision.policy
    return policies_facts.rebase_facts(
        document,
        inputs,
        stored,
        before=active.load_document(proposed_under) if proposed_under else document,
        then=revision.created_at,
        now=now,
    )


def lock_sums(revisions: Iterable[Revision]) -> None:
    """Lock the sums that these revisions count in until the transaction ends. One call
    takes all locks in order, so that two transactions cannot deadlock. The caller is in
    a transaction."""
    policy = active.find_active_policy()
    if policy is not None:
        document = active.load_document(policy)
        known = [_revision_to_inputs(revision, policy) for revision in revisions]
        measures = [
            policies_facts.list_measures(document, inputs) for inputs in known if inputs
        ]
        policies_locks.lock_measures(chain.from_iterable(measures))


def evaluate_with_current_sums(revision: Revision, *, now: datetime) -> Evaluation:
    """Evaluate the active policy with the stored facts and the present sums. The caller
    has called `lock_sums` for this revision."""
    policy = active.find_active_policy()
    inputs = _revision_to_inputs(revision, policy) if policy is not None else None
    if policy is None or inputs is None:
        return _build_no_tool_evaluation(policy)
    document = active.load_document(policy)
    counted = policies_facts.recount_sums(document, inputs, revision.facts, now=now)
    return policies_evaluation.evaluate(
        document, tools.load_definition(inputs.tool), counted
    )


def _revision_to_inputs(
    revision: Revision, policy: PolicyVersion
) -> RevisionInputs | None:
    tool = tools.find_successor(revision.known_tool, policy)
    if tool is None:
        return None
    facts = revision.facts
    return RevisionInputs(
        tool=tool,
        args=revision.args,
        agent=facts["agent"]["name"],
        unattended=facts["agent"]["unattended"],
        thread=facts["thread"],
        uncertain=facts["uncertain"],
        resembles=bool(facts.get("resembles")),
        keys=facts["keys"],
        before=dict(revision.reading.get("facts") or {}),
        proposal=revision.proposal_id,
    )


def _build_no_tool_evaluation(
    policy: PolicyVersion | None, action: ProposedAction | None = None
) -> Evaluation:
    if policy is None:
        return policies_evaluation.build_blocked_evaluation(
            "policy.none", "No policy is active."
        )
    text = "This tool is not registered."
    if action and not action.earlier_tool and active.load_document(policy).held_unknown:
        text += (
            " Its calls have too many different forms to be held: an administrator"
            " must declare it."
        )
    return policies_evaluation.build_blocked_evaluation("tool.unknown", text)


def _apply_risk_ceiling(evaluation: Evaluation, ceiling: Risk) -> Evaluation:
    if evaluation.risk.rank <= ceiling.rank:
        return evaluation
    return policies_evaluation.build_blocked_evaluation(
        "agent.risk_ceiling",
        f"This agent may propose up to {ceiling.value} risk.",
        risk=evaluation.risk,
    )


def _count_barred_deciders(
    action: ProposedAction, tool: Tool, money: Money | None
) -> Mapping[str, int]:
    """How many people of the tool's queue the agent's claims keep from deciding, and
    how many can still decide. Empty where they keep nobody from it."""
    people = voters.list_voters(tool.queue_id)
    amount = (money.minor, money.currency) if money else (None, "")
    others = set(action.barred) - set(action.claimed)
    could = len(voters.list_eligible_voters(people, others, *amount))
    left = len(voters.list_eligible_voters(people, {*others, *action.claimed}, *amount))
    return {"barred": could - left, "left": left} if could > left else {}


def _list_indicators(
    shown: Presentation, listed_conflicts: Iterable[Mapping[str, Any]]
) -> list[str]:
    names = {tag.indicator.value for tag in shown.tags if tag.indicator}
    if any(conflict["checked"] for conflict in listed_conflicts):
        names.add(RiskIndicator.CONTRADICTION.value)
    return sorted(names)


def _action_to_inputs(action: ProposedAction, tool: Tool) -> RevisionInputs:
    reading = action.reading
    return RevisionInputs(
        tool=tool,
        args=action.args,
        agent=action.agent,
        unattended=action.unattended,
        thread=action.thread,
        uncertain=action.uncertain,
        resembles=action.resembles,
        narrowed=action.narrowed,
        keys=reading.keys if reading else {},
        before=reading.facts if reading else {},
        proposal=action.proposal,
    )


_ARGUMENT_PATTERN = re.compile(r"\bargs\.([A-Za-z_]\w*)")


def build_policy_refusal(ruling: Ruling) -> PolicyViolation:
    """The error for an edit that the policy forbids: each blocking rule with a path."""
    return PolicyViolation(
        errors=[
            {"path": _find_rule_path(ruling, rule.id), "message": rule.text}
            for rule in ruling.evaluation.rules
            if rule.blocks
        ]
    )


def _find_amount_path(ruling: Ruling) -> str:
    """The path of the amount; `args` when the tool declares none."""
    definition = ruling.definition
    if definition is None:
        return "args"
    names = [pair.amount for pair in definition.money]
    paths = [amount.path for amount in definition.amounts if amount.path]
    names += [ArgumentPath(path).steps[0].name for path in paths]
    return f"args.{names[0]}" if names else "args"


def _find_rule_path(ruling: Ruling, rule_id: str) -> str:
    """The path a rule is about: the first argument its condition names, else the amount
    when the condition uses a sum."""
    rules = active.load_document(ruling.policy).rules if ruling.policy else []
    condition = next((rule.when for rule in rules if rule.id == rule_id), "")
    named = _ARGUMENT_PATTERN.search(condition)
    if named:
        return f"args.{named[1]}"
    return _find_amount_path(ruling) if "sum." in condition else "args"
