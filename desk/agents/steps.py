"""Rows for what a run or an agent proposed: the effect, whether people were asked, the
times, and the outcome."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, OuterRef, Prefetch, QuerySet, Subquery
from django.urls import reverse

from journal import ids
from policies.choices import APPROVAL_LABELS, Tier
from policies.evaluation import AppliedRule
from policies.models import Person
from reviews.choices import (
    GIVEN_REASON_LABELS,
    REVERSAL_SOURCE,
    SETTLED_BY_LOOK_UP,
    SETTLED_BY_PERSON,
    ExecutionStatus,
    RequestStatus,
    Verdict,
)
from reviews.effects import describe
from reviews.effects.describe import EffectBrief
from reviews.models import ApprovalRequest, Decision, Execution, Proposal, Revision
from reviews.presenters.shapes import SentencePart

from ..components import states, undo, visibility
from ..components.retry import find_retryable
from ..components.states import ApprovalTally, StateLabel
from ..components.undo import UndoStatus

_REVISION_FIELDS = (
    "proposal",
    "number",
    "risk",
    "tier",
    "action_hash",
    "tool",
    "evaluation",
)

# Codes that Counterseal sets, beside those of a refusal. Any other code comes from the
# tool or its agent.
OWN_CODES = {SETTLED_BY_PERSON, SETTLED_BY_LOOK_UP}


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """One proposal. `approval`: what the policy demands; `way`: whether approval was
    requested, not needed, or the proposal blocked or a repeat; `took`: how long its
    request was open; `why`: the sentence of the rule that blocked it,
    or Counterseal's words for a rejection, failure or refusal;
    `note`: the own words of the tool, the agent, or the reviewer who rejected it."""

    proposal: Proposal
    effect: tuple[SentencePart, ...]
    risk: str
    approval: str
    state: StateLabel
    way: str
    took: timedelta | None
    why: str
    note: str
    url: str
    parent: str
    reversal: UndoStatus
    retry: str  # URL at which this person may have a known failure retried, or ""


def list_proposal_rows(
    person: Person, proposals: QuerySet[Proposal], now: datetime
) -> list[ProposalRow]:
    """Build the rows of these proposals: five queries, one more for effects that are
    not cached, three where something can be undone, two where something can be retried.
    """
    rows: list[Any] = list(
        proposals.prefetch_related(
            Prefetch("revisions", _select_current_revisions(), to_attr="now"),
            Prefetch("request", _select_requests()),
            Prefetch(
                "request__versions",
                visibility.select_current_versions(),
                to_attr="sealed_now",
            ),
            Prefetch("executions", Execution.objects.order_by("-queued_at")),
        )
    )
    briefs = describe.load_briefs_by_id(
        {row.now[0].pk: row.now[0].action_hash for row in rows}
    )
    undos = undo.build_undo_statuses(person, dict(_list_undo_candidates(rows)), now)
    failed = find_retryable(person, _list_retry_candidates(rows), now)
    return [
        _build_proposal_row(row, briefs[row.now[0].pk], undos, failed, now)
        for row in rows
    ]


def _find_newest_execution(row: Any) -> Execution | None:
    return next(iter(row.executions.all()), None)


def _list_retry_candidates(rows: Iterable[Any]) -> list[str]:
    """List failed executions without a request. With one, the request's page offers the
    retry."""
    newest = ((row, _find_newest_execution(row)) for row in rows)
    return [
        execution.pk
        for row, execution in newest
        if execution is not None
        and execution.status == ExecutionStatus.FAILED
        and getattr(row, "request", None) is None
    ]


def _list_undo_candidates(
    rows: Iterable[Any],
) -> Iterator[tuple[str, undo.ExecutedEffect]]:
    """List the executions that succeeded and are not reversals themselves."""
    for row in rows:
        execution = _find_newest_execution(row)
        done = execution is not None and execution.status == ExecutionStatus.SUCCEEDED
        if execution is not None and done and row.source != REVERSAL_SOURCE:
            effect = undo.ExecutedEffect(row.now[0].tool_id, row.agent, row.thread)
            yield execution.pk, effect


def _select_current_revisions() -> QuerySet[Revision]:
    return Revision.objects.filter(number=F("proposal__revision")).only(
        *_REVISION_FIELDS
    )


def _select_requests() -> QuerySet[ApprovalRequest]:
    """Select the requests with their counted votes and the reason of the newest
    rejection as a code and in words."""
    votes = Decision.objects.filter(request=OuterRef("pk"), verdict=Verdict.REJECT)
    newest = votes.order_by("-at")
    return ApprovalRequest.objects.annotate(
        given=visibility.build_approval_count(),
        rejected=Subquery(newest.values("reason_code")[:1]),
        words=Subquery(newest.values("reason")[:1]),
    )


def _build_proposal_row(
    proposal: Any,
    shown: EffectBrief,
    undos: Mapping[str, UndoStatus],
    failed: Collection[str],
    now: datetime,
) -> ProposalRow:
    revision = proposal.now[0]
    request = getattr(proposal, "request", None)
    execution = _find_newest_execution(proposal)
    pk = execution.pk if execution else ""
    return ProposalRow(
        proposal=proposal,
        effect=shown.effect,
        risk=revision.risk,
        approval=APPROVAL_LABELS[Tier(request.tier if request else revision.tier)],
        state=_build_state(proposal, request, execution, now),
        way=_describe_route(proposal, request, revision),
        took=_compute_duration(request),
        why=_describe_block(proposal, revision) or _describe_reason(request, execution),
        note=_format_foreign_note(execution) or _read_rejection(request),
        url=reverse("reviews:request_detail", args=[request.pk]) if request else "",
        parent=proposal.parent if ids.is_id(proposal.parent, "p") else "",
        reversal=undos.get(pk, UndoStatus()),
        retry=reverse("reviews:effect_retry", args=[pk]) if pk in failed else "",
    )


def _describe_route(proposal: Proposal, request: Any, revision: Revision) -> str:
    """What `approval` and `state` leave out about who was asked."""
    if proposal.blocked_by:
        return ""
    if proposal.repeats:
        return f"Rejected before in this run, as {proposal.repeats}"
    noted = request is None and revision.tier == Tier.NOTIFY
    return "Listed in Activity" if noted else ""


def _compute_duration(request: Any) -> timedelta | None:
    if request is None or request.settled_at is None:
        return None
    took: timedelta = request.settled_at - request.opened_at
    return took


def _describe_block(proposal: Proposal, revision: Revision) -> str:
    """The sentences of the rules that blocked the proposal, as it was evaluated."""
    if not proposal.blocked_by:
        return ""
    rules = (AppliedRule(**rule) for rule in revision.evaluation.get("rules", []))
    return " ".join(rule.text for rule in rules if rule.blocks)


def _describe_reason(request: Any, execution: Execution | None) -> str:
    if execution is not None:
        return "" if _has_foreign_code(execution) else _format_code(execution.code)
    settled = request is not None and request.status == RequestStatus.REJECTED
    return GIVEN_REASON_LABELS.get(request.rejected, "") if settled else ""


def _read_rejection(request: Any) -> str:
    """The reviewer's words about a rejection."""
    settled = request is not None and request.status == RequestStatus.REJECTED
    return request.words or "" if settled else ""


def _has_foreign_code(execution: Execution) -> bool:
    return (
        execution.status != ExecutionStatus.REFUSED and execution.code not in OWN_CODES
    )


def _format_code(code: str) -> str:
    return code.replace("_", " ").capitalize()


def _format_foreign_note(execution: Execution | None) -> str:
    """Return the code and the words of the tool or its agent about a failure. This is
    foreign text."""
    if execution is None:
        return ""
    code = execution.code if _has_foreign_code(execution) else ""
    return ": ".join(part for part in (code, execution.detail) if part)


def _build_state(
    proposal: Proposal, request: Any, execution: Execution | None, now: datetime
) -> StateLabel:
    if proposal.blocked_by:
        return StateLabel("blocked", f"Blocked: {proposal.blocked_by}", icon="void")
    if proposal.repeats:
        return StateLabel("rejected", "Rejected without asking again", icon="no")
    if request is None:
        return states.build_execution_state(execution)
    sealed = request.sealed_now[0]
    tally = ApprovalTally(request.given, sum(step["required"] for step in sealed.steps))
    return states.build_request_state(
        request, execution, tally, cause=sealed.cause, now=now
    )


# The status words of the API that pages name otherwise.
STATUS_LABELS = {"granted": "authorized", "unknown": "unknown result"}


def label_outcomes(outcomes: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return pairs of a label and its count from pairs of a status word and a count."""
    return [(STATUS_LABELS.get(word, word), count) for word, count in outcomes]


def sort_outcomes(outcomes: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Sort pairs of a status word and its count, the most frequent first."""
    return sorted(outcomes, key=lambda outcome: (-outcome[1], outcome[0]))
