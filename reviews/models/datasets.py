"""Datasets of decided requests for evaluation: who asked for one and why, who
consented, and the file that a job wrote."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from reviews.choices import DatasetStatus

from .base import (
    FileParts,
    build_choice_check,
    build_choices,
    build_years_check,
    new_dataset_id,
    person_key,
)


class Dataset(models.Model):
    """One file with decided requests and their labels, for a stated purpose. One
    administrator asks for it. Another one, who is not its owner, consents before
    anything is written."""

    id = models.CharField(max_length=40, primary_key=True, default=new_dataset_id)
    status = models.CharField(max_length=9, choices=build_choices(DatasetStatus))
    purpose = models.TextField()
    asked_by = person_key()
    # The person who is responsible for the file.
    owner = person_key("datasets")
    tools = ArrayField(models.CharField(max_length=64))
    # Decisions from `since` up to, but not including, `until`.
    since = models.DateTimeField()
    until = models.DateTimeField()
    with_canaries = models.BooleanField(default=False)
    # The shares of the three parts, in percent.
    train = models.PositiveSmallIntegerField()
    validation = models.PositiveSmallIntegerField()
    test = models.PositiveSmallIntegerField()
    asked_at = models.DateTimeField()
    # Who consented or refused, when, and why they refused. Nobody did if the dataset
    # was withdrawn or lapsed.
    settled_by = person_key(null=True, db_index=False)
    settled_at = models.DateTimeField(null=True)
    refusal = models.TextField(blank=True)
    # The key of the pseudonyms, encrypted. It exists only while the file is written.
    key = models.BinaryField(null=True)
    # The newest decision at the time of the consent; later ones are left out.
    until_decision = models.BigIntegerField(default=0)
    # Progress of the job, and the number of lines by label, quality and part.
    rows = models.PositiveIntegerField(default=0)
    rows_in_all = models.PositiveIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)  # bytes
    counts = models.JSONField(default=dict)
    problem = models.CharField(max_length=200, blank=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            build_choice_check("dataset_status", "status", DatasetStatus),
            models.CheckConstraint(
                name="dataset_settled_paired",
                condition=Q(
                    status="asked", settled_by__isnull=True, settled_at__isnull=True
                )
                | Q(
                    status__in=["withdrawn", "lapsed"],
                    settled_by__isnull=True,
                    settled_at__isnull=False,
                )
                | ~Q(status__in=["asked", "withdrawn", "lapsed"])
                & Q(settled_by__isnull=False, settled_at__isnull=False),
            ),
            models.CheckConstraint(
                name="dataset_second_person",
                condition=Q(settled_by__isnull=True)
                | ~Q(settled_by=F("asked_by")) & ~Q(settled_by=F("owner")),
            ),
            models.CheckConstraint(
                name="dataset_key_while_running",
                condition=Q(status="running", key__isnull=False)
                | ~Q(status="running") & Q(key__isnull=True),
            ),
            models.CheckConstraint(
                name="dataset_finish_paired",
                condition=Q(status__in=["done", "failed"], finished_at__isnull=False)
                | ~Q(status__in=["done", "failed"]) & Q(finished_at__isnull=True),
            ),
            models.CheckConstraint(
                name="dataset_shares_whole",
                condition=Q(test=100 - F("train") - F("validation")),
            ),
            build_years_check("dataset_years", "since", "until"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-asked_at"], name="dataset_newest"),
            models.Index(
                fields=["finished_at"],
                name="dataset_kept",
                condition=Q(status="done"),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class DatasetPart(models.Model):
    """A slice of the file, compressed by itself, so that a killed job can resume. The
    header is number 0 and is written last."""

    dataset = models.ForeignKey(
        Dataset, on_delete=models.CASCADE, db_index=False, related_name="parts"
    )
    number = models.PositiveIntegerField()
    body = models.BinaryField()  # gzip

    objects = FileParts.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["dataset", "number"], name="dataset_part_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.dataset_id} {self.number}"
