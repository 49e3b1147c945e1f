"""Reversals: undo an effect by a proposal of its own. A person asks for it, the whole
policy rules on it, and somebody else must approve it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from journal import log
from journal.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    TextMissing,
    build_field_error,
)
from policies import tools
from policies.documents import ToolDefinition
from policies.models import Person, Tool
from policies.people import build_actor
from reviews import permissions
from reviews.alarms import late_reports
from reviews.choices import (
    REVERSAL_SOURCE,
    UNGRANTED,
    WITHOUT_EFFECT,
    ExecutionStatus,
    StopMode,
)
from reviews.governance.ruling import ProposedAction
from reviews.models import Execution, Proposal, Reversal
from reviews.requests.proposals import ProposalOrigin, submit_proposal
from reviews.requests.revisions import Narrative
from reviews.stops import stops
from reviews.stops.gate_state import GateState

from . import record

STOPPED = (
    "Its run, its agent or the tool that undoes it is stopped. Nothing was proposed."
    " Propose the reversal again after that is resumed."
)


@dataclass(frozen=True, slots=True)
class ReversalPlan:
    """The call that would be proposed to undo one effect."""

    execution: Execution
    tool: Tool
    args: dict[str, Any]

    @property
    def definition(self) -> ToolDefinition:
        return tools.load_definition(self.tool)


def plan_reversal(execution_id: str, person: Person, now: datetime) -> ReversalPlan:
    """Plan the reversal of an effect, for a person who may propose it. Raises NotFound,
    NotPermitted; Conflict when the effect did not succeed, is itself a reversal, is
    already being undone or is stopped, or its tool declares no reversal; InvalidInput
    when the result lacks a value that the declaration names."""
    rows = Execution.objects.select_related("proposal", "grant__revision__tool")
    execution = rows.filter(pk=execution_id).first()
    if execution is None:
        raise NotFound
    permissions.check_admitted_to_queue(
        person, execution.grant.revision.known_tool.queue_id
    )
    if execution.status != ExecutionStatus.SUCCEEDED:
        raise Conflict("Only an executed effect can be undone. Nothing was proposed.")
    if execution.proposal.source == REVERSAL_SOURCE:
        raise Conflict("This is a reversal. Propose the original action again instead.")
    if find_standing_reversal(execution, now) is not None:
        raise Conflict("This effect is already being undone. Nothing was proposed.")
    plan, original = _build_plan(execution), execution.proposal
    mode = stops.find_stop_mode(original.agent, original.thread, plan.tool.name)
    if mode is StopMode.STOPPED:
        raise Conflict(STOPPED)
    return plan


def _build_plan(execution: Execution) -> ReversalPlan:
    revision = execution.grant.revision
    declared = tools.load_definition(revision.known_tool).compensation
    tool = tools.find_current_tool(declared.tool) if declared else None
    if declared is None or tool is None:
        raise Conflict("Its tool declares no reversal.")
    sources: Mapping[str, Mapping[str, Any]] = {
        "args": revision.args,
        "result": record.decrypt_result(execution) or {},
    }
    args = dict(declared.args)
    for name, (kind, path) in declared.sources.items():
        args[name] = _resolve_source(sources[kind], path, f"args.{name}", kind)
    return ReversalPlan(execution, tool, args)


def _resolve_source(source: Any, path: str, where: str, kind: str) -> Any:
    for step in path.split("."):
        if not isinstance(source, Mapping) or step not in source:
            problem = f"the effect's {kind} has no {path}"
            raise InvalidInput(
                f"This cannot be proposed: {problem}. Nothing was proposed.",
                errors=[build_field_error(where, problem)],
            )
        source = source[step]
    return source


def find_standing_reversal(execution: Execution, now: datetime) -> Reversal | None:
    """The reversal that undoes this effect or has undone it; None when there is none or
    it came to nothing."""
    rows = execution.reversals.filter(over_at__isnull=True)
    reversal = rows.select_related("proposal__request").first()
    if reversal is None or is_reversal_over(reversal.proposal, now):
        return None
    return reversal


def is_reversal_over(proposal: Proposal, now: datetime) -> bool:
    """Whether the reversal had no effect and cannot have one any more. An unknown
    outcome may have happened, a failed execution may be retried within its window, and
    a late report that it happened must be cleared up first."""
    if proposal.blocked_by:
        return True
    request = getattr(proposal, "request", None)
    if request is not None and request.status in UNGRANTED:
        return True
    execution = find_newest_execution(proposal)
    if execution is None:
        return False
    if execution.status == ExecutionStatus.FAILED and execution.grant.expires_at > now:
        return False
    if execution.status not in WITHOUT_EFFECT:
        return False
    return not late_reports.has_unanswered_report(execution)


def find_newest_execution(proposal: Proposal) -> Execution | None:
    """The newest execution of a proposal; runs no query where `executions` is
    prefetched."""
    executions = proposal.executions.all()
    return max(executions, key=lambda execution: execution.queued_at, default=None)


def propose_reversal(
    undoing: ReversalPlan,
    action: ProposedAction,
    *,
    person: Person,
    reason: str,
    has_listener: bool,
    state: GateState,
) -> Proposal:
    """Submit the reversal as a proposal that the person who asks for it may not decide
    (docs/invariants.md I9). With `has_listener`, its agent is told what becomes of it.
    A step of the agents' operation. Raises TextMissing and what `submit_proposal`
    raises. Caller holds the thread's lock, and checked under it that no other reversal
    is open."""
    if not reason.strip():
        raise TextMissing(
            errors=[build_field_error("reason", "say why this should be undone")]
        )
    original, actor = undoing.execution.proposal, build_actor(person)
    proposal = submit_proposal(
        action,
        Narrative(rationale=reason),
        ProposalOrigin(
            barred=sorted({*original.barred, person.public_id}),
            kept_out=original.kept_out,
            on_behalf_of=original.on_behalf_of,
            parent=original.pk,
            source=REVERSAL_SOURCE,
            has_listener=has_listener,
        ),
        state=state,
        by=actor,
        asks=True,
    )
    now = state.now
    earlier = Reversal.objects.filter(execution=undoing.execution, over_at__isnull=True)
    earlier.update(over_at=now)
    Reversal.objects.create(
        execution=undoing.execution,
        proposal=proposal,
        by=person.public_id,
        at=now,
        over_at=now if proposal.blocked_by else None,
    )
    # On the original proposal; the new one has records of its own.
    log.append(
        "reversal.proposed",
        actor=actor,
        at=now,
        proposal=original.pk,
        agent=original.agent,
        thread=original.thread,
        data={"execution": undoing.execution.pk, "by": proposal.pk},
    )
    return proposal
