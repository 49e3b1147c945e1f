"""Approval requests, their sealed versions, decisions and page evidence, and the
full-text index of proposals."""

from __future__ import annotations

import functools
import operator
from datetime import datetime, timedelta
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex, GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Q

from journal.prepared_queries import Parameter, PreparedQuery
from policies.choices import Risk, Tier
from policies.models import PolicyVersion, Queue
from reviews.choices import OPEN, SETTLED, RequestStatus, Verdict

from .base import (
    build_choice_check,
    build_choices,
    new_request_id,
    person_key,
    removed_after,
)
from .proposals import Proposal, Revision, StateReading

# The status is one of OPEN. The indexes are of one status each: each part of an OR uses
# its own, while `status IN (…)` would read the whole table.
IS_OPEN = functools.reduce(operator.or_, (Q(status=status) for status in OPEN))


class RealRequests(models.Manager["ApprovalRequest"]):
    """The requests of agents' proposals, without canaries."""

    def get_queryset(self) -> models.QuerySet[ApprovalRequest]:
        return super().get_queryset().filter(canary=False)

    def get_with_proposal(self, pk: str) -> ApprovalRequest:
        """The request with its proposal and queue, by a prepared statement. Raises
        ObjectDoesNotExist."""
        return _WITH_PROPOSAL.fetch_one(pk=pk)


class ShownRequests(models.Manager["ApprovalRequest"]):
    """The requests of agents and the canaries. Each of these concerns one person."""

    def get_with_proposal(self, pk: str) -> ApprovalRequest:
        return _SHOWN_WITH_PROPOSAL.fetch_one(pk=pk)


class ApprovalRequest(models.Model):
    """The question put to people: one per proposal, in numbered versions."""

    id = models.CharField(max_length=40, primary_key=True, default=new_request_id)
    proposal = models.OneToOneField(
        Proposal, on_delete=models.PROTECT, related_name="request"
    )
    status = models.CharField(max_length=10, choices=build_choices(RequestStatus))
    version = models.PositiveIntegerField(default=1)
    action_hash = models.CharField(max_length=80)
    tier = models.CharField(max_length=8, choices=build_choices(Tier))
    risk = models.CharField(max_length=8, choices=build_choices(Risk))
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, db_index=False)
    opened_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    expires_at_most = models.DateTimeField()  # no extension goes beyond this
    recall_until = models.DateTimeField(null=True)
    half_time_at = models.DateTimeField(null=True)  # of the reminder at half time
    reminded_at = models.DateTimeField(null=True)  # of the reminder near the deadline
    # For incidents: up to when the stored deadline has been moved, and for how long in
    # total its clock has stood still. Only `reviews.stops.incidents` writes them.
    frozen_through = models.DateTimeField(null=True)
    frozen_for = models.DurationField(default=timedelta, db_default=timedelta(0))
    # The supervisor or specialist it is assigned to; others may still decide it.
    assignee = person_key("assigned", null=True, db_index=False)
    # Since when a reviewer has waited for the agent to revise it. It says nothing about
    # who may decide: others may, and the deadline stands.
    returned_at = models.DateTimeField(null=True)
    message_count = models.PositiveSmallIntegerField(default=0, db_default=0)
    settled_at = models.DateTimeField(null=True)
    # How many later calls proposed the same action in the run while this one was open.
    joined = models.PositiveIntegerField(default=0, db_default=0)
    # Copies of values of proposal, revision and sealed version, so that every list is
    # served by one index. Only `requests.versions.build_list_columns` computes them.
    agent = models.CharField(max_length=64)
    tool_name = models.CharField(max_length=64)
    repeat_key = models.UUIDField()  # of agent, tool and canonical arguments
    rank = models.PositiveSmallIntegerField()  # risk band, then the agent's priority
    # What it moves, by which lists sort; no currency where lists show no amount.
    currency = models.CharField(max_length=3, blank=True, db_default="")
    amount_minor = models.BigIntegerField(null=True)
    supervisors_only = models.BooleanField()  # no open step that a reviewer could fill
    barred = ArrayField(models.CharField(max_length=64), default=list)
    # People who may not decide this version: they voted on it, cast an earlier vote
    # that counts, escalated it, or are kept out of the proposal.
    closed_to = ArrayField(models.CharField(max_length=40), default=list)
    # Whether its proposal is a canary, and the public id of the only person who sees
    # and decides it; empty for the requests of agents.
    canary = models.BooleanField(default=False, db_default=False)
    canary_for = models.CharField(max_length=40, blank=True, db_default="")
    _sealed: RequestVersion | None = None
    # The round of the message that is written with a transition; not a column.
    message_round: int = 0

    objects = RealRequests()
    with_canaries: ClassVar[ShownRequests] = ShownRequests()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="request_canary_paired",
                condition=Q(canary=False, canary_for="")
                | Q(canary=True) & ~Q(canary_for=""),
            ),
            # A canary is never approved, not even for the length of a recall window.
            models.CheckConstraint(
                name="request_canary_ends_withdrawn",
                condition=Q(canary=False) | Q(status__in=["pending", "withdrawn"]),
            ),
            build_choice_check("request_status", "status", RequestStatus),
            models.CheckConstraint(
                name="request_settled_paired",
                condition=Q(status__in=[s.value for s in SETTLED])
                & Q(settled_at__isnull=False)
                | ~Q(status__in=[s.value for s in SETTLED])
                & Q(settled_at__isnull=True),
            ),
            models.CheckConstraint(
                name="request_recall_paired",
                condition=Q(status="recallable", recall_until__isnull=False)
                | ~Q(status="recallable") & Q(recall_until__isnull=True),
            ),
            models.CheckConstraint(
                name="request_deadline_bounded",
                condition=Q(expires_at__lte=F("expires_at_most")),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["queue", "supervisors_only", "rank", "expires_at", "id"],
                name="request_waiting",
                condition=Q(status="pending"),
            ),
            models.Index(
                fields=["queue", "supervisors_only", "opened_at", "id"],
                name="request_newest",
                condition=Q(status="pending"),
            ),
            models.Index(
                fields=["queue", "supervisors_only", "currency", "amount_minor", "id"],
                name="request_amount",
                condition=Q(status="pending"),
            ),
            models.Index(
                fields=["agent", "queue"],
                name="request_by_agent",
                condition=Q(status="pending"),
            ),
            models.Index(
                fields=["repeat_key"],
                name="request_repeats",
                condition=Q(status="pending"),
            ),
            models.Index(
                fields=["repeat_key"],
                name="request_rejected_repeats",
                condition=Q(status="rejected"),
            ),
            models.Index(
                fields=["queue", "expires_at", "id"],
                name="request_escalated",
                condition=Q(status="pending", tier="escalate"),
            ),
            models.Index(
                fields=["assignee"],
                name="request_assigned",
                condition=Q(status="pending", assignee__isnull=False),
            ),
            GinIndex(
                fields=["closed_to"],
                name="request_closed_to",
                condition=Q(status="pending") & ~Q(closed_to=[]),
            ),
            models.Index(
                fields=["expires_at"],
                name="request_due",
                condition=Q(status="pending"),
            ),
            models.Index(
                fields=["frozen_through"],
                name="request_frozen",
                condition=Q(
                    status__in=[s.value for s in OPEN], frozen_through__isnull=False
                ),
            ),
            models.Index(
                fields=["recall_until"],
                name="request_recallable",
                condition=Q(status="recallable"),
            ),
            models.Index(
                fields=["-settled_at"],
                name="request_settled",
                condition=Q(settled_at__isnull=False),
            ),
            models.Index(
                fields=["queue", "-settled_at"],
                name="request_expired",
                condition=Q(status="expired"),
            ),
            models.Index(
                fields=["proposal"],
                name="request_open_canary",
                condition=Q(canary=True, status="pending"),
            ),
            # With `request_settled`, what was open on a day of the past.
            BrinIndex(fields=["opened_at"], name="request_day"),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def with_agent_since(self) -> datetime | None:
        """When it was sent back for a revision that it still waits for."""
        return self.returned_at if self.status == RequestStatus.PENDING else None

    @property
    def sealed(self) -> RequestVersion:
        """The current sealed version, with its revision and tool. These rows never
        change, so each version number takes one query."""
        if self._sealed is None or self._sealed.number != self.version:
            self._sealed = _load_version(self)
        return self._sealed

    @sealed.setter
    def sealed(self, version: RequestVersion) -> None:
        self._sealed = version


class RequestVersion(models.Model):
    """An immutable record of what is asked: revision, tier, open steps, deadline."""

    request = models.ForeignKey(
        ApprovalRequest,
        on_delete=models.PROTECT,
        related_name="versions",
        db_index=False,
    )
    number = models.PositiveIntegerField()
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, db_index=False)
    cause = models.CharField(max_length=16)  # opened, revised, modified, escalated, …
    tier = models.CharField(max_length=8, choices=build_choices(Tier))
    risk = models.CharField(max_length=8, choices=build_choices(Risk))
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, db_index=False)
    steps = models.JSONField()  # [{"role": …, "required": n}], the steps still open
    # People who filled a step of an earlier version: it counts, so no second vote.
    carried = ArrayField(models.CharField(max_length=40), default=list)
    # People who escalated it: they may vote again only after a return.
    escalated_by = ArrayField(models.CharField(max_length=40), default=list)
    # People whose edit needs another person, so they do not decide what it made.
    edited_by = ArrayField(models.CharField(max_length=40), default=list, db_default=[])
    requires_reason = models.BooleanField(default=False)
    step_up = models.BooleanField(default=False)
    recall_seconds = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField()
    policy = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, db_index=False)
    rules = models.JSONField(default=list)
    seal = models.CharField(max_length=80)  # digest of everything above
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["request", "number"], name="request_version_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.request_id} v{self.number}"


_WITH_PROPOSAL = PreparedQuery(
    lambda: ApprovalRequest.objects.select_related("proposal", "queue").filter(
        pk=Parameter("pk")
    )
)
_SHOWN_WITH_PROPOSAL = PreparedQuery(
    lambda: ApprovalRequest.with_canaries.select_related("proposal", "queue").filter(
        pk=Parameter("pk")
    )
)
_VERSION = PreparedQuery(
    lambda: RequestVersion.objects.select_related("revision__tool").filter(
        request_id=Parameter("request"), number=Parameter("number")
    )
)


def _load_version(request: ApprovalRequest) -> RequestVersion:
    version = _VERSION.fetch_one(request=request.pk, number=request.version)
    version.request = request
    return version


class Decision(models.Model):
    """One person's verdict on one version, with the action hash they saw."""

    request = models.ForeignKey(
        ApprovalRequest,
        on_delete=models.PROTECT,
        related_name="decisions",
        db_index=False,
    )
    version = models.PositiveIntegerField()
    reviewer = person_key("decisions", db_index=False)
    verdict = models.CharField(max_length=8, choices=build_choices(Verdict))
    # Whether it counts towards a step; `step` is the index of that step.
    counts = models.BooleanField(default=False)
    step = models.PositiveSmallIntegerField(null=True)
    reason_code = models.CharField(max_length=16, blank=True)
    reason = models.TextField(blank=True)
    # What an approval requires of its execution (`grants.GrantConditions`), or null.
    conditions = models.JSONField(null=True)
    action_hash = models.CharField(max_length=80)
    authority = models.JSONField()  # {"role", "queue", "step_up", "batch"}
    # Further facts: fast, check_missed, narrow, batch, hold_broken, …
    flags = ArrayField(models.CharField(max_length=16), default=list)
    took_ms = models.PositiveIntegerField(null=True)  # since the page was rendered
    # The attention check and its answers: {"question", "answers", "right"}.
    check_asked = models.JSONField(default=dict)
    # The reading shown on the page; null for the revision's own.
    reading = models.ForeignKey(
        StateReading, null=True, on_delete=models.PROTECT, db_index=False
    )
    at = models.DateTimeField()
    # A MAC of the vote (grants.approvers.seal_vote): no row without it counts.
    seal = models.CharField(max_length=80, blank=True, db_default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["request", "version", "reviewer"], name="decision_once"
            ),
            models.CheckConstraint(
                name="decision_step_paired",
                condition=Q(counts=True, step__isnull=False)
                | Q(counts=False, step__isnull=True),
            ),
            build_choice_check("decision_verdict", "verdict", Verdict),
        ]
        indexes: ClassVar = [
            models.Index(fields=["reviewer", "-at"], name="decision_by_reviewer"),
            models.Index(
                fields=["reason_code", "-at"],
                name="decision_by_reason",
                condition=~Q(reason_code=""),
            ),
            # Rows are never updated, so each day's are side by side.
            BrinIndex(fields=["at"], name="decision_day"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} on {self.request_id} v{self.version}"


class Snapshot(models.Model):
    """Page evidence: the page the decider saw, and the data it was rendered from."""

    decision = models.OneToOneField(
        Decision,
        on_delete=models.PROTECT,
        primary_key=True,
        related_name="snapshot",
    )
    html = models.BinaryField()  # zlib
    inputs = models.JSONField()
    template_version = models.CharField(max_length=80)
    digest = models.CharField(max_length=80)  # of the page before compression
    removed_after = removed_after()

    def __str__(self) -> str:
        return f"seen for {self.decision_id}"


class SearchEntry(models.Model):
    """The indexed words of one revision. They come from the effect sentence, tool, run,
    rules, and the policy's keys and amounts; redacted and sensitive values are left
    out. The entry is written after the revision and can be rebuilt."""

    revision = models.OneToOneField(
        Revision,
        on_delete=models.PROTECT,
        related_name="search_entry",
        primary_key=True,
    )
    words = SearchVectorField()

    class Meta:
        indexes: ClassVar = [GinIndex(fields=["words"], name="search_words")]

    def __str__(self) -> str:
        return f"words of {self.revision_id}"
