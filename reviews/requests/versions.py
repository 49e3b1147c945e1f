"""Opening an approval request and sealing its versions: steps for operations."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from journal import canonical, log, outbox, writes
from policies import active, solo
from policies.choices import Risk, Role, Tier
from policies.evaluation import Evaluation
from policies.models import Queue
from reviews import quorum, transitions
from reviews.attention_checks import written_questions
from reviews.effects import describe
from reviews.governance.ruling import Ruling
from reviews.models import ApprovalRequest, Proposal, RequestVersion, Revision
from reviews.quorum import StepData

# Causes of a version that asks for an additional supervisor.
ESCALATION_CAUSES = ("escalated", "verifier")
SUPERVISOR_STEP: StepData = {"role": Role.SUPERVISOR.value, "required": 1}
# Lists are ordered by risk band first, then by the agent's priority.
RISK_BANDS = {Risk.CRITICAL: 0, Risk.HIGH: 1, Risk.MEDIUM: 2, Risk.LOW: 2}
PRIORITY_RANKS = {"critical": 0, "normal": 1, "low": 2}


def compute_asked_tier(evaluation: Evaluation) -> Tier:
    """The tier of a request: at least APPROVE, so a person answers it in any case."""
    return max(evaluation.tier, Tier.APPROVE, key=lambda tier: tier.rank)


def open_request(
    proposal: Proposal,
    revision: Revision,
    ruling: Ruling,
    *,
    actor: log.Actor,
    now: datetime,
    expires_in: int | None,
    canary_for: str = "",
    data: Mapping[str, Any] | None = None,
) -> ApprovalRequest:
    """Open a PENDING request with version 1. The caller holds the thread's lock.

    `canary_for` is the public id of the person whom a canary measures. Its key of
    repeats is its own, so that no proposal of an agent is the same. `data` is for the
    log record.
    """
    evaluation = ruling.evaluation
    seconds = compute_seconds_to_answer(evaluation, expires_in)
    request = ApprovalRequest(
        proposal=proposal,
        version=1,
        action_hash=revision.action_hash,
        tier=compute_asked_tier(evaluation),
        risk=evaluation.risk,
        queue=load_queue(ruling),
        opened_at=now,
        expires_at=now + timedelta(seconds=seconds),
        expires_at_most=now + timedelta(seconds=max(evaluation.timeout_max, seconds)),
        canary=proposal.canary,
        canary_for=canary_for,
        **build_list_columns(
            proposal, revision, evaluation.risk, build_steps(evaluation)
        ),
    )
    if proposal.canary:
        request.repeat_key = uuid4()
    transitions.request.create(
        request,
        "plant" if proposal.canary else "open",
        actor=actor,
        now=now,
        policy=revision.policy.number if revision.policy else None,
        steps=build_steps(evaluation),
        data=data,
    )
    seal_version(request, revision, evaluation, cause="opened", now=now)
    batchable = ruling.definition is not None and ruling.definition.batchable
    if batchable and not proposal.canary:
        outbox.publish("request.batchable", subject=request.pk)
    return request


def build_list_columns(
    proposal: Proposal,
    revision: Revision,
    risk: Risk | str,
    steps: Sequence[StepData],
    closed_to: Sequence[str] = (),
) -> dict[str, Any]:
    """The columns of a request that lists filter and sort by."""
    amount = describe.find_listed_amount(revision)
    return {
        "agent": proposal.agent,
        "tool_name": proposal.tool_name,
        "repeat_key": compute_repeat_key(
            proposal.agent, proposal.tool_name, revision.args
        ),
        "rank": RISK_BANDS[Risk(risk)] * 10 + PRIORITY_RANKS.get(proposal.priority, 1),
        "currency": amount.currency if amount else "",
        "amount_minor": amount.minor if amount else None,
        "supervisors_only": not any(
            quorum.can_fill_step(Role.REVIEWER, step["role"]) for step in steps
        ),
        "barred": list(proposal.barred),
        "closed_to": [*proposal.kept_out, *closed_to],
    }


def compute_repeat_key(agent: str, tool: str, args: Mapping[str, Any]) -> UUID:
    """A key that is equal for equal agent, tool and canonical arguments, in any run."""
    content = {"agent": agent, "tool": tool, "args": args}
    return UUID(bytes=hashlib.sha256(canonical.encode(content)).digest()[:16])


def compute_seconds_to_answer(evaluation: Evaluation, expires_in: int | None) -> int:
    """Seconds until a new version expires; the agent can only shorten the time-out."""
    return min(evaluation.timeout, expires_in or evaluation.timeout)


def load_queue(ruling: Ruling) -> Queue:
    """The queue that the ruling names, usually the tool's own. It exists, because
    loading a policy creates its queues."""
    name = ruling.evaluation.queue
    if ruling.tool is not None and ruling.tool.queue.name == name:
        return ruling.tool.queue
    return Queue.objects.get(name=name)


def find_revised_queue(version: RequestVersion, ruling: Ruling) -> Queue:
    """The queue of a new revision in place of this version's. While the policy chooses
    the same queue as before, the request stays where it is, so that a person's move
    holds; else it goes where the policy says. Caller loaded the request with its
    queue."""
    if ruling.evaluation.queue == version.revision.evaluation.get("queue"):
        return version.request.queue
    return load_queue(ruling)


def build_steps(evaluation: Evaluation) -> list[StepData]:
    """The evaluation's steps in stored form; one reviewer when it names none."""
    steps: list[StepData] = [
        {"role": step.role.value, "required": step.required}
        for step in evaluation.steps
    ]
    return steps or [{"role": Role.REVIEWER.value, "required": 1}]


def seal_version(
    request: ApprovalRequest,
    revision: Revision,
    evaluation: Evaluation,
    *,
    cause: str,
    now: datetime,
    steps: Sequence[StepData] | None = None,
    carried: Sequence[str] = (),
    escalated_by: Sequence[str] = (),
    edited_by: Sequence[str] = (),
) -> RequestVersion:
    """Store the immutable version that `request.version` names, with its digest. The
    request already has its tier, queue and deadline. `steps` overrides the
    evaluation's. The caller holds the request's lock."""
    version = RequestVersion(
        request=request,
        number=request.version,
        revision=revision,
        cause=cause,
        tier=request.tier,
        risk=request.risk,
        queue=request.queue,
        steps=list(steps) if steps is not None else build_steps(evaluation),
        carried=list(carried),
        escalated_by=list(escalated_by),
        edited_by=list(edited_by),
        requires_reason=evaluation.requires_reason,
        step_up=evaluation.step_up or request.tier == Tier.ESCALATE,
        recall_seconds=evaluation.recall,
        expires_at=request.expires_at,
        policy_id=_load_policy_id(revision),
        rules=[rule.as_json() for rule in evaluation.rules],
        created_at=now,
    )
    version.seal = canonical.digest(canonical.encode(_build_sealed_content(version)))
    writes.insert_rows([version])
    request.sealed = version
    if version.number > 1:
        _update_list_columns(version)
    return version


def _load_policy_id(revision: Revision) -> int:
    """The id only, because the document is large. Raises LookupError without one."""
    if revision.policy_id is None:
        raise LookupError(f"{revision} was judged by no policy.")
    return revision.policy_id


def _update_list_columns(version: RequestVersion) -> None:
    request = version.request
    now = build_list_columns(
        request.proposal,
        version.revision,
        version.risk,
        version.steps,
        [*version.carried, *version.escalated_by, *version.edited_by],
    )
    changed = {k: v for k, v in now.items() if getattr(request, k) != v}
    if changed:
        ApprovalRequest.objects.filter(pk=request.pk).update(**changed)
    for name, value in changed.items():
        setattr(request, name, value)


def _build_sealed_content(version: RequestVersion) -> dict[str, Any]:
    named = [item["file"] for item in version.revision.evidence if item.get("file")]
    sealed = ("sha256", "media_type", "size", "name", "sensitive")
    files = [{name: file[name] for name in sealed} for file in named]
    return {
        **({"files": files} if files else {}),
        "request": version.request_id,
        "version": version.number,
        "action_hash": version.revision.action_hash,
        "revision": version.revision.number,
        "cause": version.cause,
        "tier": version.tier,
        "risk": version.risk,
        "queue": version.queue.name,
        "steps": version.steps,
        "carried": version.carried,
        "escalated_by": version.escalated_by,
        "requires_reason": version.requires_reason,
        "step_up": version.step_up,
        "recall_seconds": version.recall_seconds,
        "expires_at": version.expires_at.isoformat(),
        "policy": version.revision.policy_number,
        "rules": version.rules,
        "edited_by": version.edited_by,
    }


def needs_written_answer(
    version: RequestVersion, indicators: Collection[str] | None = None
) -> bool:
    """Whether an approval of this version needs a written answer, by the policy that it
    was sealed under. `indicators` are risk indicators, by default the proposal's."""
    if indicators is None:
        indicators = version.revision.facts.get("indicators", [])
    if not indicators:
        return False
    return written_questions.is_answer_needed(
        indicators,
        Risk(version.risk),
        version.steps,
        active.load_stored_policy(version.policy_id).written_answer,
    )


def parse_evaluation(revision: Revision) -> Evaluation:
    return Evaluation.from_json(revision.evaluation)


class RequiredAuthority(NamedTuple):
    tier: Tier
    steps: list[StepData]


def was_escalated(request: ApprovalRequest) -> bool:
    """Whether a person or a verifier escalated this request in any version."""
    return request.versions.filter(cause__in=ESCALATION_CAUSES).exists()


def compute_escalated_deadline(request: ApprovalRequest, seconds: int) -> datetime:
    """The deadline after an escalation. Only the first escalation extends it, by
    `seconds`, up to the request's maximum."""
    if was_escalated(request):
        return request.expires_at
    later = request.expires_at + timedelta(seconds=seconds)
    return min(later, request.expires_at_most)


def is_escalated(request: ApprovalRequest) -> bool:
    """Whether it was escalated and not returned since."""
    causes = request.versions.filter(cause__in=[*ESCALATION_CAUSES, "returned"])
    newest = causes.order_by("-number").values_list("cause", flat=True).first()
    return newest in ESCALATION_CAUSES


def compute_required_authority(
    request: ApprovalRequest,
    evaluation: Evaluation,
    *,
    by_agent: bool,
    least: Tier = Tier.AUTO,
) -> RequiredAuthority:
    """The authority that a new revision requires. That is the policy's answer, plus a
    supervisor when `least` is ESCALATE or when the agent revises an escalated request:
    an agent's data never lowers the tier (docs/invariants.md I15)."""
    asked = RequiredAuthority(compute_asked_tier(evaluation), build_steps(evaluation))
    if asked.tier is Tier.ESCALATE:
        return asked
    keeps = by_agent and is_escalated(request)
    more = keeps or least is Tier.ESCALATE
    return (
        RequiredAuthority(Tier.ESCALATE, add_supervisor(asked.steps)) if more else asked
    )


def build_escalated_steps(
    version: RequestVersion, given: Sequence[int]
) -> list[StepData]:
    """The unfinished steps and an additional supervisor's."""
    return add_supervisor(quorum.list_unfinished_steps(version.steps, given))


def add_supervisor(steps: Sequence[StepData]) -> list[StepData]:
    """The steps and an additional supervisor's; in solo mode only that."""
    return [SUPERVISOR_STEP] if solo.is_solo() else [*steps, SUPERVISOR_STEP]
