"""The gate's rows. Revisions, request versions and decisions never change; a status
changes only through `transitions`; triggers and checks back both (gate.md 3)."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from journal import ids
from policies import active
from policies.choices import Risk, Tier
from policies.models import PolicyVersion, Queue, Tool

from .choices import (
    SETTLED,
    ExecutionStatus,
    GrantStatus,
    RequestStatus,
    Scope,
    StopMode,
    Verdict,
)


def new_proposal_id() -> str:
    return ids.new("p")


def new_request_id() -> str:
    return ids.new("r")


def new_grant_id() -> str:
    return ids.new("g")


def new_execution_id() -> str:
    return ids.new("x")


def pairs(enum: type[Any]) -> list[tuple[str, str]]:
    return [(item.value, item.value) for item in enum]


def one_of(name: str, field: str, enum: type[Any]) -> models.CheckConstraint:
    """A check that a column holds one of the words, for writers that skip Django."""
    values = [item.value for item in enum]
    return models.CheckConstraint(name=name, condition=Q(**{f"{field}__in": values}))


class Proposal(models.Model):
    """What an agent wants done. The gate knows the agent and its thread as text."""

    id = models.CharField(max_length=40, primary_key=True, default=new_proposal_id)
    agent = models.CharField(max_length=64)
    thread = models.CharField(max_length=128)
    tool_name = models.CharField(max_length=64)
    revision = models.PositiveIntegerField(default=1)
    # Public ids of people who may not decide: the owner and the delegation chain.
    barred = ArrayField(models.CharField(max_length=64), default=list)
    on_behalf_of = models.JSONField(default=dict)
    parent = models.CharField(max_length=40, blank=True)
    supersedes = models.CharField(max_length=40, blank=True)
    group = models.CharField(max_length=128, blank=True)
    priority = models.CharField(max_length=8, default="normal")
    source = models.CharField(max_length=64, blank=True)
    # The rule that blocked it; empty unless the answer was `blocked`.
    blocked_by = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["agent", "-created_at"], name="proposal_by_agent"),
            models.Index(
                fields=["agent", "thread", "created_at"], name="proposal_by_thread"
            ),
            models.Index(fields=["-created_at"], name="proposal_newest"),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def current(self) -> Revision:
        """The newest revision (one query unless prefetched)."""
        return self.revisions.get(number=self.revision)


class Revision(models.Model):
    """An immutable version of a proposal: canonical bytes and their hash.

    Texts are stored redacted. `facts` are what the policy saw, for the re-check
    before execution.
    """

    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, related_name="revisions"
    )
    number = models.PositiveIntegerField()
    tool = models.ForeignKey(Tool, null=True, on_delete=models.PROTECT)
    canonical = models.BinaryField()
    action_hash = models.CharField(max_length=80)
    author_kind = models.CharField(max_length=16)
    author_id = models.CharField(max_length=64)
    rationale = models.TextField(blank=True)
    expected_outcome = models.TextField(blank=True)
    reversal = models.TextField(blank=True)
    alternatives = models.JSONField(default=list)
    evidence = models.JSONField(default=list)
    uncertain = models.FloatField(default=0)
    reading = models.JSONField(default=dict)
    facts = models.JSONField(default=dict)
    evaluation = models.JSONField(default=dict)
    tier = models.CharField(max_length=8, choices=pairs(Tier))
    risk = models.CharField(max_length=8, choices=pairs(Risk))
    amount_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)
    # Null only when it was blocked because no policy was active.
    policy = models.ForeignKey(PolicyVersion, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["proposal", "number"], name="revision_number"
            ),
            one_of("revision_tier", "tier", Tier),
            one_of("revision_risk", "risk", Risk),
        ]

    def __str__(self) -> str:
        return f"{self.proposal_id}.{self.number}"

    @property
    def policy_number(self) -> int | None:
        """The policy version it was judged by, for the log."""
        return active.number_of(self.policy_id) if self.policy_id else None

    @property
    def known_tool(self) -> Tool:
        """The tool of a revision that was not blocked for want of one."""
        if self.tool is None:
            raise LookupError(f"{self} names a tool that nobody registered.")
        return self.tool

    @property
    def args(self) -> dict[str, Any]:
        """The arguments, read from the canonical bytes and nowhere else."""
        args: dict[str, Any] = json.loads(bytes(self.canonical))["args"]
        return args

    @property
    def preconditions(self) -> dict[str, Any]:
        """What the agent said must hold, from the canonical bytes."""
        found: dict[str, Any] = json.loads(bytes(self.canonical))["preconditions"]
        return found


class ApprovalRequest(models.Model):
    """The question put to people; one per proposal, in numbered versions."""

    id = models.CharField(max_length=40, primary_key=True, default=new_request_id)
    proposal = models.OneToOneField(
        Proposal, on_delete=models.PROTECT, related_name="request"
    )
    status = models.CharField(max_length=10, choices=pairs(RequestStatus))
    version = models.PositiveIntegerField(default=1)
    action_hash = models.CharField(max_length=80)
    tier = models.CharField(max_length=8, choices=pairs(Tier))
    risk = models.CharField(max_length=8, choices=pairs(Risk))
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT)
    opened_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    expires_at_most = models.DateTimeField()  # no extension goes beyond
    recall_until = models.DateTimeField(null=True)
    reminded_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    _sealed: RequestVersion | None = None

    class Meta:
        constraints: ClassVar = [
            one_of("request_status", "status", RequestStatus),
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
                fields=["queue", "risk", "expires_at"],
                name="request_waiting",
                condition=Q(status="pending"),
            ),
            models.Index(
                fields=["expires_at"],
                name="request_due",
                condition=Q(status="pending"),
            ),
            models.Index(
                fields=["recall_until"],
                name="request_recallable",
                condition=Q(status="recallable"),
            ),
            models.Index(fields=["-settled_at"], name="request_settled"),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def sealed(self) -> RequestVersion:
        """The version people are asked about now, with its revision and tool. None of
        these ever changes, so there is one query for each number."""
        if self._sealed is None or self._sealed.number != self.version:
            versions = self.versions.select_related("revision__tool")
            self._sealed = versions.get(number=self.version)
        return self._sealed


class RequestVersion(models.Model):
    """A sealed snapshot of what is asked: revision, tier, open steps, deadline."""

    request = models.ForeignKey(
        ApprovalRequest, on_delete=models.PROTECT, related_name="versions"
    )
    number = models.PositiveIntegerField()
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT)
    cause = models.CharField(max_length=16)  # opened, revised, modified, escalated, …
    tier = models.CharField(max_length=8, choices=pairs(Tier))
    risk = models.CharField(max_length=8, choices=pairs(Risk))
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT)
    steps = models.JSONField()  # [{"role": …, "required": n}], the steps still open
    # People who filled a step of an earlier version: counted, and may not vote again.
    carried = ArrayField(models.CharField(max_length=40), default=list)
    # People who passed it up: they may vote again only after a return.
    escalated_by = ArrayField(models.CharField(max_length=40), default=list)
    requires_reason = models.BooleanField(default=False)
    step_up = models.BooleanField(default=False)
    recall_seconds = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField()
    policy = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT)
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


class Decision(models.Model):
    """One verdict by one person on one version, with the hash they saw."""

    request = models.ForeignKey(
        ApprovalRequest, on_delete=models.PROTECT, related_name="decisions"
    )
    version = models.PositiveIntegerField()
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="decisions"
    )
    verdict = models.CharField(max_length=8, choices=pairs(Verdict))
    # Whether it fills a place in a step; `step` is that step's index.
    counts = models.BooleanField(default=False)
    step = models.PositiveSmallIntegerField(null=True)
    reason_code = models.CharField(max_length=16, blank=True)
    reason = models.TextField(blank=True)
    action_hash = models.CharField(max_length=80)
    authority = models.JSONField()  # {"role", "queue", "step_up"}
    at = models.DateTimeField()

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
            one_of("decision_verdict", "verdict", Verdict),
        ]
        indexes: ClassVar = [
            models.Index(fields=["reviewer", "-at"], name="decision_by_reviewer")
        ]

    def __str__(self) -> str:
        return f"{self.verdict} on {self.request_id} v{self.version}"


class Grant(models.Model):
    """One-use permission for exactly one action hash."""

    id = models.CharField(max_length=40, primary_key=True, default=new_grant_id)
    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, related_name="grants"
    )
    revision = models.OneToOneField(
        Revision, on_delete=models.PROTECT, related_name="grant"
    )
    action_hash = models.CharField(max_length=80)
    status = models.CharField(max_length=8, choices=pairs(GrantStatus))
    token_hash = models.CharField(max_length=80)
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()  # also the end of the execution window

    class Meta:
        constraints: ClassVar = [one_of("grant_status", "status", GrantStatus)]
        indexes: ClassVar = [
            models.Index(
                fields=["expires_at"], name="grant_live", condition=Q(status="live")
            )
        ]

    def __str__(self) -> str:
        return self.id


class Execution(models.Model):
    """The ledger of attempts under one grant."""

    id = models.CharField(max_length=40, primary_key=True, default=new_execution_id)
    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, related_name="executions"
    )
    grant = models.OneToOneField(
        Grant, on_delete=models.PROTECT, related_name="execution"
    )
    status = models.CharField(max_length=9, choices=pairs(ExecutionStatus))
    by_agent = models.BooleanField(default=False)  # the agent performs it itself
    idempotency_key = models.CharField(max_length=80, unique=True)
    fence = models.PositiveIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    due_at = models.DateTimeField()  # not before; moved on by the back-off of a retry
    result = models.BinaryField(null=True)  # encrypted
    result_shown = models.JSONField(null=True)  # redacted
    result_digest = models.CharField(max_length=80, blank=True)
    code = models.CharField(max_length=64, blank=True)  # why it failed or was refused
    detail = models.TextField(blank=True)
    queued_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            one_of("execution_status", "status", ExecutionStatus),
            models.CheckConstraint(
                name="execution_lease_paired",
                condition=Q(status="claimed", lease_until__isnull=False)
                | ~Q(status="claimed") & Q(lease_until__isnull=True),
            ),
            models.CheckConstraint(
                name="execution_finish_paired",
                condition=Q(
                    status__in=["succeeded", "failed", "refused"],
                    finished_at__isnull=False,
                )
                | Q(
                    status__in=["queued", "claimed", "unknown"],
                    finished_at__isnull=True,
                ),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["due_at"],
                name="execution_queued",
                condition=Q(status="queued"),
            ),
            models.Index(
                fields=["lease_until"],
                name="execution_leased",
                condition=Q(status="claimed"),
            ),
            models.Index(
                fields=["queued_at"],
                name="execution_unknown",
                condition=Q(status="unknown"),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class Stop(models.Model):
    """A switch that is off. Lifted rows stay as history."""

    scope = models.CharField(max_length=10, choices=pairs(Scope))
    key = models.CharField(max_length=200, blank=True)
    mode = models.CharField(max_length=7, choices=pairs(StopMode))
    reason = models.TextField(blank=True)
    by = models.CharField(max_length=40)
    at = models.DateTimeField()
    lift_asked_by = models.CharField(max_length=40, blank=True)
    lifted_by = models.CharField(max_length=40, blank=True)
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            one_of("stop_scope", "scope", Scope),
            one_of("stop_mode", "mode", StopMode),
            models.UniqueConstraint(
                fields=["scope", "key"],
                condition=Q(lifted_at__isnull=True),
                name="stop_one_in_force",
            ),
            models.CheckConstraint(
                name="stop_lift_paired",
                condition=Q(lifted_at__isnull=True, lifted_by="")
                | Q(lifted_at__isnull=False) & ~Q(lifted_by=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.mode} {self.scope} {self.key}".rstrip()


class PersonalToken(models.Model):
    """A person's API token, stored hashed. It never suffices for a step-up."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens"
    )
    name = models.CharField(max_length=64)
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=80)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix}…"
