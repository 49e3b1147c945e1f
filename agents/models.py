"""Agents, their keys, the state they need to resume, and the webhook deliveries to
them."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from journal import ids
from policies.choices import Risk
from policies.documents import EVERY_TOOL
from reviews.models.base import person_key

from .choices import (
    ENDED_STATUSES,
    DeliveryStatus,
    SettingsStatus,
    TakenBy,
    ThreadResult,
    ThreadStatus,
)

MAX_URL_LENGTH = 2048


def new_endpoint_id() -> str:
    return ids.new("w")


def new_delivery_id() -> str:
    return ids.new("d")


class Agent(models.Model):
    """A registered program with an owner. Its row is read, never locked: a lock on it
    would serialise all proposals of the agent."""

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=128)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="agents"
    )
    # Names of tools, or `*`: every tool, also one that a later policy declares.
    tools = ArrayField(models.CharField(max_length=64), default=list)
    risk_ceiling = models.CharField(
        max_length=8, choices=[(r.value, r.value) for r in Risk], default=Risk.CRITICAL
    )
    unattended = models.BooleanField(default=False)
    # The most proposals within any 24 hours, over all tools; null: no limit.
    daily_proposals = models.PositiveIntegerField(null=True)
    # The most money that it may move within 24 hours, over all tools, as an amount for
    # each currency: {"USD": "500.00"}; null: no limit. See policies/budgets.py.
    daily_money = models.JSONField(null=True)
    # The owner's name for this version of program, prompts and model; may be empty.
    version = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.slug

    @property
    def has_every_tool(self) -> bool:
        return EVERY_TOOL in self.tools

    def may_propose(self, tool: str) -> bool:
        """Whether the agent may propose calls of this tool."""
        return self.has_every_tool or tool in self.tools


class SettingsChange(models.Model):
    """Settings that one administrator asks for an agent and another one confirms,
    because they let the agent do more. `before` are those that it had then, and
    `wanted` those that it gets, as columns of the agent; `digest` is of both."""

    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="changes", db_index=False
    )
    before = models.JSONField()
    wanted = models.JSONField()
    digest = models.CharField(max_length=80)
    reason = models.TextField()
    status = models.CharField(
        max_length=9, choices=[(s.value, s.value) for s in SettingsStatus]
    )
    asked_by = person_key(db_index=False)
    asked_at = models.DateTimeField()
    # The administrator who confirmed or refused it; else null.
    settled_by = person_key(null=True, db_index=False)
    settled_at = models.DateTimeField(null=True)
    refusal = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="settings_change_status",
                condition=Q(status__in=[s.value for s in SettingsStatus]),
            ),
            models.CheckConstraint(
                name="settings_change_settled_paired",
                condition=Q(
                    status="proposed", settled_by__isnull=True, settled_at__isnull=True
                )
                | Q(
                    status__in=["confirmed", "refused"],
                    settled_by__isnull=False,
                    settled_at__isnull=False,
                )
                | Q(
                    status__in=["withdrawn", "lapsed", "void"],
                    settled_by__isnull=True,
                    settled_at__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="settings_change_second_person",
                condition=Q(settled_by__isnull=True) | ~Q(settled_by=F("asked_by")),
            ),
            models.UniqueConstraint(
                fields=["agent"],
                name="settings_change_one_open",
                condition=Q(status="proposed"),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["agent", "-asked_at"], name="settings_change_of_agent"
            ),
        ]

    def __str__(self) -> str:
        return f"settings of {self.agent_id}"


class AgentKey(models.Model):
    """A credential of an agent: a prefix to find the row, and a hash of the secret."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="keys")
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=80)
    scopes = ArrayField(models.CharField(max_length=16), default=list)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix}…"


class Thread(models.Model):
    """One run of an agent, named by the agent's own id."""

    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="threads", db_index=False
    )
    name = models.CharField(max_length=128)
    status = models.CharField(
        max_length=8, choices=[(s.value, s.value) for s in ThreadStatus]
    )
    result = models.CharField(
        max_length=9, blank=True, choices=[(r.value, r.value) for r in ThreadResult]
    )
    # Encrypts the checkpoints' blobs; itself encrypted under the installation's key.
    # Erasing it makes the blobs unreadable.
    wrapped_key = models.BinaryField(null=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "name"], name="thread_name"),
            models.CheckConstraint(
                name="thread_status",
                condition=Q(status__in=[s.value for s in ThreadStatus]),
            ),
            models.CheckConstraint(
                name="thread_finish_paired",
                condition=Q(status="running", finished_at__isnull=True, result="")
                | Q(status="finished", finished_at__isnull=False) & ~Q(result=""),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["agent", "-started_at"], name="thread_newest"),
            models.Index(
                fields=["finished_at"],
                name="thread_sealed",
                condition=Q(status="finished", wrapped_key__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Checkpoint(models.Model):
    """One version of an agent's suspended state. People see all of it but the blob."""

    thread = models.ForeignKey(
        Thread, on_delete=models.PROTECT, related_name="checkpoints", db_index=False
    )
    number = models.PositiveIntegerField()
    proposal = models.CharField(max_length=40)
    summary = models.TextField(blank=True)  # redacted
    state = models.JSONField(default=dict)  # redacted
    blob = models.BinaryField(null=True)  # encrypted under the thread's key
    blob_digest = models.CharField(max_length=80, blank=True)
    blob_bytes = models.PositiveIntegerField(default=0)
    resume_at = models.CharField(max_length=128, blank=True)
    # The repair that made this version; empty when the agent sent it.
    repair = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["thread", "number"], name="checkpoint_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.thread_id}.{self.number}"


class IdempotencyKey(models.Model):
    """An idempotency key and the answer to its first call, kept for longer than any
    proposal can wait. `status` and `body` are null until the answer is stored.
    `refused_under` is set where the policy blocked the call: a digest of the policy and
    the permissions, or the rule that lacked something to read. Once these have changed,
    the same call replaces the answer."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, db_index=False)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=80)
    proposal = models.CharField(max_length=40, blank=True)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    refused_under = models.CharField(max_length=80, blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "key"], name="idempotency_once"),
            models.CheckConstraint(
                name="idempotency_refused",
                condition=Q(refused_under="") | Q(body__status="blocked"),
            ),
        ]

    def __str__(self) -> str:
        return self.key


class Endpoint(models.Model):
    """An address that receives webhooks about an agent's proposals, with its secrets.
    `by_proposal`: nobody registered it; a proposal's `callback_url` named it, and the
    row represents every callback address of that origin."""

    id = models.CharField(max_length=40, primary_key=True, default=new_endpoint_id)
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="endpoints")
    url = models.CharField(max_length=MAX_URL_LENGTH)
    by_proposal = models.BooleanField(default=False)
    secret = models.BinaryField()  # encrypted
    # Signs beside the new secret for a while, so that a renewal loses no delivery.
    former = models.BinaryField(null=True)
    former_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    off_at = models.DateTimeField(null=True)
    off_why = models.CharField(max_length=8, blank=True)  # "person" or "gone"
    # Set while the last attempt failed or was slow: the endpoint uses the slow lane.
    slow_since = models.DateTimeField(null=True)
    tried_at = models.DateTimeField(null=True)
    rest_until = models.DateTimeField(null=True)  # from its Retry-After

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "url"], name="endpoint_once"),
            models.CheckConstraint(
                name="endpoint_off_paired",
                condition=Q(off_at__isnull=True, off_why="")
                | Q(off_at__isnull=False) & ~Q(off_why=""),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class Callback(models.Model):
    """The `callback_url` of one proposal, which receives its webhooks beside the
    agent's registered endpoints."""

    proposal = models.CharField(max_length=40, primary_key=True)
    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT)
    url = models.CharField(max_length=MAX_URL_LENGTH)

    def __str__(self) -> str:
        return self.proposal


class Delivery(models.Model):
    """One webhook event for one endpoint. Its payload is fixed when it is created."""

    id = models.CharField(max_length=40, primary_key=True, default=new_delivery_id)
    event = models.CharField(max_length=40)  # the event's id, as the receiver sees it
    kind = models.CharField(max_length=32)
    proposal = models.CharField(max_length=40)
    thread = models.CharField(max_length=128)
    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.PROTECT, related_name="deliveries", db_index=False
    )
    url = models.CharField(max_length=MAX_URL_LENGTH)
    payload = models.JSONField()
    status = models.CharField(
        max_length=9,
        choices=[(s.value, s.value) for s in DeliveryStatus],
    )
    attempts = models.PositiveIntegerField(default=0)  # since the last start
    next_at = models.DateTimeField()
    give_up_at = models.DateTimeField()
    # The worker's lease; after this time another worker may take the delivery.
    busy_until = models.DateTimeField(null=True)
    last_answer = models.PositiveSmallIntegerField(null=True)
    last_error = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["event", "endpoint"], name="delivery_once"),
            models.CheckConstraint(
                name="delivery_status",
                condition=Q(status__in=[s.value for s in DeliveryStatus]),
            ),
            models.CheckConstraint(
                name="delivery_end_paired",
                condition=Q(status="waiting", ended_at__isnull=True)
                | Q(
                    status__in=[s.value for s in ENDED_STATUSES], ended_at__isnull=False
                ),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["endpoint", "next_at"],
                name="delivery_due",
                condition=Q(status="waiting"),
            ),
            models.Index(
                fields=["endpoint"],
                name="delivery_failed",
                condition=Q(status__in=["dead", "held"]),
            ),
            models.Index(fields=["status", "-ended_at"], name="delivery_ended"),
            models.Index(fields=["proposal"], name="delivery_by_proposal"),
            models.Index(  # few rows: deliveries in flight
                fields=["busy_until"],
                name="delivery_busy",
                condition=Q(busy_until__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class DeliveryAttempt(models.Model):
    """One finished attempt of a delivery. Written once, when the attempt is over."""

    delivery = models.ForeignKey(
        Delivery, on_delete=models.PROTECT, related_name="tries"
    )
    at = models.DateTimeField()
    milliseconds = models.PositiveIntegerField()
    answer = models.PositiveSmallIntegerField(null=True)  # HTTP status; null without
    error = models.CharField(max_length=200, blank=True)  # our words, not the answer's

    def __str__(self) -> str:
        return f"{self.delivery_id} at {self.at}"


class Acknowledgement(models.Model):
    """A record that an agent has an outcome, which is therefore not offered again."""

    outcome = models.CharField(max_length=40, primary_key=True)
    proposal = models.CharField(max_length=40)
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")
    by = models.CharField(max_length=7, choices=[(b.value, b.value) for b in TakenBy])
    at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["proposal"], name="acknowledged_by_proposal")
        ]

    def __str__(self) -> str:
        return self.outcome
