"""Practice: items that a reviewer answers to warm up, and their answers.

An item names a version that people approved, and the kind of defect that the page
plants in it when it is shown. The clone itself is stored nowhere.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from django.db import models
from django.db.models import Q

from reviews.choices import DefectKind, Verdict

from .base import build_choices, person_key
from .requests import RequestVersion


class PracticeEnding(StrEnum):
    """How a practice ended."""

    FINISHED = "finished"  # every item was answered
    SKIPPED = "skipped"


class Practice(models.Model):
    """One practice of one reviewer. A declined offer is one without items. Nothing but
    the pages of practice and of assurance reads it, so no figure about requests counts
    it."""

    reviewer = person_key("practices", db_index=False)
    # The kind of defect that it is about; empty for a warm-up with all kinds.
    defect = models.CharField(
        max_length=24, choices=build_choices(DefectKind), blank=True
    )
    started_at = models.DateTimeField()
    ending = models.CharField(
        max_length=8, choices=build_choices(PracticeEnding), blank=True
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="practice_end_paired",
                condition=Q(ending="", ended_at__isnull=True)
                | ~Q(ending="") & Q(ended_at__isnull=False),
            ),
            models.UniqueConstraint(
                fields=["reviewer"], name="practice_one_open", condition=Q(ending="")
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["reviewer", "-started_at"], name="practice_newest"),
        ]

    def __str__(self) -> str:
        return f"practice {self.pk}"


class PracticeItem(models.Model):
    """One item of a practice, and what its reviewer answered."""

    practice = models.ForeignKey(
        Practice, on_delete=models.CASCADE, db_index=False, related_name="items"
    )
    number = models.PositiveSmallIntegerField()  # from 1
    version = models.ForeignKey(
        RequestVersion, on_delete=models.PROTECT, related_name="+"
    )
    # What the page plants; empty for an item as people approved it.
    defect = models.CharField(
        max_length=24, choices=build_choices(DefectKind), blank=True
    )
    verdict = models.CharField(max_length=8, blank=True)
    answered_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["practice", "number"], name="practice_item_number"
            ),
            models.CheckConstraint(
                name="practice_item_answer_paired",
                condition=Q(verdict="", answered_at__isnull=True)
                | Q(
                    verdict__in=[Verdict.APPROVE, Verdict.REJECT],
                    answered_at__isnull=False,
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"item {self.number} of {self.practice_id}"

    @property
    def is_right(self) -> bool:
        """Whether the answer fits: a rejection of a defect, an approval of the rest."""
        return bool(self.defect) == (self.verdict == Verdict.REJECT)
