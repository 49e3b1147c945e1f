"""R8 without verbs: the outcome of a request, or why this person cannot decide it.

It always says what happened, what did not, and what can be done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from assurance import practice
from assurance.defects import BY_KIND
from journal.clock import format_time
from journal.models import LogRecord
from policies.choices import Role
from policies.tools import load_definition
from reviews import permissions
from reviews.choices import (
    DECIDED,
    EXECUTION_SPECS,
    GIVEN_REASON_LABELS,
    OPEN,
    REVERSAL_SOURCE,
    SETTLED_BY_LOOK_UP,
    SETTLED_BY_PERSON,
    VERDICT_SPECS,
    DefectKind,
    ExecutionStatus,
    RealismFlag,
    RequestStatus,
    StopMode,
    Verdict,
)
from reviews.effects import describe
from reviews.grants import approvers, uncertain
from reviews.grants.grants import GrantConditions
from reviews.models import Canary, Decision, Execution
from reviews.permissions import Permission

from ..components import formatting, holding, retry, undo
from ..components.formatting import ConditionLine
from .load import LoadedRequest, format_name

STOPPED_TEXT = "The run, agent or tool is stopped. Nothing will be executed."
BATCH_HALTED_TEXT = "Its batch is paused after a failure until a person resumes it."
VERIFIER_CODE = "verifier"  # of a refusal in a verifier's words
NOT_ACKNOWLEDGED = "The agent has not acknowledged it yet"
WITHDRAWN_TEXTS = {
    "withdrawn_by_agent": "The agent withdrew it.",
    "thread_finished": "It was withdrawn because its run ended.",
    "stopped": "It was withdrawn by a stop.",
}
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


@dataclass(frozen=True, slots=True)
class OutcomeVote:
    """One verdict with its name; only where names may be shown."""

    verdict: str
    who: str
    at: datetime
    reason: str
    conditions: Sequence[ConditionLine] = ()


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """One of the three states after a decision: decided, started, outcome. `at` is
    None for a state that is not reached."""

    label: str
    at: datetime | None
    said: str = ""


@dataclass(frozen=True, slots=True)
class OutcomePanel:
    """The outcome section as the page shows it."""

    title: str
    icon: str
    quarters: int | None
    lines: Sequence[str]
    votes: Sequence[OutcomeVote]
    result: str
    links: Sequence[OutcomeLink]
    result_title: str = "Tool response"
    progress: Sequence[ProgressStep] = ()
    at: datetime | None = None  # the time in the title
    until: datetime | None = None
    until_words: str = ""
    until_said: str = ""


# Of what somebody else holds, by whether they offer it: the strip names the holder.
_HELD_TITLES = {True: "Accept or decline it", False: "You cannot decide it now"}


def build_outcome(loaded: LoadedRequest) -> OutcomePanel:
    """The outcome of a request that this person cannot decide now."""
    state = loaded.state
    held = loaded.waiting and loaded.holding.by and not loaded.why_not
    return OutcomePanel(
        title=_HELD_TITLES[loaded.holding.offered] if held else state.word,
        icon=state.icon,
        quarters=state.quarters,
        lines=list(_build_lines(loaded)),
        votes=[_build_vote(loaded, one) for one in loaded.decisions],
        result=_format_result(loaded.execution),
        links=list(_build_links(loaded)),
        result_title=_find_result_title(loaded.execution),
        progress=list(_build_progress(loaded)),
        at=None if held else state.at,
        until=state.until,
        until_words=state.until_words,
        until_said=state.until_said,
    )


def build_revised_outcome(loaded: LoadedRequest, read: int = 0) -> OutcomePanel:
    """R8 while an older version is on the screen: no verb, only a link to the current
    one.

    `read` is the version on the screen; the new page marks what differs from it.
    """
    url = reverse("reviews:request_detail", args=[loaded.request.pk])
    now = loaded.request.version
    if 0 < read < now:
        url = f"{url}?since={read}"
    same = read == now
    return OutcomePanel(
        title="Read the page again"
        if same
        else f"Version {now} is now the current version",
        icon="warn",
        quarters=None,
        lines=["Nothing was approved. What you typed is saved on this page."],
        votes=[],
        result="",
        links=[
            OutcomeLink(
                "Reload the page" if same else "Review the new version", url, "R"
            )
        ],
    )


def build_stale_state_outcome(loaded: LoadedRequest) -> OutcomePanel:
    """R8 while the before-state on the screen is out of date: no verb, only a
    refresh."""
    url = reverse("reviews:request_detail", args=[loaded.request.pk])
    return OutcomePanel(
        title="The current record has changed",
        icon="warn",
        quarters=None,
        lines=["Nothing was sent. What you typed is saved."],
        votes=[],
        result="",
        links=[OutcomeLink("Refresh the record", url, "R", testid="refresh")],
    )


def may_recall(loaded: LoadedRequest) -> bool:
    """Whether this person can still recall the approval, by the rule of
    `recall_approval`."""
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


def _build_lines(loaded: LoadedRequest) -> Sequence[str]:
    status = RequestStatus(loaded.request.status)
    if loaded.stopped is StopMode.STOPPED and status in OPEN:
        return [STOPPED_TEXT]
    if loaded.waiting and loaded.holding.by:
        return list(_describe_other_hold(loaded))
    if loaded.waiting:
        return list(_describe_read_only(loaded))
    about = (
        [BATCH_HALTED_TEXT] if _is_batch_halted(loaded) else _describe_effect(loaded)
    )
    return [*_describe_status(loaded, status), *about]


def _describe_other_hold(loaded: LoadedRequest) -> Iterator[str]:
    """Somebody else holds it: until when, and what this person can do in the
    meantime."""
    hold = loaded.holding
    if loaded.why_not:
        yield from _describe_read_only(loaded)
        return
    if hold.offered:
        yield f"Accept it to decide it. If you decline it, {hold.by} keeps it."
    else:
        yield (
            f"You can decide it when {hold.by} releases it, or after "
            f"{format_time(hold.until)}, unless the claim is renewed."
        )
    if hold.asked:
        yield "You will be notified when it is released."


def _describe_read_only(loaded: LoadedRequest) -> Iterator[str]:
    """For a person who cannot decide: their own vote first, if they gave one."""
    own = loaded.own
    if own is None or own.version != loaded.request.version:
        yield loaded.why_not
        return
    if own.counts:
        yield f"Your approval is recorded. {_describe_missing_votes(loaded)}."
        yield "Others cannot see it until the request is decided."
        return
    yield loaded.why_not
    yield "Your vote is recorded. Others cannot see it until the request is decided."


def _describe_missing_votes(loaded: LoadedRequest) -> str:
    return loaded.describe_missing_approvals(loaded.tally.required - loaded.given)


def _describe_status(loaded: LoadedRequest, status: RequestStatus) -> list[str]:
    if loaded.request.canary:
        return list(_describe_canary(loaded.request.proposal.planted))
    pause = _describe_pause(loaded)
    match status:
        case RequestStatus.PENDING | RequestStatus.EXPIRED:
            return ["Nobody decided in time. The agent is notified."]
        case RequestStatus.RECALLABLE:
            return ["The undo window is open. Nothing has run yet.", *pause]
        case RequestStatus.REJECTED:
            effect = uncertain.describe_effect(loaded.request)
            return [f"{effect} The agent gets the reason.", *pause]
        case RequestStatus.WITHDRAWN:
            why = _describe_withdrawal(loaded)
            effect = uncertain.describe_effect(loaded.request)
            return [f"{why} There is nothing to decide. {effect}"]
        case RequestStatus.SUPERSEDED:
            return ["There is nothing left to decide."]
        case _:
            return []


def _describe_canary(canary: Canary) -> Iterator[str]:
    """Whether the reviewer caught the planted defect, what it was and where the page
    shows it."""
    defect = BY_KIND[DefectKind(canary.defect)]
    yield {
        True: "You caught it.",
        False: "This one got past you.",
        None: "It ended without a decision and does not count.",
    }[canary.caught]
    yield f"Planted: {defect.explanation} The page shows it {defect.place}."
    yield (
        "This is a copy of an earlier request. It could never have been executed, and"
        " its agent heard nothing. Only you and your supervisor see your figures."
    )
    if canary.realism:
        yield "Your answer about how real it looked is recorded."


def _describe_withdrawal(loaded: LoadedRequest) -> str:
    """Who withdrew it and why, by the log."""
    record = (
        LogRecord.objects.filter(
            kind="request.withdrawn", proposal=loaded.request.proposal_id
        )
        .order_by("-pk")
        .first()
    )
    code = record.data.get("code", "") if record else ""
    return WITHDRAWN_TEXTS.get(code, "It was withdrawn.")


def describe_halt(loaded: LoadedRequest) -> str:
    """That the run, agent or tool is paused or stopped, and what that means for a
    request that waits; empty for others."""
    if not loaded.waiting or loaded.stopped is None:
        return ""
    if loaded.stopped is StopMode.STOPPED:
        return STOPPED_TEXT
    return (
        "The run, agent or tool is paused. Nothing of it is executed until a "
        "supervisor or an administrator resumes it."
    )


def _describe_pause(loaded: LoadedRequest) -> list[str]:
    if loaded.stopped is not StopMode.PAUSED:
        return []
    return ["The run, agent or tool is paused. Nothing more of it starts."]


def _is_batch_halted(loaded: LoadedRequest) -> bool:
    """Whether it does not run until its halted batch goes on."""
    row = loaded.execution
    open_ends = {ExecutionStatus.QUEUED, ExecutionStatus.FAILED}
    return row is not None and row.status in open_ends and loaded.halted


def _describe_effect(loaded: LoadedRequest) -> list[str]:
    execution, tool = loaded.execution, loaded.revision.tool
    if execution is None or tool is None:
        return []
    status, most = (
        ExecutionStatus(execution.status),
        load_definition(tool).retry.attempts,
    )
    tried = execution.attempts
    if status is ExecutionStatus.QUEUED:
        coming = (
            [f"{formatting.format_next_attempt(execution, most)}."] if tried else []
        )
        return coming + _describe_pause(loaded)
    if status is ExecutionStatus.UNKNOWN:
        return ["It may or may not have happened. It is not retried automatically."]
    if status is ExecutionStatus.CLAIMED:
        return list(_describe_running(execution, most))
    if status is ExecutionStatus.FAILED and tried > 1:
        return [f"It was attempted {tried} times."]
    if execution.code == SETTLED_BY_PERSON:
        return ["A person recorded this result; the tool did not report it."]
    if execution.code == SETTLED_BY_LOOK_UP:
        return [
            "A look-up at its service found this result; the attempt did not report it."
        ]
    return []


def _describe_running(execution: Execution, most: int) -> Iterator[str]:
    attempt = formatting.format_attempt(execution, most)
    yield f"{attempt}. Its effect happens at most once."
    until = execution.lease_until
    if execution.code and until is not None:
        said = format_time(until)
        yield f"No clear answer yet. Counterseal asks its service again at {said}."


def _build_progress(loaded: LoadedRequest) -> Iterator[ProgressStep]:
    """What became of the decision: an agent that is gone leaves an approval unused, and
    a rejection unread."""
    status, execution = RequestStatus(loaded.request.status), loaded.execution
    if status not in DECIDED:
        return
    yield ProgressStep("Decided", loaded.request.settled_at)
    if status is RequestStatus.REJECTED:
        acknowledged = _find_acknowledgement(loaded, loaded.request.settled_at)
        said = "The agent acknowledged it" if acknowledged else NOT_ACKNOWLEDGED
        yield ProgressStep("Agent", acknowledged, said)
        return
    yield _build_take_up(execution)
    yield _build_result(loaded, execution)
    if execution is not None and _is_refused_by_counterseal(execution):
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
    found = LogRecord.objects.filter(
        kind="outcome.acknowledged",
        proposal=loaded.request.proposal_id,
        at__gte=since,
    )
    at: datetime | None = found.order_by("-pk").values_list("at", flat=True).first()
    return at


def _build_vote(loaded: LoadedRequest, decision: Decision) -> OutcomeVote:
    reason = GIVEN_REASON_LABELS.get(decision.reason_code, decision.reason_code)
    note = decision.reason
    return OutcomeVote(
        verdict=VERDICT_SPECS[Verdict(decision.verdict)].label,
        who=format_name(loaded, decision.reviewer),
        at=decision.at,
        reason=f"{reason}: {note}" if reason and note else reason or note,
        conditions=formatting.list_condition_lines(
            GrantConditions.from_json(decision.conditions)
        ),
    )


def _is_refused_by_counterseal(execution: Execution) -> bool:
    """Whether code and detail are Counterseal's own words. A verifier writes
    its own.
    """
    refused = execution.status == ExecutionStatus.REFUSED
    return refused and execution.code != VERIFIER_CODE


def _describe_refusal(execution: Execution) -> str:
    code = execution.code
    return execution.detail or WITHDRAWN_TEXTS.get(code, code)


def _format_result(execution: Execution | None) -> str:
    """What the tool, its service or a verifier said, as text: untrusted, to be printed
    as such."""
    if execution is None or _is_refused_by_counterseal(execution):
        return ""
    if execution.result_shown is not None:
        return describe.format_result(execution.result_shown)
    said = [execution.code, execution.detail]
    return ": ".join(part for part in said if part)


def _find_result_title(execution: Execution | None) -> str:
    """The heading over the result. Who wrote an error's text is not stored."""
    if execution is None or execution.result_shown is not None:
        return "Tool response"
    if execution.status == ExecutionStatus.REFUSED:
        return "Verifier response"
    return "Error report"


def _build_links(loaded: LoadedRequest) -> list[OutcomeLink]:
    links = []
    execution = loaded.execution
    unknown = execution is not None and execution.status == ExecutionStatus.UNKNOWN
    if execution is not None and unknown:
        settles = permissions.has_permission(loaded.person, Permission.SETTLE_UNKNOWN)
        said = "Record what happened" if settles else "See what is known"
        links.append(
            OutcomeLink(said, reverse("reviews:unknown_one", args=[execution.pk]))
        )
    if execution is not None and _is_batch_halted(loaded):
        url = reverse("reviews:batch", args=[execution.batch_id])
        links.append(OutcomeLink("Open the batch", url, testid="batch"))
    links += _build_canary_links(loaded)
    links += _build_undo_links(loaded)
    if loaded.holding.by:
        links += _build_hold_links(loaded)
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
    """The reversal's state, and where one can be proposed."""
    proposal, tool = loaded.request.proposal, loaded.revision.tool_id
    if proposal.source == REVERSAL_SOURCE:
        return
    found = undo.find_execution_undo(
        loaded.person, loaded.execution, proposal, tool, loaded.now
    )
    if found.word:
        yield OutcomeLink(found.word, found.url, testid="reversed-by")
    if found.offer:
        yield OutcomeLink("Propose reversal…", found.offer, testid="reverse")


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
