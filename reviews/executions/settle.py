"""What people do with an execution: settle an unknown outcome, or retry a failure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from journal import canonical, clock, failpoints
from journal.errors import Conflict, GrantExpired, TextMissing
from journal.operations import operation
from policies import facts
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions, transitions
from reviews.alarms import late_reports
from reviews.choices import SETTLED_BY_PERSON, ExecutionStatus
from reviews.governance import ruling
from reviews.grants import sequence
from reviews.models import Execution, LateReport
from reviews.roles import Permission

from . import claims, rechecks

BATCH_HALTED = (
    "Its batch stopped after a failure. Nothing was changed. Retry from the batch."
)
REPORTED_AS_DONE = (
    "A late report says that it happened. Nothing was changed. If you know that it did"
    " not, resolve its alarm and retry."
)


@operation(
    locks="grant, execution",
    writes="Execution, Observation",
    logs="execution.settled",
    after="webhook, wake-up",
)
def settle_unknown(
    *, execution_id: str, person: Person, happened: bool, reason: str, shown: str = ""
) -> Execution:
    """Settle an unknown outcome by a person's word, with their reason. `shown` is the
    `canonical.format_shown` of what the person read; empty without a page. Raises
    NotFound, NotPermitted, TextMissing, Conflict."""
    permissions.check_permission(person, Permission.SETTLE_UNKNOWN)
    if not reason.strip():
        raise TextMissing(errors=[{"path": "reason", "message": "say how you know"}])
    execution = locks.lock_execution(execution_id)
    permissions.check_can_settle_unknown(person, execution)
    if execution.status != ExecutionStatus.UNKNOWN:
        raise Conflict("Its result is already known. Nothing was recorded.")
    parts = build_shown_outcome(execution)
    canonical.check_shown(shown, parts, "Nothing was recorded.")  # guard: outcome-shown
    now = clock.now()
    transitions.execution.apply(
        execution,
        "settle_succeeded" if happened else "settle_failed",
        actor=build_actor(person),
        now=now,
        changes={"finished_at": now, "code": SETTLED_BY_PERSON, "ask_at": None},
        data={"execution": execution.pk, "happened": happened},
        private={"reason": reason},
    )
    if happened:
        facts.mark_effect_ran(execution.proposal_id, at=now)
    else:
        facts.mark_effect_denied(execution.proposal_id)
    failpoints.point("settle_uncommitted", execution_id)
    return execution


def build_shown_outcome(execution: Execution) -> dict[str, object]:
    """The parts of what is known of an unknown outcome, which its form is bound to."""
    reports = LateReport.objects.filter(execution=execution)
    return {
        "the number of attempts": execution.fence,
        "the late reports": reports.count(),
    }


@operation(
    locks="grant, execution, sums (advisory)",
    writes="Execution, Observation",
    logs="execution.retried",
    after="nudge, webhook, wake-up",
)
def retry_execution(*, execution_id: str, person: Person) -> Execution:
    """Queue a failed execution again: same grant, bytes and key, inside its window.
    Raises NotFound, NotPermitted, GrantExpired; Conflict when it has not failed, when a
    stop came since the grant, when its sums have grown and the policy now requires more
    authority, or when its batch is halted: then retry the batch as a whole."""
    execution = locks.lock_execution(execution_id)
    if sequence.is_batch_halted(execution):
        raise Conflict(BATCH_HALTED)
    requeue_failed([execution], person, clock.now())
    failpoints.point("retry_uncommitted", execution_id)
    return execution


def requeue_failed(
    executions: Sequence[Execution], person: Person, now: datetime
) -> None:
    """Queue several failed executions again, as a step. Each counts in the sums that
    the next is checked against. Caller holds the executions' locks; this locks their
    sums. Raises NotPermitted, GrantExpired, Conflict."""
    ruling.lock_sums([execution.grant.revision for execution in executions])
    for execution in executions:
        _check_may_retry(execution, person, now)
        _apply_retry(execution, person, now)


def _check_may_retry(execution: Execution, person: Person, now: datetime) -> None:
    revision = execution.grant.revision
    permissions.check_admitted_to_queue(person, revision.known_tool.queue_id)
    begins = compute_retry_time(execution, now)
    if execution.grant.expires_at <= begins:  # guard: retry-window
        raise GrantExpired(
            "The execution window has ended. The agent must propose the action again."
        )
    if late_reports.has_unanswered_report(execution):
        raise Conflict(REPORTED_AS_DONE)
    refusal = (
        rechecks.find_lasting_stop_refusal(execution)
        or rechecks.find_tool_refusal(execution)
        or rechecks.find_authority_refusal(
            execution, ruling.evaluate_with_current_sums(revision, now=now)
        )
    )
    if refusal is not None:
        raise Conflict(
            f"{refusal.detail} Nothing was changed. The agent must propose the action"
            " again."
        )


def compute_retry_time(execution: Execution, now: datetime) -> datetime:
    """When a retry begins: now. If the outcome was ever unknown and the service can be
    asked, not before the last lease is over: a service that is still working would deny
    the effect."""
    if not execution.has_look_up or execution.unknown_at is None:
        return now
    return max(now, claims.compute_quiet_time(execution))


def _apply_retry(execution: Execution, person: Person, now: datetime) -> None:
    transitions.execution.apply(
        execution,
        "retry",
        actor=build_actor(person),
        now=now,
        changes={
            "finished_at": None,
            "due_at": compute_retry_time(execution, now),
            "retried_at": now,
            "code": "",
            "detail": "",
        },
        data={"execution": execution.pk},
    )
    grant = execution.grant
    facts.restore_observations(
        execution.proposal_id, at=grant.revision.created_at, ran_by=grant.expires_at
    )
