"""Canaries: what was planted in a cloned request, and how its reviewer decided it. How
often each kind of defect is planted. And decisions that another person reviews a second
time."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from policies.choices import Risk
from reviews.choices import (
    CanaryEnding,
    ChangeStatus,
    DefectKind,
    RealismFlag,
    SampleCause,
    Verdict,
)

from .base import build_choice_check, build_choices, build_settled_check, person_key
from .proposals import Proposal
from .requests import Decision


class Canary(models.Model):
    """A clone of a decided request with one planted defect, for one reviewer. Its
    proposal, revision and request are rows like others. What the reviewer decided is
    stored here and not as a Decision, so no figure about decisions counts it."""

    proposal = models.OneToOneField(
        Proposal, on_delete=models.PROTECT, primary_key=True, related_name="planted"
    )
    source = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    reviewer = person_key("canaries")
    tool_name = models.CharField(max_length=64)
    risk = models.CharField(max_length=8, choices=build_choices(Risk))
    defect = models.CharField(max_length=24, choices=build_choices(DefectKind))
    # The argument that holds the defect; empty for one in the agent's words.
    field = models.CharField(max_length=200, blank=True)
    inserted_at = models.DateTimeField()
    # How many requests of agents the reviewer has to decide before the next one.
    next_after = models.PositiveSmallIntegerField()
    ending = models.CharField(
        max_length=9, choices=build_choices(CanaryEnding), blank=True
    )
    ended_at = models.DateTimeField(null=True)
    verdict = models.CharField(max_length=8, blank=True)
    # Null unless the reviewer decided it.
    caught = models.BooleanField(null=True)
    took_ms = models.PositiveIntegerField(null=True)
    # What the reviewer says about how real it looked.
    realism = models.CharField(
        max_length=8, choices=build_choices(RealismFlag), blank=True
    )

    class Meta:
        constraints: ClassVar = [
            build_choice_check("canary_defect", "defect", DefectKind),
            models.CheckConstraint(
                name="canary_end_paired",
                condition=Q(ending="", ended_at__isnull=True)
                | ~Q(ending="") & Q(ended_at__isnull=False),
            ),
            models.CheckConstraint(
                name="canary_verdict_paired",
                condition=Q(ending="decided", caught__isnull=False) & ~Q(verdict="")
                | ~Q(ending="decided") & Q(caught__isnull=True, verdict=""),
            ),
            models.UniqueConstraint(
                fields=["reviewer"], name="canary_one_open", condition=Q(ending="")
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["reviewer", "-inserted_at"], name="canary_newest"),
            models.Index(fields=["ended_at"], name="canary_ended"),
        ]

    def __str__(self) -> str:
        return f"canary {self.proposal_id}"


class DefectChange(models.Model):
    """A change of how often a kind of defect is planted: one administrator proposes it,
    another one confirms. The newest confirmed one of a kind is in force."""

    defect = models.CharField(max_length=24, choices=build_choices(DefectKind))
    # How often the kind is planted, compared with others of weight 1; 0 is never.
    weight = models.PositiveSmallIntegerField()
    reason = models.TextField()
    status = models.CharField(max_length=9, choices=build_choices(ChangeStatus))
    asked_by = person_key(db_index=False)
    asked_at = models.DateTimeField()
    # The administrator who confirmed or refused it; null after a withdrawal or a lapse.
    settled_by = person_key(null=True, db_index=False)
    settled_at = models.DateTimeField(null=True)
    refusal = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            build_choice_check("defect_change_status", "status", ChangeStatus),
            build_choice_check("defect_change_kind", "defect", DefectKind),
            build_settled_check("defect_change_settled_paired"),
            models.CheckConstraint(
                name="defect_change_second_person",
                condition=Q(settled_by__isnull=True) | ~Q(settled_by=F("asked_by")),
            ),
            models.UniqueConstraint(
                fields=["defect"],
                name="defect_change_one_open",
                condition=Q(status="proposed"),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["defect", "-settled_at"],
                name="defect_change_newest",
                condition=Q(status="confirmed"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.defect} at weight {self.weight}"


class UpheldReview(StrEnum):
    """Whose verdict a supervisor upholds where two reviewers disagree."""

    FIRST = "first"
    SECOND = "second"


class SecondReview(models.Model):
    """A decision of the past that another person reviews without knowing it. It changes
    nothing about the request. Where the two disagree, a supervisor says whose verdict
    was right."""

    decision = models.OneToOneField(
        Decision, on_delete=models.PROTECT, primary_key=True, related_name="second"
    )
    tool_name = models.CharField(max_length=64)
    risk = models.CharField(max_length=8, choices=build_choices(Risk))
    cause = models.CharField(max_length=6, choices=build_choices(SampleCause))
    chosen_at = models.DateTimeField()
    due_at = models.DateTimeField()  # nobody is asked any more after that
    reviewer = person_key(null=True, db_index=False)
    verdict = models.CharField(max_length=8, blank=True)
    reason = models.TextField(blank=True)
    answered_at = models.DateTimeField(null=True)
    agrees = models.BooleanField(null=True)
    arbiter = person_key(null=True, db_index=False)
    upheld = models.CharField(
        max_length=6, choices=build_choices(UpheldReview), blank=True
    )
    ruling = models.TextField(blank=True)  # the supervisor's words
    ruled_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="second_review_answer_paired",
                condition=Q(
                    answered_at__isnull=True,
                    reviewer__isnull=True,
                    agrees__isnull=True,
                    verdict="",
                )
                | Q(
                    answered_at__isnull=False,
                    reviewer__isnull=False,
                    agrees__isnull=False,
                    verdict__in=[Verdict.APPROVE, Verdict.REJECT],
                ),
            ),
            models.CheckConstraint(
                name="second_review_ruling_paired",
                condition=Q(ruled_at__isnull=True, arbiter__isnull=True, upheld="")
                | Q(ruled_at__isnull=False, arbiter__isnull=False, agrees=False)
                & ~Q(upheld=""),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["due_at"],
                name="second_review_waiting",
                condition=Q(answered_at__isnull=True),
            ),
            models.Index(
                fields=["answered_at"],
                name="second_review_split",
                condition=Q(agrees=False, ruled_at__isnull=True),
            ),
            models.Index(fields=["answered_at"], name="second_review_answered"),
        ]

    def __str__(self) -> str:
        return f"second review of {self.decision_id}"
