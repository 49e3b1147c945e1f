"""The switches that hold agents, tools and people back."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from reviews.choices import Scope, StopMode

from .base import one_of, pairs


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
