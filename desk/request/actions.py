"""What can be done about a request that this person cannot decide: links and buttons
of its outcome, recall and retry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse

from assurance import practice
from policies.choices import Role
from reviews import permissions
from reviews.choices import (
    REVERSAL_SOURCE,
    DefectKind,
    ExecutionStatus,
    RealismFlag,
)
from reviews.grants import approvers
from reviews.permissions import Permission

from ..components import holding, retry, undo
from .load import LoadedRequest

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


def build_links(loaded: LoadedRequest) -> list[OutcomeLink]:
    links = []
    execution = loaded.execution
    unknown = execution is not None and execution.status == ExecutionStatus.UNKNOWN
    if execution is not None and unknown:
        settles = permissions.has_permission(loaded.person, Permission.SETTLE_UNKNOWN)
        said = "Record what happened" if settles else "See what is known"
        links.append(
            OutcomeLink(said, reverse("reviews:unknown_one", args=[execution.pk]))
        )
    if execution is not None and loaded.is_batch_halted:
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
