"""Exports of the log: asked for on a page, written by a job, kept in parts."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from reviews.choices import ExportStatus

from .base import new_export_id, one_of, pairs


class Export(models.Model):
    """One file of log records that fit a filter."""

    id = models.CharField(max_length=40, primary_key=True, default=new_export_id)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="exports"
    )
    status = models.CharField(max_length=7, choices=pairs(ExportStatus))
    format = models.CharField(max_length=8)  # "csv" or "jsonl"
    query = models.CharField(max_length=1000, blank=True)
    # The last record it covers, so that what is written meanwhile stays out.
    until_record = models.BigIntegerField(default=0)
    # How far the job has come: the last record written, rows so far, rows in all.
    at_record = models.BigIntegerField(default=0)
    rows = models.PositiveIntegerField(default=0)
    rows_in_all = models.PositiveIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)  # bytes
    problem = models.CharField(max_length=200, blank=True)
    asked_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            one_of("export_status", "status", ExportStatus),
            models.CheckConstraint(
                name="export_finish_paired",
                condition=Q(status="running", finished_at__isnull=True)
                | Q(status__in=["done", "failed"], finished_at__isnull=False),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["person", "-asked_at"], name="export_by_person")
        ]

    def __str__(self) -> str:
        return self.id


class ExportPart(models.Model):
    """A slice of the file, so that a killed job goes on where it was."""

    export = models.ForeignKey(Export, on_delete=models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField()
    body = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["export", "number"], name="export_part_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.export_id} {self.number}"
