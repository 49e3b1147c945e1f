"""Decide one request: approve, reject, modify or escalate, as one guarded write under
the request's lock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from journal import clock, failpoints, log, restore_epochs, writes
from journal.clock import ClockTimestamp
from journal.errors import (
    AlreadyDecided,
    AttentionCheckFailed,
    Conflict,
    DomainError,
    NotPermitted,
    StaleVersion,
)
from journal.operations import operation
from journal.prepared_queries import Parameter, PreparedQuery
from reviews import locks, transitions
from reviews.choices import OPEN, Verdict
from reviews.holds import rows as hold_rows
from reviews.models import ApprovalRequest, Decision
from reviews.stops import incidents

from .. import canary_verdicts
from . import checks, modify, preflight, verdicts
from .case import DecisionContext, load_decision_facts
from .preflight import Preflight
from .submission import VerdictSubmission
from .votes import StepVote


def decide_request(submission: VerdictSubmission) -> ApprovalRequest:
    """Record one verdict and apply its consequences.

    Raises NotPermitted, StaleVersion, AlreadyDecided, RequestExpired, RequestWithdrawn,
    AlreadyEscalated, HeldByAnother, HoldLapsed, PreconditionFailed, ReasonMissing,
    ReauthenticationRequired, PolicyViolation, InvalidArgs, VerifierRefused, Conflict;
    and last of all the refusal that the page deferred (`too_fast`, `check`, `stale`,
    `throttle`). A refusal rolls the decision back and is logged in a separate
    transaction.
    """
    try:
        return _decide_or_explain(submission)
    except DomainError as error:
        _log_refusal(submission, error)
        raise


def decide_repeatably(submission: VerdictSubmission) -> ApprovalRequest:
    """Record one verdict for a caller who sends it again when no answer came: what is
    recorded of the same person in the same words on the same bytes, and is the newest
    that happened to the request, is answered and not refused.

    An edit is refused, because what it was is not compared. Raises what
    `decide_request` raises.
    """
    try:
        return decide_request(submission)
    except (AlreadyDecided, NotPermitted, StaleVersion):
        repeated = _find_repeated(submission)
        if repeated is None:
            raise
        return repeated


def _find_repeated(submission: VerdictSubmission) -> ApprovalRequest | None:
    if submission.verdict is Verdict.MODIFY:
        return None
    recorded = (
        Decision.objects.filter(
            request=submission.request_id,
            version=submission.version,
            reviewer=submission.person,
            verdict=submission.verdict,
            reason_code=submission.reason_code,
            reason=submission.reason,
            action_hash=submission.action_hash,
        )
        .select_related("request")
        .first()
    )
    if recorded is None or recorded.conditions != submission.conditions.as_json():
        return None
    made = submission.version + (submission.verdict is Verdict.ESCALATE)
    return recorded.request if recorded.request.version == made else None


def _decide_or_explain(submission: VerdictSubmission) -> ApprovalRequest:
    try:
        return _record_verdict(submission, preflight.run_preflight(submission))
    except _AlreadySettled as settled:
        checks.check_still_open(settled.request, submission, clock.now())
        raise


class _AlreadySettled(Conflict):
    """The request can no longer be decided, whatever the other facts are. Others wait
    for its lock, so the refusal is worded once the lock is free."""

    def __init__(self, request: ApprovalRequest) -> None:
        super().__init__()
        self.request = request


@operation(
    entry="decide_request",
    locks="request, Hold, sums (MODIFY only)",
    writes="Decision, Snapshot, Hold, ApprovalRequest, RequestVersion, Proposal, "
    "Revision, Observation, Grant, Execution; Canary; Stop for a rejection that pauses "
    "the run",
    logs="decision.recorded, decision.second_person, decision.tier_lowered; "
    "request.rejected, request.escalated, request.modified, request.recallable or "
    "request.authorized; grant.issued, execution.queued; canary.revealed; stop.raised",
    after="mail, nudge, webhook, wake-up",
)
def _record_verdict(
    submission: VerdictSubmission, preflight: Preflight
) -> ApprovalRequest:
    request = locks.lock_request_or_canary(submission.request_id)
    if request.status not in OPEN:
        raise _AlreadySettled(request)
    preflight.reuse_version(request)
    facts = load_decision_facts([submission], {request.pk: request})
    restore_epochs.check_not_restored(facts.state.halted)
    # Their role may have been revoked during the wait for the lock.
    submission, now = replace(submission, person=facts.person), facts.state.now
    incidents.catch_up_deadline(request, now)
    case = checks.build_decision_context(submission, request, preflight, facts, now=now)
    with writes.unit_of_work():
        if request.canary:  # guard: canary-verdict
            _end_canary(case)
        elif preflight.raised and submission.verdict is Verdict.APPROVE:
            verdicts.escalate_requests([StepVote(case)], cause="verifier")
        else:
            verdicts.VERDICTS[submission.verdict]([checks.build_vote(case)])
    checks.check_deferred_refusal(case.submission.page)
    failpoints.point("decided_uncommitted", request.pk)
    return request


def _end_canary(case: DecisionContext) -> None:
    """Record the verdict on a canary, which lets nothing happen, and free the hold. An
    edit is checked like that of a request."""
    if case.submission.verdict is Verdict.MODIFY:
        modify.check_edit(case)
    submission = case.submission
    canary_verdicts.record_verdict(
        case.request,
        submission.verdict,
        actor=submission.actor,
        now=case.now,
        edited=submission.args,
        took_ms=submission.page.took_ms if submission.page else None,
    )
    hold_rows.clear_decided_holds([(case.hold, case.request)])


_REFUSED = PreparedQuery(
    lambda: (
        ApprovalRequest.with_canaries.select_related("proposal")
        .filter(pk=Parameter("pk"))
        .annotate(now=ClockTimestamp())
    )
)


@operation(entry="decide_request", logs="decision.refused")
def _log_refusal(submission: VerdictSubmission, error: DomainError) -> None:
    """Log a refused verdict in a transaction of its own, because the decision's rolls
    back (docs/invariants.md I8, I30)."""
    request = _REFUSED.fetch_first(pk=submission.request_id)
    if request is None:
        return
    log.append(
        "decision.refused",
        actor=submission.actor,
        at=request.now,
        verdict=submission.verdict,
        data={
            "code": error.code,
            "seen": submission.action_hash[:80],
            **_collect_missed_check(submission, error),
        },
        **transitions.request.context(request),
    )


def _collect_missed_check(
    submission: VerdictSubmission, error: DomainError
) -> dict[str, Any]:
    """Which attention check was answered wrong, with the chosen answers as indexes."""
    if error.code != AttentionCheckFailed.code or submission.page is None:
        return {}
    check = submission.page.answered
    if not check:
        return {}
    return {"check": check["question"], "answers": check.get("answers", [])}
