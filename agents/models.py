"""Who may knock, and what they left behind so that they can go on later."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from policies.choices import Risk

from .choices import ThreadResult, ThreadStatus


class Agent(models.Model):
    """A registered program with an owner. Read, never locked."""

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=128)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="agents"
    )
    tools = ArrayField(models.CharField(max_length=64), default=list)
    risk_ceiling = models.CharField(
        max_length=8, choices=[(r.value, r.value) for r in Risk], default=Risk.CRITICAL
    )
    unattended = models.BooleanField(default=False)
    # Of its program, prompts and model, as its owner calls it; empty when never told.
    version = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.slug


class AgentKey(models.Model):
    """A credential of an agent: a prefix to find it by, and a hash of the rest."""

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

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="threads")
    name = models.CharField(max_length=128)
    status = models.CharField(
        max_length=8, choices=[(s.value, s.value) for s in ThreadStatus]
    )
    result = models.CharField(
        max_length=9, blank=True, choices=[(r.value, r.value) for r in ThreadResult]
    )
    # The blob key, wrapped under the installation's; erasing it erases the blobs.
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
            models.Index(fields=["agent", "-started_at"], name="thread_newest")
        ]

    def __str__(self) -> str:
        return self.name


class Checkpoint(models.Model):
    """An agent's suspended state. People see all of it but the blob."""

    thread = models.ForeignKey(
        Thread, on_delete=models.PROTECT, related_name="checkpoints"
    )
    number = models.PositiveIntegerField()
    proposal = models.CharField(max_length=40)
    summary = models.TextField(blank=True)  # redacted
    state = models.JSONField(default=dict)  # redacted
    blob = models.BinaryField(null=True)  # encrypted under the thread's key
    blob_digest = models.CharField(max_length=80, blank=True)
    blob_bytes = models.PositiveIntegerField(default=0)
    resume_at = models.CharField(max_length=128, blank=True)
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
    """What an agent's key was answered with, kept past the longest wait."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=80)
    proposal = models.CharField(max_length=40, blank=True)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "key"], name="idempotency_once")
        ]

    def __str__(self) -> str:
        return self.key
