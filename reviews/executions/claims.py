"""Claim an execution under a lease: one holder at a time, each with a higher fence
(docs/invariants.md I19, I22).

Before a claim, this module checks whether the effect may have happened already: in an
earlier attempt, or in the history that a restore lost. An agent may name its redeem
call with a key, stored as a hash; repeating the call under that key returns the claim
that the first call made.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings

from journal import canonical, failpoints, log, restore_epochs, writes
from journal.operations import operation
from policies.choices import ExecutionClass
from policies.documents import ToolDefinition
from reviews import locks, transitions
from reviews.alarms import late_reports
from reviews.choices import ExecutionStatus, GrantStatus
from reviews.grants import sequence, tokens, uncertain
from reviews.grants.uncertain import UncertainOutcome
from reviews.models import Execution
from reviews.stops.gate_state import GateState
from reviews.tool_services.executors import Call

from . import finish, rechecks


def find_may_have_run_reason(
    execution: Execution, state: GateState
) -> UncertainOutcome | None:
    """Why the effect may have happened already, in cases that neither a look-up by its
    key nor the provider's memory of that key can detect; None otherwise. Caller holds
    the execution's lock."""
    keyed = execution.execution_class is ExecutionClass.KEYED
    unconfirmed = execution.attempts > 0 and not (keyed or execution.has_look_up)
    # guard: late-report
    if unconfirmed and late_reports.has_unanswered_report(execution):
        return uncertain.REPORTED
    return _find_restore_reason(execution, state)


def _find_restore_reason(
    execution: Execution, state: GateState
) -> UncertainOutcome | None:
    opaque = execution.execution_class is ExecutionClass.OPAQUE
    if not opaque and execution.grant.revision.number == 1:
        return None  # the service knows its only key
    outcome = uncertain.find_uncertain_outcome(execution, state.backup)
    return outcome if opaque or outcome is uncertain.OTHER_VERSION else None


def is_untouched(execution: Execution, state: GateState) -> bool:
    """Whether no earlier attempt can have had an effect. An outcome that was once
    unknown, or reported done too late, may have happened whatever was recorded later.
    If its service can be asked, it is asked before the effect is repeated, and so is
    everything that came back with a restore."""
    doubted = execution.unknown_at is not None or (
        execution.attempts > 1 and late_reports.has_done_report(execution)
    )
    can_look = execution.has_look_up
    restored = uncertain.predates_restore(execution, state.backup)
    return not (doubted and can_look) and not restored  # guard: unknown-once


def is_claim_of_key(execution: Execution, key: str, now: datetime) -> bool:
    """Whether a call with this key made the current claim, whose lease has not lapsed.
    False for an empty key."""
    if not key or execution.status != ExecutionStatus.CLAIMED:
        return False
    if execution.lease_until is None or execution.lease_until <= now:
        return False
    # guard: redeem-key
    return hmac.compare_digest(
        execution.redeem_digest, _compute_redeem_digest(execution, key)
    )


def _compute_redeem_digest(execution: Execution, key: str) -> str:
    """Digest of the key for one claim. It covers the fence, because a claim without a
    key leaves this column as it is."""
    agent = execution.grant.proposal.agent
    parts = [agent, execution.pk, execution.fence, key]
    return canonical.digest(canonical.encode(parts))


EXECUTOR_ACTOR = finish.EXECUTOR_ACTOR


@dataclass(frozen=True, slots=True)
class Claim:
    """An execution claimed under a lease. Every later write names its fence."""

    execution: Execution
    definition: ToolDefinition
    fence: int
    # No earlier attempt can have had an effect; False after a lapsed lease.
    untouched: bool
    # Why no time or no try is left, as a code: the claim is only for a look-up.
    over: str = ""
    # An earlier call with the same key made it, and the agent may have the answer.
    replayed: bool = False

    @property
    def call(self) -> Call:
        grant = self.execution.grant
        return replace(
            build_look_up_call(self.execution),
            fence=self.fence,
            preconditions=grant.revision.preconditions,
            grant=tokens.build_token(grant, fence=self.fence),
        )


def build_look_up_call(execution: Execution) -> Call:
    """Build the call for a look-up: our reference, without a grant to act on."""
    revision = execution.grant.revision
    tool = revision.known_tool
    return Call(
        tool=tool.name,
        tool_version=tool.version,
        args=revision.args,
        execution=execution.pk,
        idempotency_key=execution.idempotency_key,
        fence=execution.fence,
        agent=execution.grant.proposal.agent,
        thread=execution.grant.proposal.thread,
        traceparent=execution.grant.proposal.traceparent,
    )


def compute_quiet_time(execution: Execution) -> datetime:
    """When nothing of the last attempt can still be under way: its lease is over."""
    return (execution.claimed_at or execution.queued_at) + _compute_lease_duration()


@operation(
    locks="grant, execution, alarm",
    writes="Grant, Execution, Observation, Batch (halted), Alarm",
    logs="grant.spent and execution.claimed, or execution.reclaimed; grant.expired or "
    "grant.revoked, execution.refused; execution.unknown; alarm.raised",
    after="mail, webhook, wake-up",
)
def claim_execution(
    *, execution_id: str, actor: log.Actor, redeeming: bool = False, key: str = ""
) -> Claim | None:
    """Claim an execution: grant LIVE -> SPENT the first time, fence + 1, a new lease.

    Returns None when there is nothing to claim: another holds it, it is finished,
    paused or not due, or its window is closed (then it becomes REFUSED, or UNKNOWN if
    it may have happened). An execution that its agent performs is claimed only with
    `redeeming`; a repeated call with the same `key` gets the same claim, unchanged.

    Raises NotFound, and DatabaseRestored while a restored database has not been
    checked.
    """
    execution = locks.lock_execution(execution_id)
    state = rechecks.load_state(execution)
    restore_epochs.check_not_restored(state.halted)
    if redeeming and is_claim_of_key(execution, key, state.now):
        definition, fence = execution.tool_definition, execution.fence
        return Claim(execution, definition, fence, untouched=False, replayed=True)
    ours, claim = redeeming == execution.by_agent, None
    with writes.unit_of_work():
        if execution.status == ExecutionStatus.QUEUED:
            claim = _claim_queued(execution, actor, state, ours=ours)
        elif execution.status == ExecutionStatus.CLAIMED:
            claim = _claim_lapsed(execution, actor, state, ours=ours)
    if claim is not None and key:
        claimed = Execution.objects.filter(pk=execution.pk, fence=execution.fence)
        claimed.update(redeem_digest=_compute_redeem_digest(execution, key))
    return claim


def _claim_queued(
    execution: Execution, actor: log.Actor, state: GateState, *, ours: bool
) -> Claim | None:
    now = state.now
    if execution.grant.expires_at <= now:  # guard: claim-window
        finish.refuse_execution(execution, rechecks.AFTER_WINDOW, now)
        return None
    begins = execution.grant.not_before
    if begins is not None and begins > now:  # guard: condition-from
        return None
    # guard: claim-ours
    if execution.due_at > now or not ours or sequence.must_wait(execution):
        return None
    refusal = rechecks.find_stop_refusal(execution, state)
    if refusal is not None:  # guard: claim-switches
        if not refusal.retryable:
            finish.refuse_execution(execution, refusal, now)
        return None
    doubt = find_may_have_run_reason(execution, state)
    if doubt is not None:
        uncertain.mark_unknown(execution, doubt, now)
        return None
    if execution.grant.status == GrantStatus.LIVE:
        transitions.grant.apply(execution.grant, "spend", actor=actor, now=now)
    return _start_lease(execution, "claim", actor, state)


def _claim_lapsed(
    execution: Execution, actor: log.Actor, state: GateState, *, ours: bool
) -> Claim | None:
    now = state.now
    # guard: held-lease
    if execution.lease_until is None or execution.lease_until > now:
        return None
    why = find_end_code(execution, now)
    # guard: opaque-once
    if not why and execution.execution_class is not ExecutionClass.OPAQUE:
        held = not ours or _is_held_back(execution, state)
        return None if held else _start_lease(execution, "reclaim", actor, state)
    if not _may_look_up(execution):
        finish.mark_unknown(
            execution, "lease_lapsed", "Nobody knows whether it ran.", now
        )
    elif not (ours and execution.by_agent):  # a redeeming agent makes no look-up
        return replace(_start_lease(execution, "reclaim", actor, state), over=why)
    return None


def find_end_code(execution: Execution, now: datetime) -> str:
    """Why no new attempt may begin, as a code; "" while one may."""
    if execution.grant.expires_at <= now:
        return "window_closed"
    most = execution.tool_definition.retry.attempts
    return "tried_out" if execution.attempts >= most else ""


def _may_look_up(execution: Execution) -> bool:
    """Whether the service can be asked what became of it. The number of attempts is
    bounded, in case every worker that asks crashes."""
    definition = execution.tool_definition
    most = 2 * definition.retry.attempts
    return definition.look_up is not None and execution.attempts < most


def _is_held_back(execution: Execution, state: GateState) -> bool:
    """Whether a stop or pause keeps a lapsed execution from being claimed again. After
    a stop, or where the service can be asked, a worker may still claim it: the
    re-checks then prevent the effect."""
    refusal = rechecks.find_stop_refusal(execution, state)
    if refusal is None:
        return False
    looked_up = execution.has_look_up
    return execution.by_agent or (refusal.retryable and not looked_up)


def _compute_lease_duration() -> timedelta:
    return timedelta(seconds=settings.COUNTERSEAL.lease_seconds)


def _start_lease(
    execution: Execution, event: str, actor: log.Actor, state: GateState
) -> Claim:
    now = state.now
    until = now + _compute_lease_duration()
    transitions.execution.apply(
        execution,
        event,
        actor=actor,
        now=now,
        changes={
            "fence": execution.fence + 1,
            "attempts": execution.attempts + 1,
            "lease_until": until,
            "claimed_at": now,
            "began_at": None,
            "code": "",
            "detail": "",
        },
        data={
            "execution": execution.pk,
            "fence": execution.fence + 1,
            "lease_until": until.isoformat(),
        },
    )
    failpoints.point("claim_uncommitted", execution.pk)
    return Claim(
        execution,
        execution.tool_definition,
        execution.fence,
        untouched=event == "claim" and is_untouched(execution, state),
    )
