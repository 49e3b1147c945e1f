"""R8 without verbs: the outcome of a request, or why this person cannot decide it.

It always says what happened, what did not, and what can be done (ux.md 3.10).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from journal.clock import time_of_day
from journal.models import LogRecord
from policies.choices import Role
from policies.tools import definition
from reviews import permissions
from reviews.choices import (
    BY_LOOK_UP,
    BY_PERSON,
    OPEN,
    REASONS,
    REVERSAL,
    ExecutionStatus,
    RequestStatus,
    StopMode,
    Verdict,
)
from reviews.desk.components import formatting, holding, retry, undo
from reviews.desk.components.log_sentences import HIDDEN_NAME
from reviews.effects import describe
from reviews.effects.wording import GIVEN, people
from reviews.grants import approvers, uncertain
from reviews.models import Decision, Execution
from reviews.permissions import Permission

from .load import Loaded

HALTED = "Its batch waits since a failure, until a person lets it go on."
WITHDRAWN_BY = {
    "withdrawn_by_agent": "The agent withdrew it.",
    "thread_finished": "Its run is over, so it was withdrawn.",
    "stopped": "A stop withdrew it.",
}


@dataclass(frozen=True, slots=True)
class Link:
    """One link or button of the outcome; `key` is its shortcut."""

    label: str
    url: str
    key: str = ""
    post: bool = False  # a button that posts
    testid: str = ""


@dataclass(frozen=True, slots=True)
class Vote:
    """One verdict with its name; only where names may be shown."""

    verdict: str
    who: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome section as the page shows it."""

    title: str
    icon: str
    quarters: int | None
    lines: Sequence[str]
    votes: Sequence[Vote]
    result: str
    links: Sequence[Link]
    at: datetime | None = None  # the time in the title
    until: datetime | None = None
    until_words: str = ""
    until_said: str = ""


def of(loaded: Loaded) -> Outcome:
    """The outcome of a request that this person cannot decide now."""
    state = loaded.state
    return Outcome(
        title=state.word,
        icon=state.icon,
        quarters=state.quarters,
        lines=list(_lines(loaded)),
        votes=[_vote(loaded, one) for one in loaded.decisions],
        result=_result(loaded.execution),
        links=list(_links(loaded)),
        at=state.at,
        until=state.until,
        until_words=state.until_words,
        until_said=state.until_said,
    )


def moved(loaded: Loaded, read: int = 0) -> Outcome:
    """R8 while an older version is on the screen: no verb, only a link to the current
    one.

    `read` is the version on the screen; the new page marks what differs from it.
    """
    url = reverse("reviews:request_detail", args=[loaded.request.pk])
    now = loaded.request.version
    if 0 < read < now:
        url = f"{url}?since={read}"
    same = read == now
    return Outcome(
        title="Read it once more"
        if same
        else f"Version {now} is the one to decide now",
        icon="warn",
        quarters=None,
        lines=["Nothing was approved. Your note is kept on this page."],
        votes=[],
        result="",
        links=[Link("Show it anew" if same else "Review the new version", url, "R")],
    )


def target_moved(loaded: Loaded) -> Outcome:
    """R8 while the before-state on the screen is out of date: no verb, only a
    refresh."""
    url = reverse("reviews:request_detail", args=[loaded.request.pk])
    return Outcome(
        title="What this would change has changed",
        icon="warn",
        quarters=None,
        lines=["Nothing was sent. What you typed is kept."],
        votes=[],
        result="",
        links=[Link("Refresh before-state", url, "R", testid="refresh")],
    )


def may_recall(loaded: Loaded) -> bool:
    """Whether this person can still recall the approval, by the rule of
    `recall_approval`."""
    until = loaded.request.recall_until
    if until is None:
        return False
    if until <= loaded.now and not approvers.without_votes([loaded.request]):
        return False
    person = loaded.person
    role = permissions.deciding_role(person)
    if role is None or loaded.request.queue_id not in permissions.queues_of(person):
        return False
    own = loaded.own
    voted = own is not None and own.counts and own.version == loaded.request.version
    return voted or role is Role.SUPERVISOR


def may_retry(loaded: Loaded) -> bool:
    """Whether this person can try a failed execution again, by the rule of
    `settle.retry_execution`."""
    execution = loaded.execution
    if execution is None or execution.status != ExecutionStatus.FAILED:
        return False
    return bool(retry.able(loaded.person, [execution.pk], loaded.now))


def _lines(loaded: Loaded) -> Sequence[str]:
    status = RequestStatus(loaded.request.status)
    if loaded.stopped is StopMode.STOPPED and status in OPEN:
        return ["This run, its agent or its tool is stopped. Nothing will be executed."]
    if loaded.waiting and loaded.holding.by:
        return list(_held(loaded))
    if loaded.waiting:
        return list(_reading(loaded))
    about = [HALTED] if _is_kept(loaded) else _about_effect(loaded)
    return [*_about(loaded, status), *about]


def _held(loaded: Loaded) -> Iterator[str]:
    """Somebody else holds it: until when, and what this person can do in the
    meantime."""
    hold = loaded.holding
    if loaded.why_not:
        yield from _reading(loaded)
        return
    until = time_of_day(hold.until)
    yield (
        "You can read everything. Deciding opens when "
        f"{hold.by} gives it back, or at {until} if they are gone."
    )
    if hold.offered:
        yield f"{hold.by} offers it to you."
    if hold.asked:
        yield "You will get a mail when it is free."


def _why_not(loaded: Loaded) -> str:
    """The refusal for a person who only reads, without the words about what was not
    recorded."""
    if loaded.person.public_id in loaded.sealed.escalated_by:
        return "You escalated this. A supervisor decides it now."
    return loaded.why_not.removesuffix(" Nothing was recorded.")


def _reading(loaded: Loaded) -> Iterator[str]:
    """For a person who cannot decide: their own vote first, if they gave one."""
    own = loaded.own
    if own is None or own.version != loaded.request.version:
        yield _why_not(loaded)
        yield "You can read everything here."
        return
    if own.counts:
        yield f"Your approval is recorded. {_still_needed(loaded)}"
        yield "Others do not see it until this is settled."
        return
    yield _why_not(loaded)
    yield "Your vote is recorded. Others do not see it until this is settled."


def _still_needed(loaded: Loaded) -> str:
    left = loaded.tally.required - loaded.given
    roles = {step["role"] for step in loaded.sealed.steps}
    who = f"more {roles.pop()}" if len(roles) == 1 else "more person"
    verb = "is" if left == 1 else "are"
    return f"{people(left, who)} {verb} needed."


def _about(loaded: Loaded, status: RequestStatus) -> list[str]:
    if status is RequestStatus.WITHDRAWN:
        nothing = f"There is nothing to decide. {uncertain.said_of(loaded.request)}"
        return [f"{_withdrawn_by(loaded)} {nothing}"]
    said = {
        RequestStatus.PENDING: ["Nobody answered in time. The agent is told."],
        RequestStatus.RECALLABLE: [
            "It is held until then. Nothing has run yet.",
            *_if_paused(loaded),
        ],
        RequestStatus.REJECTED: [
            f"{uncertain.said_of(loaded.request)} The agent has the reason.",
            *_if_paused(loaded),
        ],
        RequestStatus.EXPIRED: ["Nobody answered in time. The agent is told."],
        RequestStatus.SUPERSEDED: ["There is nothing to decide here any more."],
        RequestStatus.AUTHORIZED: [],
    }
    return said[status]


def _withdrawn_by(loaded: Loaded) -> str:
    """Who withdrew it and why, by the log."""
    record = (
        LogRecord.objects.filter(
            kind="request.withdrawn", proposal=loaded.request.proposal_id
        )
        .order_by("-pk")
        .first()
    )
    code = record.data.get("code", "") if record else ""
    return WITHDRAWN_BY.get(code, "It was withdrawn.")


def _if_paused(loaded: Loaded) -> list[str]:
    if loaded.stopped is not StopMode.PAUSED:
        return []
    return ["Its run, its agent or its tool is paused: nothing more of it starts."]


def _is_kept(loaded: Loaded) -> bool:
    """Whether it does not run until its halted batch goes on."""
    row = loaded.execution
    open_ends = {ExecutionStatus.QUEUED, ExecutionStatus.FAILED}
    return row is not None and row.status in open_ends and loaded.halted


def _about_effect(loaded: Loaded) -> list[str]:
    execution, tool = loaded.execution, loaded.revision.tool
    if execution is None or tool is None:
        return []
    status, most = ExecutionStatus(execution.status), definition(tool).retry.attempts
    tried = execution.attempts
    if status is ExecutionStatus.QUEUED:
        coming = [f"{formatting.coming(execution, most)}."] if tried else []
        return coming + _if_paused(loaded)
    if status is ExecutionStatus.UNKNOWN:
        return ["It may or may not have happened. It is not tried again by itself."]
    if status is ExecutionStatus.CLAIMED:
        return list(_running(execution, most))
    if status is ExecutionStatus.FAILED and tried > 1:
        return [f"It was tried {tried} times."]
    if execution.code == BY_PERSON:
        return ["A person said so: the tool itself could not tell."]
    if execution.code == BY_LOOK_UP:
        return ["Its service said so when it was asked: the attempt could not tell."]
    return []


def _running(execution: Execution, most: int) -> Iterator[str]:
    yield f"{formatting.which(execution, most)}. It runs at most once."
    until = execution.lease_until
    if execution.code and until is not None:
        said = time_of_day(until)
        yield f"No clear answer yet. Its service is asked again at {said}."


def _vote(loaded: Loaded, decision: Decision) -> Vote:
    reason = REASONS.get(decision.reason_code, decision.reason_code)
    note = decision.reason
    return Vote(
        verdict=GIVEN[Verdict(decision.verdict)],
        who=_who(loaded, decision),
        at=decision.at,
        reason=f"{reason}: {note}" if reason and note else reason or note,
    )


def _who(loaded: Loaded, decision: Decision) -> str:
    """The reviewer's name, never to the people whose own run it is (as in the log)."""
    person = loaded.person
    concerned = person.public_id in loaded.request.proposal.barred
    if concerned and not permissions.roles_of(person) & permissions.NEVER_DECIDE:
        return HIDDEN_NAME
    return str(decision.reviewer)


def _result(execution: Execution | None) -> str:
    """The tool's answer as text: untrusted, to be printed as such."""
    if execution is None:
        return ""
    if execution.result_shown is not None:
        return describe.as_text(execution.result_shown)
    said = [execution.code, execution.detail]
    return ": ".join(part for part in said if part)


def _links(loaded: Loaded) -> list[Link]:
    links = []
    execution = loaded.execution
    unknown = execution is not None and execution.status == ExecutionStatus.UNKNOWN
    if execution is not None and unknown:
        settles = permissions.allowed(loaded.person, Permission.SETTLE_UNKNOWN)
        said = "Say what happened" if settles else "What is known of it"
        links.append(Link(said, reverse("reviews:unknown_one", args=[execution.pk])))
    if execution is not None and _is_kept(loaded):
        url = reverse("reviews:batch", args=[execution.batch_id])
        links.append(Link("Go on with the batch", url, testid="batch"))
    links += _undoing(loaded)
    if loaded.holding.by:
        links += _about_hold(loaded)
    links.append(Link("Back to the queue", reverse("reviews:queue")))
    return links


def _undoing(loaded: Loaded) -> Iterator[Link]:
    """The reversal's state, and where one can be proposed."""
    proposal, tool = loaded.request.proposal, loaded.revision.tool_id
    if proposal.source == REVERSAL:
        return
    found = undo.of_execution(
        loaded.person, loaded.execution, proposal, tool, loaded.now
    )
    if found.word:
        yield Link(found.word, found.url, testid="reversed-by")
    if found.offer:
        yield Link("Propose reversal…", found.offer, testid="reverse")


def _about_hold(loaded: Loaded) -> Iterator[Link]:
    hold, pk = loaded.holding, [loaded.request.pk]
    if hold.offered and not loaded.why_not:
        url = reverse("reviews:accept_hold", args=pk)
        yield Link("Take over", url, "C", post=True, testid="take-over")
    if not hold.asked and not loaded.why_not:
        url = reverse("reviews:ask_hold", args=pk)
        yield Link("Notify me", url, post=True, testid="notify")
    if holding.may_break(loaded.person, loaded.request):
        url = reverse("reviews:break_hold", args=pk)
        yield Link("Break hold…", url, testid="break")
