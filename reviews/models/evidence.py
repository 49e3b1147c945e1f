"""Files that agents send as evidence, and the pictures drawn of them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q


class EvidenceFile(models.Model):
    """One file of one agent. `body` is encrypted, and `shown` too: what `rendering`
    made of it, as JSON. Both are null once they are erased; the hash stays."""

    agent = models.CharField(max_length=64)
    sha256 = models.CharField(max_length=80)
    media_type = models.CharField(max_length=32)
    size = models.PositiveIntegerField()  # bytes
    body = models.BinaryField(null=True)
    shown = models.BinaryField(null=True)
    problem = models.CharField(max_length=200, blank=True)  # why it cannot be shown
    # The kinds of personal data and secrets in its text, as far as it has one.
    finds = models.CharField(max_length=200, blank=True)
    uploaded_at = models.DateTimeField()
    # When a proposal last named it; null while none has.
    used_at = models.DateTimeField(null=True)
    erased_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["agent", "sha256"], name="evidence_file_once"
            ),
            models.CheckConstraint(
                name="evidence_file_erased_whole",
                condition=Q(
                    erased_at__isnull=True, body__isnull=False, shown__isnull=False
                )
                | Q(erased_at__isnull=False, body__isnull=True, shown__isnull=True),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["agent", "uploaded_at"],
                name="evidence_file_unused",
                condition=Q(used_at__isnull=True),
            ),
            models.Index(
                fields=["used_at"],
                name="evidence_file_kept",
                condition=Q(erased_at__isnull=True, used_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {self.sha256}"


class EvidencePicture(models.Model):
    """One page or frame of a file, drawn again and encrypted."""

    file = models.ForeignKey(
        EvidenceFile, on_delete=models.CASCADE, related_name="pictures", db_index=False
    )
    number = models.PositiveSmallIntegerField()  # from 1
    body = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["file", "number"], name="evidence_picture_once"
            )
        ]

    def __str__(self) -> str:
        return f"picture {self.number} of {self.file_id}"
