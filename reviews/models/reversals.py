"""That an effect is to be undone by another, and who asked for it (gate.md 7)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from .executions import Execution
from .proposals import Proposal


class Reversal(models.Model):
    """One proposal that undoes one effect. Over once it came to nothing; until then,
    and once it ran, no other may be proposed."""

    execution = models.ForeignKey(
        Execution, on_delete=models.PROTECT, related_name="reversals"
    )
    proposal = models.OneToOneField(
        Proposal, on_delete=models.PROTECT, related_name="reverses"
    )
    by = models.CharField(max_length=40)  # whose idea it was; they do not decide it
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
