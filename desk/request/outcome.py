"""R8 of the request page without verbs: the outcome of a request, or why this person
cannot decide it.

It always says what happened, what did not, and what can be done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from django.urls import reverse

from assurance.defects import BY_KIND
from journal.clock import format_time
from journal.models import LogRecord
from policies.models import Person
from policies.tools import load_definition
from reviews.choices import (
    GIVEN_REASON_LABELS,
    OPEN,
    SETTLED_BY_LOOK_UP,
    SETTLED_BY_PERSON,
    VERDICT_SPECS,
    DefectKind,
    ExecutionStatus,
    RequestStatus,
    StopMode,
    Verdict,
)
from reviews.effects import describe
from reviews.grants import uncertain
from reviews.grants.grants import GrantConditions
from reviews.models import Canary, Decision, Execution

from ..components import formatting
from ..components.formatting import ConditionLine
from ..components.states import StateLabel
from . import follow_up
from .follow_up import NextProposal, OutcomeLink, ProgressStep
from .load import LoadedRequest, hide_name
from .regions import RenderedRegions

STOPPED_TEXT = "The run, agent or tool is stopped. Nothing will be executed."
BATCH_HALTED_TEXT = "Its batch is paused after a failure until a person resumes it."


@dataclass(frozen=True, slots=True)
class OutcomeVote:
    verdict: str
    who: Person | str
    at: datetime
    reason: str
    conditions: Sequence[ConditionLine] = ()


@dataclass(frozen=True, slots=True)
class OutcomePanel:
    state: StateLabel  # its word is the title
    lines: Sequence[str]
    links: Sequence[OutcomeLink]
    votes: Sequence[OutcomeVote] = ()
    result: str = ""
    result_title: str = "Tool response"
    progress: Sequence[ProgressStep] = ()


# Of what somebody else holds, by whether they offer it: the strip names the holder.
_HELD_TITLES = {True: "Accept or decline it", False: "You cannot decide it now"}


def _build_panel(loaded: LoadedRequest) -> OutcomePanel:
    """The outcome of a request that this person cannot decide now."""
    state = loaded.state
    if loaded.waiting and loaded.holding.by and not loaded.why_not:
        title = _HELD_TITLES[loaded.holding.offered]
        state = replace(state, word=title, at=None)
    return OutcomePanel(
        state,
        lines=list(_build_lines(loaded)),
        votes=[_build_vote(loaded, decision) for decision in loaded.decisions],
        result=_format_result(loaded.execution),
        links=list(follow_up.build_links(loaded)),
        result_title=_find_result_title(loaded.execution),
        progress=list(follow_up.build_progress(loaded)),
    )


def _build_revised_panel(loaded: LoadedRequest, read: int) -> OutcomePanel:
    """While version `read` is on the screen: no verb, only a link to the current one,
    where the page marks what differs from it."""
    url = reverse("reviews:request_detail", args=[loaded.request.pk])
    now = loaded.request.version
    if read == now:
        title, link = "Read the page again", OutcomeLink("Reload the page", url, "R")
    else:
        url = f"{url}?since={read}" if 0 < read < now else url
        title = f"Version {now} is now the current version"
        link = OutcomeLink("Review the new version", url, "R")
    saved = "Nothing was approved. What you typed is saved on this page."
    return OutcomePanel(StateLabel("moved", title, icon="warn"), [saved], [link])


def _build_stale_state_panel(loaded: LoadedRequest) -> OutcomePanel:
    """While the before-state on the screen is out of date: no verb, only a refresh."""
    url = reverse("reviews:request_detail", args=[loaded.request.pk])
    return OutcomePanel(
        StateLabel("moved", "The current record has changed", icon="warn"),
        ["Nothing was sent. What you typed is saved."],
        [OutcomeLink("Refresh the record", url, "R", testid="refresh")],
    )


def _build_lines(loaded: LoadedRequest) -> Sequence[str]:
    status = RequestStatus(loaded.request.status)
    if loaded.stopped is StopMode.STOPPED and status in OPEN:
        return [STOPPED_TEXT]
    if loaded.waiting and loaded.holding.by:
        return list(_describe_other_hold(loaded))
    if loaded.waiting:
        return list(_describe_read_only(loaded))
    about = [BATCH_HALTED_TEXT] if loaded.is_batch_halted else _describe_effect(loaded)
    return [*_describe_status(loaded, status), *about]


def _describe_other_hold(loaded: LoadedRequest) -> Iterator[str]:
    """Until when somebody else holds it, and what this person can do."""
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
        left = loaded.tally.required - loaded.given
        missing = loaded.describe_missing_approvals(left)
        yield f"Your approval is recorded. {missing}."
        yield "Others cannot see it until the request is decided."
        return
    yield loaded.why_not
    yield "Your vote is recorded. Others cannot see it until the request is decided."


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
    """Whether the defect was caught, what it was and where the page shows it."""
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
    return follow_up.WITHDRAWN_TEXTS.get(code, "It was withdrawn.")


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
        at = format_time(until)
        yield f"No clear answer yet. Counterseal asks its service again at {at}."


def _build_vote(loaded: LoadedRequest, decision: Decision) -> OutcomeVote:
    reason = GIVEN_REASON_LABELS.get(decision.reason_code, decision.reason_code)
    note = decision.reason
    return OutcomeVote(
        verdict=VERDICT_SPECS[Verdict(decision.verdict)].label,
        who=hide_name(loaded, decision.reviewer),
        at=decision.at,
        reason=f"{reason}: {note}" if reason and note else reason or note,
        conditions=formatting.list_condition_lines(
            GrantConditions.from_json(decision.conditions)
        ),
    )


def _format_result(execution: Execution | None) -> str:
    """What the tool, its service or a verifier said: untrusted text."""
    if execution is None or follow_up.is_refused_by_counterseal(execution):
        return ""
    if execution.result_shown is not None:
        return describe.format_result(execution.result_shown)
    parts = [execution.code, execution.detail]
    return ": ".join(part for part in parts if part)


def _find_result_title(execution: Execution | None) -> str:
    """The heading over the result. Who wrote an error's text is not stored."""
    if execution is None or execution.result_shown is not None:
        return "Tool response"
    if execution.status == ExecutionStatus.REFUSED:
        return "Verifier response"
    return "Error report"


@dataclass(frozen=True)
class OutcomeRegion:
    """R8 where no verb is offered, and what the agent did next."""

    loaded: LoadedRequest
    regions: RenderedRegions

    @cached_property
    def panel(self) -> OutcomePanel:
        """What happened and can be done, or that the screen is out of date."""
        if self.regions.target_moved:
            return _build_stale_state_panel(self.loaded)
        if not self.regions.moved:
            return _build_panel(self.loaded)
        return _build_revised_panel(self.loaded, self.regions.old)

    @cached_property
    def next_proposal(self) -> NextProposal | None:
        return follow_up.find_next_proposal(self.loaded)

    @property
    def watches(self) -> bool:
        """Whether an open page polls for the agent's next proposal."""
        ended = follow_up.find_end_time(self.loaded)
        if ended is None or self.next_proposal is not None:
            return False
        return self.loaded.now < ended + follow_up.WATCH_TIME

    @property
    def may_recall(self) -> bool:
        return follow_up.may_recall(self.loaded)

    @property
    def may_retry(self) -> bool:
        return follow_up.may_retry(self.loaded)
