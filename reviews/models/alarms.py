"""Alarms, and reports that arrived too late to count."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from policies.models import Queue
from reviews.choices import AlarmKind, AlarmStatus, ClosedHow

from .base import build_choice_check, build_choices, person_key
from .executions import Execution
from .proposals import Proposal

STANDING = Q(status__in=["open", "acknowledged"])


class Alarm(models.Model):
    """Something that contradicts a promise, until somebody has dealt with it."""

    kind = models.CharField(max_length=16, choices=build_choices(AlarmKind))
    # An execution's id, or the id of another object that this kind is about.
    subject = models.CharField(max_length=120)
    status = models.CharField(max_length=12, choices=build_choices(AlarmStatus))
    proposal = models.ForeignKey(
        Proposal, null=True, on_delete=models.PROTECT, related_name="alarms"
    )
    # The queue whose people deal with it; null for all people.
    queue = models.ForeignKey(
        Queue, null=True, on_delete=models.PROTECT, related_name="alarms"
    )
    data = models.JSONField(default=dict)  # facts and codes, never free text
    opened_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    times = models.PositiveIntegerField(default=1)
    acknowledged_by = person_key(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    closed_by = person_key(null=True)  # null when it closed itself
    closed_at = models.DateTimeField(null=True)
    closed_how = models.CharField(
        max_length=8, choices=build_choices(ClosedHow), blank=True
    )
    note = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            build_choice_check("alarm_kind", "kind", AlarmKind),
            build_choice_check("alarm_status", "status", AlarmStatus),
            models.UniqueConstraint(
                fields=["kind", "subject"], condition=STANDING, name="alarm_one_open"
            ),
            models.CheckConstraint(
                name="alarm_acknowledged_paired",
                condition=Q(acknowledged_by__isnull=True, acknowledged_at__isnull=True)
                & ~Q(status="acknowledged")
                | Q(acknowledged_by__isnull=False, acknowledged_at__isnull=False)
                & ~Q(status="open"),
            ),
            models.CheckConstraint(
                name="alarm_closed_paired",
                condition=STANDING
                & Q(closed_at__isnull=True, closed_by__isnull=True, closed_how="")
                | Q(status="closed", closed_at__isnull=False)
                & (
                    Q(closed_how="person", closed_by__isnull=False) & ~Q(note="")
                    | Q(closed_how="itself", closed_by__isnull=True)
                ),
            ),
            # An alarm that may mean harm was done is closed by a person with a note.
            models.CheckConstraint(
                name="alarm_grave_by_person",
                condition=~Q(
                    kind__in=["twice", "without_grant", "other_bytes", "without_votes"]
                )
                | ~Q(closed_how="itself"),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["queue", "-opened_at"],
                name="alarm_standing",
                condition=STANDING,
            ),
            models.Index(fields=["-opened_at", "-id"], name="alarm_newest"),
            models.Index(fields=["subject", "kind"], name="alarm_about"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class LateReport(models.Model):
    """A report about an effect that arrived too late to count. Kept as evidence. The
    row never changes, and the report does not change the execution by itself."""

    execution = models.ForeignKey(
        Execution, on_delete=models.PROTECT, related_name="late_reports"
    )
    fence = models.PositiveBigIntegerField()  # the fence the report carried
    status = models.CharField(max_length=9)  # as reported
    # The execution's status and fence when the report arrived.
    found = models.CharField(max_length=9)
    found_fence = models.PositiveIntegerField()
    action_hash = models.CharField(max_length=80)
    result_shown = models.JSONField(null=True)  # redacted
    result_digest = models.CharField(max_length=80, blank=True)
    code = models.CharField(max_length=64, blank=True)  # redacted, like the other texts
    detail = models.TextField(blank=True)
    counted = models.BooleanField(default=False)  # it still settled the execution
    actor_kind = models.CharField(max_length=8)
    actor_id = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="late_report_status",
                condition=Q(status__in=["succeeded", "failed", "unknown"]),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["execution", "at"], name="late_report_order"),
            models.Index(fields=["at"], name="late_report_age"),
        ]

    def __str__(self) -> str:
        return f"{self.status} of {self.execution_id} under {self.fence}"
