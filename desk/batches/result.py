"""The page of a decided batch: the verdict with its page evidence, the state of every
item, and what can still be done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from django.urls import reverse

from policies.money import format_money
from reviews.batches import similarity
from reviews.batches.membership import BatchMember
from reviews.choices import (
    EXECUTION_SPECS,
    IN_FLIGHT,
    VERDICT_SPECS,
    ExecutionStatus,
    RequestStatus,
    Verdict,
)
from reviews.models import Decision, Execution
from reviews.presenters import current
from reviews.presenters.common import Subject
from reviews.presenters.shapes import SentencePart

from ..components import snapshots, states
from ..components.states import StateLabel
from . import columns, links
from .links import build_batch_title
from .load import LoadedBatch
from .table import build_subject, compute_total_and_largest, find_amount, find_reading


@dataclass(frozen=True, slots=True)
class BatchVerdict:
    word: str
    as_seen_url: str  # empty when there is none, or the person may not open it


@dataclass(frozen=True, slots=True)
class BatchItemResult:
    id: str
    url: str
    label: str
    amount: str
    state: StateLabel
    note: str
    facts: tuple[str, ...]  # from the reader and the tool's result, by heading


@dataclass(frozen=True)
class BatchResultPage:
    loaded: LoadedBatch

    @property
    def id(self) -> str:
        return self.loaded.batch.pk

    @property
    def halted(self) -> bool:
        return self.loaded.batch.halted_at is not None

    @cached_property
    def given(self) -> BatchVerdict | None:
        """The verdict, in two queries; None if nobody decided the batch."""
        votes = Decision.objects.filter(
            request__in=[member.id for member in self.loaded.members],
            authority__batch=self.id,
        )
        vote = votes.order_by("pk").first()
        if vote is None:
            return None
        openable = snapshots.select_openable_decisions(self.loaded.person)
        opens = vote.authority.get("view") and openable.filter(pk=vote.pk).exists()
        url = snapshots.build_snapshot_url(vote) if opens else ""
        return BatchVerdict(VERDICT_SPECS[Verdict(vote.verdict)].label, url)

    @property
    def title(self) -> tuple[SentencePart, ...]:
        members, definition = self.loaded.members, self.loaded.definition
        subjects = map(_build_member_subject, members)
        return build_batch_title(
            definition,
            len(members),
            *compute_total_and_largest(map(find_amount, members)),
            links.sum_costs(
                definition, (subject.facts.get("before") for subject in subjects)
            ),
        )

    @cached_property
    def headings(self) -> list[tuple[int, str]]:
        """The listed facts that some item has: position and heading."""
        definition = self.loaded.definition
        labels = (
            columns.format_policy_label(definition, name)
            for name in definition.review.columns
        )
        return [
            (place, heading)
            for place, heading in enumerate(
                [*labels, *definition.review.result.values()]
            )
            if any(result.facts[place] for result in self.results)
        ]

    @property
    def has_amounts(self) -> bool:
        return any(result.amount for result in self.results)

    @property
    def has_notes(self) -> bool:
        return any(result.note for result in self.results)

    @property
    def rows(self) -> list[tuple[BatchItemResult, list[tuple[str, str]]]]:
        """Each item with its facts as pairs of heading and text."""
        return [
            (
                result,
                [(heading, result.facts[place]) for place, heading in self.headings],
            )
            for result in self.results
        ]

    @cached_property
    def results(self) -> list[BatchItemResult]:
        return [_build_result(self.loaded, member) for member in self.loaded.members]

    @cached_property
    def figures(self) -> list[tuple[str, int]]:
        """The number of items by state: `48 completed, 1 failed`."""
        keys = [result.state.key for result in self.results]
        counts = Counter(STATE_WORDS.get(key, key) for key in keys)
        return list(counts.items())

    @property
    def recall(self) -> int:
        """The number of items that a recall would still take back."""
        if self.loaded.why_not_admitted:
            return 0
        return sum(
            member.request.status == RequestStatus.RECALLABLE
            and member.request.recall_until is not None
            and member.request.recall_until > self.loaded.now
            for member in self.loaded.members
        )

    @property
    def recall_until(self) -> datetime | None:
        times = [member.request.recall_until for member in self.loaded.members]
        return max((at for at in times if at), default=None)

    @property
    def recall_left(self) -> timedelta | None:
        until = self.recall_until
        return until - self.loaded.now if until else None

    @property
    def failed(self) -> int:
        """The number of failed items that can still be tried again."""
        if self.loaded.why_not_admitted:
            return 0
        return sum(
            execution.status == ExecutionStatus.FAILED
            and execution.grant.expires_at > self.loaded.now
            for execution in self.loaded.executions.values()
        )

    @property
    def waiting(self) -> int:
        """The number of items that wait behind a failure."""
        if not self.halted or self.loaded.why_not_admitted:
            return 0
        executions = self.loaded.executions.values()
        return sum(
            execution.status == ExecutionStatus.QUEUED for execution in executions
        )

    @property
    def over(self) -> bool:
        """Whether no item changes any more unless a person acts."""
        moving = {EXECUTION_SPECS[status].key for status in IN_FLIGHT}
        moving |= {"recallable", "authorized"}
        rests = not any(result.state.key in moving for result in self.results)
        return rests and not self.loaded.waits

    @property
    def etag(self) -> str:
        parts = [
            f"{result.id}{result.state.key}{result.state.word}"
            for result in self.results
        ]
        state = "|".join([*parts, str(self.halted), str(self.recall), str(self.failed)])
        digest = similarity.compute_list_digest([{"said": state}])
        return digest.removeprefix("sha256:")[:16]


def _build_result(loaded: LoadedBatch, member: BatchMember) -> BatchItemResult:
    execution = loaded.executions.get(member.request.proposal_id)
    queued = execution is not None and execution.status == ExecutionStatus.QUEUED
    if member.item.left_at is not None:
        word = "Approval undone. Nothing was executed."
        state = StateLabel("recalled", word, icon="back")
    elif queued and loaded.batch.halted_at is not None:
        state = StateLabel("behind", "Not run", icon="wait")
    else:
        state = states.build_request_state(
            member.request,
            execution,
            loaded.tally(member),
            cause=member.version.cause,
            now=loaded.now,
        )
    amount, subject = find_amount(member), _build_member_subject(member)
    return BatchItemResult(
        id=member.id,
        url=reverse("reviews:request_detail", args=[member.id]),
        label=_format_label(member, subject),
        amount=format_money(amount) if amount else "",
        state=state,
        note=_format_failure_note(execution),
        facts=_list_facts(subject, execution),
    )


def _build_member_subject(member: BatchMember) -> Subject:
    return build_subject(
        member.version.revision, member.definition, find_reading(member)
    )


def _list_facts(subject: Subject, execution: Execution | None) -> tuple[str, ...]:
    """List the reader's facts and the fields of the tool's result that the policy
    names: untrusted text, to be printed as such."""
    review = subject.definition.review
    shown = execution.result_shown if execution else None
    result = shown if isinstance(shown, Mapping) else {}
    return (
        *(current.format_fact(subject, name) for name in review.columns),
        *(str(result.get(name) or "") for name in review.result),
    )


def _format_label(member: BatchMember, subject: Subject) -> str:
    """Format what tells an item from the others: its first argument that may differ."""
    batch = member.definition.batchable
    names = batch.varying if batch else []
    for leaf in subject.leaves:
        if leaf.name in names:
            return subject.cell(leaf).text
    return member.id


def _format_failure_note(execution: Execution | None) -> str:
    """The tool's message about a failure: untrusted text."""
    if execution is None or execution.status == ExecutionStatus.SUCCEEDED:
        return ""
    return ": ".join(part for part in (execution.code, execution.detail) if part)


STATE_WORDS = {
    "executed": "completed",
    "behind": "not run",
    "recallable": "approved",
    "queued": "approved",
    "authorized": "approved",
    "recalled": "undone",
    "waiting": "pending",
    "stuck": "without votes",
    "unknown": "with an unknown result",
}
