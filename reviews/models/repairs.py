"""Repairs, which change a stuck row by hand, and reversals of effects.

A repair takes two people: one proposes it and another confirms it.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from reviews.choices import RepairStatus, RepairSubject

from .base import build_choice_check, build_choices, new_repair_id
from .executions import Execution
from .proposals import Proposal

OPEN_REPAIR = "repair_one_open"


class Repair(models.Model):
    """A change of a stuck row by hand, with the values before and after."""

    id = models.CharField(max_length=40, primary_key=True, default=new_repair_id)
    status = models.CharField(max_length=8, choices=build_choices(RepairStatus))
    subject = models.CharField(max_length=10, choices=build_choices(RepairSubject))
    key = models.CharField(max_length=200)  # an execution's id, "<agent>/<thread>"
    agent = models.CharField(max_length=64)
    thread = models.CharField(max_length=128)
    change = models.CharField(max_length=24)
    before = models.JSONField()
    after = models.JSONField()
    reason = models.TextField()
    proposed_by = models.CharField(max_length=40)
    proposed_at = models.DateTimeField()
    lapses_at = models.DateTimeField()
    settled_by = models.CharField(max_length=40, blank=True)
    settled_at = models.DateTimeField(null=True)
    answer = models.TextField(blank=True)  # why it was refused
    solo = models.BooleanField(db_default=False, default=False)  # proposed in solo mode

    class Meta:
        constraints: ClassVar = [
            build_choice_check("repair_status", "status", RepairStatus),
            build_choice_check("repair_subject", "subject", RepairSubject),
            models.UniqueConstraint(
                fields=["subject", "key"],
                condition=Q(status="proposed"),
                name=OPEN_REPAIR,
            ),
            models.CheckConstraint(
                name="repair_settled_paired",
                condition=Q(status="proposed", settled_at__isnull=True)
                | ~Q(status="proposed") & Q(settled_at__isnull=False),
            ),
            models.CheckConstraint(
                name="repair_two_people",
                condition=~Q(status="applied")
                | ~Q(settled_by="")
                & (Q(solo=True) | ~Q(settled_by=models.F("proposed_by"))),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-proposed_at"], name="repair_newest"),
            models.Index(
                fields=["lapses_at"],
                name="repair_lapsing",
                condition=Q(status="proposed"),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class Reversal(models.Model):
    """A proposal that undoes an effect. `over_at` is set when it ended without running.
    An effect has at most one reversal that is open or has run."""

    execution = models.ForeignKey(
        Execution, on_delete=models.PROTECT, related_name="reversals"
    )
    proposal = models.OneToOneField(
        Proposal, on_delete=models.PROTECT, related_name="reverses"
    )
    by = models.CharField(max_length=40)  # who asked for it; they may not decide it
    at = models.DateTimeField()
    over_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["execution"],
                condition=Q(over_at__isnull=True),
                name="reversal_one",
            )
        ]

    def __str__(self) -> str:
        return f"{self.proposal_id} reverses {self.execution_id}"
