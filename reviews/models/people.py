"""What belongs to one person: tokens, preferences, saved views, what they were sent."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from .alarms import Alarm
from .executions import Execution
from .requests import ApprovalRequest


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


class Preferences(models.Model):
    """How one person wants the desk: `reviews.people.preferences` knows the shapes."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="preferences",
    )
    display = models.JSONField(default=dict)
    keys = models.JSONField(default=dict)
    notifications = models.JSONField(default=dict)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"preferences of {self.person_id}"


class SavedView(models.Model):
    """A named filter of a list; the query string is all of it."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views"
    )
    page = models.CharField(max_length=16)  # "queue" or "log"
    name = models.CharField(max_length=64)
    query = models.CharField(max_length=1000)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["person", "page", "name"], name="saved_view_name"
            )
        ]

    def __str__(self) -> str:
        return f"{self.page}: {self.name}"


class Notice(models.Model):
    """One message to one person: planned once, then sent or let go, never both."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices"
    )
    # What it is about: one of the three.
    request = models.ForeignKey(
        ApprovalRequest, null=True, on_delete=models.CASCADE, related_name="notices"
    )
    execution = models.ForeignKey(
        Execution, null=True, on_delete=models.CASCADE, related_name="notices"
    )
    # Of an alarm each is told once: its `occasion` is the alarm's id.
    alarm = models.ForeignKey(
        Alarm, null=True, on_delete=models.CASCADE, related_name="notices"
    )
    version = models.PositiveIntegerField(default=0)
    kind = models.CharField(max_length=24)
    # Tells apart what may happen again to the same version: it was free twice.
    occasion = models.CharField(max_length=24, blank=True)
    at = models.DateTimeField()
    due_at = models.DateTimeField()
    digest = models.BooleanField(default=False)  # goes with others, as one mail
    sent_at = models.DateTimeField(null=True)
    let_go = models.CharField(max_length=16, blank=True)  # why it never went

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=[
                    "person",
                    "request",
                    "execution",
                    "version",
                    "kind",
                    "occasion",
                ],
                nulls_distinct=False,
                name="notice_once",
            ),
            models.CheckConstraint(
                name="notice_about_one",
                condition=Q(
                    request__isnull=True, execution__isnull=False, alarm__isnull=True
                )
                | Q(request__isnull=False, execution__isnull=True, alarm__isnull=True)
                | Q(request__isnull=True, execution__isnull=True, alarm__isnull=False),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["person", "-sent_at"],
                name="notice_sent",
                condition=Q(sent_at__isnull=False),
            ),
            models.Index(
                fields=["person", "due_at"],
                name="notice_unsent",
                condition=Q(sent_at__isnull=True, let_go=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.person_id}"


class Sighting(models.Model):
    """That a person has seen an announced effect, and whether it was a near miss."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="sightings"
    )
    execution = models.ForeignKey(
        Execution, on_delete=models.PROTECT, related_name="sightings"
    )
    near_miss = models.BooleanField(default=False)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["person", "execution"], name="sighting_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.execution_id} by {self.person_id}"
