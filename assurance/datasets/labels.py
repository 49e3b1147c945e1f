"""The label of a line of a dataset, and what backs it.

A verdict alone is a weak label: the reviewer may have been fast, or wrong. So each line
says how many people agreed, what a second review found, and what became of the effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reviews.choices import (
    ExecutionStatus,
    RequestStatus,
    Verdict,
)
from reviews.models import Canary, Decision, Execution, SecondReview, UpheldReview

from ..second_reviews import FAST_FLAG

ONE_PERSON = "one person"
ONE_FAST_PERSON = "one person below the minimum reading time"
TWO_AGREED = "two people agreed"
TWO_DISAGREED = "two people disagreed"
SECOND_AGREED = "second review agreed"
SECOND_DISAGREED = "second review disagreed"
RULINGS = {
    UpheldReview.FIRST: f"{SECOND_DISAGREED} and was ruled: the first was right",
    UpheldReview.SECOND: f"{SECOND_DISAGREED} and was ruled: the second was right",
}
RETURNED = "escalation was returned"
EFFECT_SUCCEEDED = "effect succeeded"
EFFECT_FAILED = "effect failed"
EFFECT_UNDONE = "effect was undone"
PLANTED = "planted"


@dataclass(frozen=True, slots=True)
class LineLabel:
    """The label, what backs it, and the reason code of the verdict. For a canary the
    label is what was planted, and `verdict` what its reviewer decided."""

    label: str
    verdict: str
    reason_code: str
    quality: Sequence[str]


def build_canary_label(canary: Canary) -> LineLabel:
    """The label of a canary that its reviewer decided."""
    outcome = "caught" if canary.caught else "missed"
    return LineLabel(canary.defect, canary.verdict, "", [PLANTED, outcome])


def build_label(
    status: RequestStatus | None,
    decisions: Sequence[Decision],
    execution: Execution | None,
    *,
    returned: bool = False,
) -> LineLabel:
    """The label of a version that people decided.

    `status` is the request's, if this is its last version; `execution` is the effect's,
    if this version led to it. `returned`: a supervisor gave the request back later.
    """
    verdict = _find_verdict(status, decisions)
    given = [decision for decision in decisions if decision.verdict == verdict]
    codes = [decision.reason_code for decision in given if decision.reason_code]
    quality = [
        _describe_people(given, decisions),
        *_describe_second_reviews(given),
        *([RETURNED] if returned and verdict == Verdict.ESCALATE else []),
        *_describe_effect(execution),
    ]
    return LineLabel(verdict, verdict, codes[-1] if codes else "", quality)


def _find_verdict(
    status: RequestStatus | None, decisions: Iterable[Decision]
) -> Verdict:
    """An edit and an escalation each end a version; otherwise its request's end says
    which vote counted."""
    given = {decision.verdict for decision in decisions}
    for verdict in (Verdict.MODIFY, Verdict.ESCALATE):
        if verdict in given:
            return verdict
    return Verdict.REJECT if status == RequestStatus.REJECTED else Verdict.APPROVE


def _describe_people(given: Sequence[Decision], decisions: Sequence[Decision]) -> str:
    if len({decision.verdict for decision in decisions}) > 1:
        return TWO_DISAGREED
    if len({decision.reviewer_id for decision in given}) > 1:
        return TWO_AGREED
    fast = any(FAST_FLAG in decision.flags for decision in given)
    return ONE_FAST_PERSON if fast else ONE_PERSON


def _describe_second_reviews(given: Iterable[Decision]) -> Iterator[str]:
    for decision in given:
        review: SecondReview | None = getattr(decision, "second", None)
        if review is None or review.agrees is None:
            continue
        if review.agrees:
            yield SECOND_AGREED
        elif review.upheld:
            yield RULINGS[UpheldReview(review.upheld)]
        else:
            yield SECOND_DISAGREED


def _describe_effect(execution: Execution | None) -> Iterator[str]:
    if execution is None:
        return
    if execution.status == ExecutionStatus.SUCCEEDED:
        yield EFFECT_UNDONE if _is_undone(execution) else EFFECT_SUCCEEDED
    elif execution.status == ExecutionStatus.FAILED:
        yield EFFECT_FAILED


def _is_undone(execution: Execution) -> bool:
    """Whether a reversal of this effect was executed. Its rows are loaded already."""
    return any(
        done.status == ExecutionStatus.SUCCEEDED
        for reversal in execution.reversals.all()
        for done in reversal.proposal.executions.all()
    )
