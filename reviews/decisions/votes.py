"""The rows that every verdict leaves: the decision, its page evidence and its log
record. Recording them also ends the hold on the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from journal import log, writes
from reviews import transitions
from reviews.grants import approvers
from reviews.holds import rows as hold_rows
from reviews.models import Decision

from .case import DecisionContext
from .submission import PageEvidence, build_snapshot

BATCH, HOLD_BROKEN = "batch", "hold_broken"


class StepVote(NamedTuple):
    """A decision context, and the index of the step that the verdict fills, or None."""

    case: DecisionContext
    place: int | None = None


def record_votes(votes: Sequence[StepVote]) -> None:
    """Record the decisions with their page evidence and log records, and end the holds,
    in a few statements for all. The log holds a person's words only as an HMAC."""
    rows = [_build_decision(*vote) for vote in votes]
    pages = [(vote.case.submission.page or PageEvidence()).rendered for vote in votes]
    if any(pages):  # a snapshot refers to the key of its decision
        for row, key in zip(rows, writes.draw_keys(Decision, len(rows)), strict=True):
            row.pk = key
    writes.insert_rows(rows)
    writes.insert_rows(
        [
            build_snapshot(row, rendered)
            for row, rendered in zip(rows, pages, strict=True)
            if rendered is not None
        ]
    )
    log.append_many(_build_log_entry(*vote) for vote in votes)
    hold_rows.clear_decided_holds((case.hold, case.request) for case, _ in votes)


def _build_hold_field(case: DecisionContext) -> dict[str, str]:
    """The token of the hold under which it was decided, for the message to a person
    whose own hold had lapsed."""
    own = case.hold is not None and case.hold.holder_id == case.submission.person.pk
    return {"hold": case.hold.token} if case.hold is not None and own else {}


def _build_decision(case: DecisionContext, place: int | None) -> Decision:
    submission, request = case.submission, case.request
    page = submission.page or PageEvidence()
    vote = Decision(
        request=request,
        version=request.version,
        reviewer=submission.person,
        verdict=submission.verdict,
        counts=place is not None,
        step=place,
        reason_code=submission.reason_code,
        reason=submission.reason,
        conditions=submission.conditions.as_json(),
        action_hash=submission.action_hash,
        authority={
            "role": case.role,
            "queue": request.queue.name,
            "step_up": submission.step_up.method if submission.step_up else "",
            "by": submission.by,
            **_build_hold_field(case),
            **submission.batch,
        },
        reading=case.reading,
        flags=collect_flags(case),
        took_ms=page.took_ms,
        check_asked=dict(page.check),
        at=case.now,
    )
    vote.seal = approvers.seal_vote(
        vote, submission.person.public_id, approvers.build_ballot_version(case.version)
    )
    return vote


def _build_log_entry(case: DecisionContext, place: int | None) -> log.Entry:
    submission = case.submission
    more: dict[str, Any] = {}
    if submission.batch:
        more["batch"] = submission.batch["batch"]
    if submission.view:
        more["view"] = submission.view
    if collect_flags(case):
        more["flags"] = collect_flags(case)
    private: dict[str, Any] = {"reason": submission.reason}
    if submission.page and "written" in submission.page.check:
        more["written_answer"] = submission.page.check["question"]
        private["written"] = submission.page.check["written"]
    if stored := submission.conditions.as_json():
        # A value comes from the tool's own state and may name a person.
        private["expected"] = [expected["value"] for expected in stored["expect"]]
        fields = [expected["field"] for expected in stored.pop("expect")]
        more["conditions"] = {**stored, "fields": fields}
    return log.Entry(
        "decision.recorded",
        actor=case.submission.actor,
        at=case.now,
        verdict=case.submission.verdict,
        data={
            "reason_code": case.submission.reason_code,
            "counts": place is not None,
            "step": place,
            "by": submission.by,
            **more,
        },
        private=private,
        **transitions.request.context(case.request),
    )


def collect_flags(case: DecisionContext) -> list[str]:
    """Flags of the decision, for lists, filters and metrics."""
    submission = case.submission
    broken = hold_rows.overrides_broken_hold(case.hold, submission.person)
    ours = [(BATCH, bool(submission.batch)), (HOLD_BROKEN, broken)]
    noted = submission.page.flags if submission.page else ()
    return [*(flag for flag, holds in ours if holds), *noted]


def log_decision_event(
    case: DecisionContext,
    kind: str,
    *,
    data: Mapping[str, Any],
) -> None:
    """Log something beside the decision, with its verdict and actor."""
    log.append(
        kind,
        actor=case.submission.actor,
        at=case.now,
        verdict=case.submission.verdict,
        data=data,
        **transitions.request.context(case.request),
    )
