"""What the service said when it was asked what became of an effect."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from .executions import Execution


class LookUp(models.Model):
    """One answer about one execution whose outcome nobody knew. Never changed."""

    execution = models.ForeignKey(
        Execution, on_delete=models.PROTECT, related_name="look_ups"
    )
    number = models.PositiveIntegerField()
    at = models.DateTimeField()
    by_kind = models.CharField(max_length=8)  # "system", or the "person" who asked
    by_id = models.CharField(max_length=64)
    # succeeded, failed, not_found or unknown: `detail` is the service's own word.
    said = models.CharField(max_length=9)
    code = models.CharField(max_length=64, blank=True)
    detail = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["execution", "number"], name="look_up_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.execution_id} look-up {self.number}"
