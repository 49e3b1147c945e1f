"""What follows a decision: its progress step by step, what can still be done about the
request, and what the agent proposed next.

An agent that is gone leaves an approval unused, and a rejection unread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse

from assurance import practice
from journal.clock import format_time
from journal.models import LogRecord
from policies.choices import Role
from reviews import permissions
from reviews.choices import (
    DECIDED,
    EXECUTION_SPECS,
    REVERSAL_SOURCE,
    DefectKind,
    ExecutionStatus,
    RealismFlag,
    RequestStatus,
)
from reviews.effects import describe
from reviews.grants import approvers
from reviews.models import Execution, Proposal
from reviews.presenters.shapes import SentencePart
from reviews.roles import Permission

from ..components import holding, retry, undo, visibility
from .load import LoadedRequest

VERIFIER_CODE = "verifier"  # of a refusal in a verifier's words
NOT_ACKNOWLEDGED = "The agent has not acknowledged it yet"
WITHDRAWN_TEXTS = {
    "withdrawn_by_agent": "The agent withdrew it.",
    "thread_finished": "It was withdrawn because its run ended.",
    "stopped": "It was withdrawn by a stop.",
}


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """One of the three states after a decision: decided, started, outcome. `at` is
    None for a state that is not reached."""

    label: str
    at: datetime | None
    text: str = ""


def build_progress(loaded: LoadedRequest) -> Iterator[ProgressStep]:
    """What became of the decision: an agent that is gone leaves an approval unused, and
    a rejection unread."""
    status, execution = RequestStatus(loaded.request.status), loaded.execution
    if status not in DECIDED:
        return
    label = "Decided" if status is RequestStatus.REJECTED else "Authorized"
    yield ProgressStep(label, loaded.request.settled_at)
    if status is RequestStatus.REJECTED:
        acknowledged = _find_acknowledgement(loaded, loaded.request.settled_at)
        text = "The agent acknowledged it" if acknowledged else NOT_ACKNOWLEDGED
        yield ProgressStep("Agent", acknowledged, text)
        return
    yield _build_take_up(execution)
    yield _build_result(loaded, execution)
    if execution is not None and is_refused_by_counterseal(execution):
        yield ProgressStep("Reason", None, _describe_refusal(execution))


def _build_result(loaded: LoadedRequest, execution: Execution | None) -> ProgressStep:
    label = "Outcome"
    if execution is not None and execution.status == ExecutionStatus.UNKNOWN:
        return ProgressStep(
            label, None, "Unknown: a look-up or a supervisor records it"
        )
    if execution is None or execution.finished_at is None:
        return ProgressStep(label, None, "None yet")
    word = EXECUTION_SPECS[execution.status].result
    acknowledged = _find_acknowledgement(loaded, execution.finished_at)
    heard = (
        f"The agent acknowledged it at {format_time(acknowledged)}"
        if acknowledged
        else NOT_ACKNOWLEDGED
    )
    return ProgressStep(label, execution.finished_at, f"{word}. {heard}")


def _build_take_up(execution: Execution | None) -> ProgressStep:
    label = "Started"
    if execution is None:
        return ProgressStep(label, None, "Not yet")
    if execution.claimed_at is None:
        if execution.status == ExecutionStatus.REFUSED:
            return ProgressStep(label, None, "Never: it was refused before it started")
        waits = (
            "the agent has not used its permit"
            if execution.by_agent
            else "no worker has started it"
        )
        return ProgressStep(label, None, f"Not yet: {waits}")
    began = (
        "The agent used its permit"
        if execution.by_agent
        else f"A worker started attempt {execution.attempts}"
    )
    return ProgressStep(label, execution.claimed_at, began)


def _find_acknowledgement(
    loaded: LoadedRequest, since: datetime | None
) -> datetime | None:
    """When the agent acknowledged the outcome of this proposal that came at `since`."""
    records = LogRecord.objects.filter(
        kind="outcome.acknowledged", proposal=loaded.request.proposal_id, at__gte=since
    )
    at: datetime | None = records.order_by("-pk").values_list("at", flat=True).first()
    return at


def is_refused_by_counterseal(execution: Execution) -> bool:
    """Whether code and detail are the gate's own words; a verifier writes its own."""
    refused = execution.status == ExecutionStatus.REFUSED
    return refused and execution.code != VERIFIER_CODE


def _describe_refusal(execution: Execution) -> str:
    code = execution.code
    return execution.detail or WITHDRAWN_TEXTS.get(code, code)


WATCH_TIME = timedelta(minutes=2)  # how long after the end an open page polls
_MOST_SEARCHED = 20  # proposals that are searched


@dataclass(frozen=True, slots=True)
class NextProposal:
    """The next proposal; `url` is its request if there is one, else its run. `repeats`:
    it got the rejection of an earlier proposal."""

    agent: str
    effect: tuple[SentencePart, ...]
    url: str
    asks: bool
    repeats: bool


def find_end_time(loaded: LoadedRequest) -> datetime | None:
    """When the request or its execution finished; None while either can change, and for
    a canary, which has no agent."""
    if not loaded.finished or loaded.request.canary:
        return None
    if loaded.request.status == RequestStatus.AUTHORIZED and loaded.execution:
        return loaded.execution.finished_at
    return loaded.request.settled_at


def find_next_proposal(loaded: LoadedRequest) -> NextProposal | None:
    """The agent's next proposal after the end, or None.

    Preferred in this order: one that supersedes this; one of this run, or of a run it
    started, that people are asked about; any other of these.
    """
    ended = find_end_time(loaded)
    if ended is None:
        return None
    own = loaded.request.proposal
    near = Q(agent=own.agent, thread=own.thread, created_at__gt=own.created_at)
    near |= Q(parent=own.pk)
    if loaded.request.status == RequestStatus.SUPERSEDED:
        # By a proposal of this moment, perhaps of another run; found by this index.
        near |= Q(agent=own.agent, created_at=ended, supersedes=own.pk)
    later = Q(created_at__gt=ended) | Q(supersedes=own.pk)
    proposals = visibility.select_visible_proposals(loaded.person).filter(later, near)
    rows = proposals.order_by("created_at", "pk").select_related("request")[
        :_MOST_SEARCHED
    ]
    asked = {proposal.pk for proposal in rows if hasattr(proposal, "request")}
    first = min(
        rows,
        key=lambda proposal: (
            proposal.supersedes != own.pk,
            proposal.pk not in asked,
            proposal.created_at,
        ),
        default=None,
    )
    return _build_next_proposal(loaded, first, first.pk in asked) if first else None


def _build_next_proposal(
    loaded: LoadedRequest, row: Proposal, asks: bool
) -> NextProposal:
    if (
        asks
        and visibility.select_visible_requests(loaded.person)
        .filter(proposal=row)
        .exists()
    ):
        url = reverse("reviews:request_detail", args=[row.request.pk])
    else:
        url = reverse("agents:thread", args=[row.agent, row.thread])
    return NextProposal(
        agent=row.agent,
        effect=describe.build_effect_sentence(row.current),
        url=url,
        asks=asks,
        repeats=bool(row.repeats),
    )


REALISM_LABELS = {
    RealismFlag.OBVIOUS: "I could tell that it was a canary",
    RealismFlag.UNCLEAR: "The defect is unclear",
}


@dataclass(frozen=True, slots=True)
class OutcomeLink:
    """One link or button of the outcome; `key` is its shortcut."""

    label: str
    url: str
    key: str = ""
    post: bool = False  # a button that posts
    testid: str = ""


def may_recall(loaded: LoadedRequest) -> bool:
    """Whether this person can recall the approval, by `recall_approval`'s rule."""
    until = loaded.request.recall_until
    if until is None:
        return False
    if until <= loaded.now and not approvers.without_votes([loaded.request]):
        return False
    person = loaded.person
    role = permissions.find_deciding_role(person)
    if role is None or loaded.request.queue_id not in permissions.queues_of(person):
        return False
    own = loaded.own
    voted = own is not None and own.counts and own.version == loaded.request.version
    return voted or role is Role.SUPERVISOR


def may_retry(loaded: LoadedRequest) -> bool:
    """Whether this person can try a failed execution again, by the rule of
    `settle.retry_execution`."""
    execution = loaded.execution
    if execution is None or execution.status != ExecutionStatus.FAILED:
        return False
    return bool(retry.find_retryable(loaded.person, [execution.pk], loaded.now))


def build_links(loaded: LoadedRequest) -> list[OutcomeLink]:
    links = []
    execution = loaded.execution
    unknown = execution is not None and execution.status == ExecutionStatus.UNKNOWN
    if execution is not None and unknown:
        settles = permissions.has_permission(loaded.person, Permission.SETTLE_UNKNOWN)
        label = "Record what happened" if settles else "See what is known"
        url = reverse("reviews:unknown_one", args=[execution.pk])
        links.append(OutcomeLink(label, url))
    if execution is not None and loaded.is_batch_halted:
        url = reverse("reviews:batch", args=[execution.batch_id])
        links.append(OutcomeLink("Open the batch", url, testid="batch"))
    links += _build_canary_links(loaded)
    links += _build_undo_links(loaded)
    if loaded.holding.by:
        links += _build_hold_links(loaded)
    if loaded.waiting and holding.may_supervise(loaded.person, loaded.request):
        url = reverse("reviews:move", args=[loaded.request.pk])
        links.append(OutcomeLink("Move to another queue…", url, testid="move"))
    links.append(OutcomeLink("Back to the queue", reverse("reviews:queue")))
    return links


def _build_canary_links(loaded: LoadedRequest) -> Iterator[OutcomeLink]:
    """A practice after several misses of the same kind, and the two answers to how real
    a revealed canary looked."""
    request = loaded.request
    if not request.canary or not loaded.settled:
        return
    canary = request.proposal.planted
    kind = DefectKind(canary.defect)
    if canary.caught is False and practice.is_practice_due(
        loaded.person, kind, loaded.now
    ):
        url = reverse("reviews:practice_start", args=[kind])
        yield OutcomeLink(
            "Practise this kind for 2 minutes", url, post=True, testid="practise"
        )
    if canary.realism:
        return
    for flag, label in REALISM_LABELS.items():
        url = reverse("reviews:canary_realism", args=[request.pk, flag])
        yield OutcomeLink(label, url, post=True, testid=f"realism-{flag}")


def _build_undo_links(loaded: LoadedRequest) -> Iterator[OutcomeLink]:
    proposal, tool = loaded.request.proposal, loaded.revision.tool_id
    if proposal.source == REVERSAL_SOURCE:
        return
    status = undo.find_execution_undo(
        loaded.person, loaded.execution, proposal, tool, loaded.now
    )
    if status.word:
        yield OutcomeLink(status.word, status.url, testid="reversed-by")
    if status.offer:
        yield OutcomeLink("Propose reversal…", status.offer, testid="reverse")


def _build_hold_links(loaded: LoadedRequest) -> Iterator[OutcomeLink]:
    hold, pk = loaded.holding, [loaded.request.pk]
    if hold.offered and not loaded.why_not:
        url = reverse("reviews:accept_hold", args=pk)
        yield OutcomeLink("Accept", url, "C", post=True, testid="take-over")
        url = reverse("reviews:decline_offer", args=pk)
        yield OutcomeLink("Decline", url, post=True, testid="decline")
    if not hold.asked and not hold.offered and not loaded.why_not:
        url = reverse("reviews:ask_hold", args=pk)
        yield OutcomeLink("Notify me", url, post=True, testid="notify")
    if holding.may_break_hold(loaded.person, loaded.request):
        url = reverse("reviews:break_hold", args=pk)
        yield OutcomeLink("End claim…", url, testid="break")
