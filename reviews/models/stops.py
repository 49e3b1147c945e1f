"""Stops and pauses of runs, agents, tools and reviewers, and declared incidents."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from policies.models import Queue
from reviews.choices import Scope, StopMode

from .base import build_choice_check, build_choices


class Stop(models.Model):
    """A stop or a pause over one scope and key. Lifted rows are kept as history."""

    scope = models.CharField(max_length=10, choices=build_choices(Scope))
    key = models.CharField(max_length=200, blank=True)
    mode = models.CharField(max_length=7, choices=build_choices(StopMode))
    reason = models.TextField(blank=True)
    by = models.CharField(max_length=40)
    at = models.DateTimeField()
    lift_asked_by = models.CharField(max_length=40, blank=True)
    lifted_by = models.CharField(max_length=40, blank=True)
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            build_choice_check("stop_scope", "scope", Scope),
            build_choice_check("stop_mode", "mode", StopMode),
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
        indexes: ClassVar = [models.Index(fields=["key", "at"], name="stop_by_key")]

    def __str__(self) -> str:
        return f"{self.mode} {self.scope} {self.key}".rstrip()


class Incident(models.Model):
    """A declared incident. While it is open, deadlines in its scope stand still. Ended
    rows are kept as history."""

    queue = models.ForeignKey(  # null: every queue
        Queue, null=True, on_delete=models.PROTECT, related_name="incidents"
    )
    reason = models.TextField()
    declared_by = models.CharField(max_length=40)
    at = models.DateTimeField()
    ended_by = models.CharField(max_length=40, blank=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["queue"],
                condition=Q(ended_at__isnull=True),
                nulls_distinct=False,
                name="incident_one_open",
            ),
            models.CheckConstraint(
                name="incident_end_paired",
                condition=Q(ended_at__isnull=True, ended_by="")
                | Q(ended_at__isnull=False) & ~Q(ended_by=""),
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["-at"], name="incident_newest")]

    def __str__(self) -> str:
        return f"{self.queue or 'every queue'} since {self.at:%Y-%m-%d %H:%M} UTC"
