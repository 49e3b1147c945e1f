"""Batches: requests decided together, bound to a digest of the list."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from policies.models import Queue, Tool
from reviews.choices import BatchStatus

from .base import build_choice_check, build_choices, new_batch_id
from .requests import ApprovalRequest


class Batch(models.Model):
    """An ordered list of similar requests. The digest changes with every member."""

    id = models.CharField(max_length=40, primary_key=True, default=new_batch_id)
    status = models.CharField(max_length=9, choices=build_choices(BatchStatus))
    # Digest of what its members share: tool, rules, tier, agent, shape of arguments.
    key = models.CharField(max_length=80)
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT)
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT)
    agent = models.CharField(max_length=64)
    group = models.CharField(max_length=128, blank=True)
    formed_at = models.DateTimeField()
    closes_at = models.DateTimeField()  # no request joins later
    settled_at = models.DateTimeField(null=True)
    # The digest of the decided list; empty until then.
    digest = models.CharField(max_length=80, blank=True)
    stop_at_failure = models.BooleanField(default=True)
    # When a failed execution halted the others.
    halted_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            build_choice_check("batch_status", "status", BatchStatus),
            models.UniqueConstraint(
                fields=["key"],
                condition=Q(status="forming"),
                name="batch_one_forming",
            ),
            models.CheckConstraint(
                name="batch_settled_paired",
                condition=Q(status__in=["forming", "open"], settled_at__isnull=True)
                | Q(status__in=["decided", "dissolved"], settled_at__isnull=False),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["queue", "formed_at"],
                name="batch_waiting",
                condition=Q(status__in=["forming", "open"]),
            )
        ]

    def __str__(self) -> str:
        return self.id


class BatchItem(models.Model):
    """One member. A member that left keeps its row, with the time it left."""

    batch = models.ForeignKey(Batch, on_delete=models.PROTECT, related_name="items")
    request = models.ForeignKey(
        ApprovalRequest, on_delete=models.PROTECT, related_name="batch_items"
    )
    position = models.PositiveIntegerField()
    joined_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["batch", "position"], name="batch_item_position"
            ),
            models.UniqueConstraint(
                fields=["request"],
                condition=Q(left_at__isnull=True),
                name="batch_item_in_one",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.batch_id} {self.position}"
