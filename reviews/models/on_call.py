"""Who is on call for a queue and when, and drills that measure how soon a message is
seen."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from policies.choices import Risk
from policies.models import Queue

from .base import build_choice_check, build_choices, build_years_check, person_key


class OnCallShift(models.Model):
    """A time in which a person is on call for a queue: one entry of its rota."""

    queue = models.ForeignKey(
        Queue, on_delete=models.PROTECT, db_index=False, related_name="shifts"
    )
    person = person_key("shifts")
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    planned_by = models.CharField(max_length=40)
    planned_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="shift_ends_after_it_begins",
                condition=Q(ends_at__gt=F("begins_at")),
            ),
            build_years_check("shift_years", "begins_at", "ends_at"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["queue", "ends_at"], name="shift_by_queue")
        ]

    def __str__(self) -> str:
        return f"{self.person_id} from {self.begins_at:%Y-%m-%d %H:%M} UTC"


class NotificationDrill(models.Model):
    """A test message to the people on call for a queue, over the channels of a new
    request at this risk level. It concerns no request."""

    queue = models.ForeignKey(
        Queue, on_delete=models.PROTECT, db_index=False, related_name="drills"
    )
    risk = models.CharField(max_length=8, choices=build_choices(Risk))
    started_by = models.CharField(max_length=40)
    started_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    # The public ids of the people whom it asks, and whether they were on call: else
    # nobody was, and it asks all who may decide.
    people = ArrayField(models.CharField(max_length=40))
    on_call = models.BooleanField()

    class Meta:
        constraints: ClassVar = [build_choice_check("drill_risk", "risk", Risk)]
        indexes: ClassVar = [
            models.Index(fields=["queue", "-started_at"], name="drill_newest")
        ]

    def __str__(self) -> str:
        return f"drill {self.pk}"


class DrillSighting(models.Model):
    """A person opened the link of a drill's message. The first time counts."""

    drill = models.ForeignKey(
        NotificationDrill,
        on_delete=models.CASCADE,
        db_index=False,
        related_name="sightings",
    )
    person = person_key(db_index=False)
    # The channel of the message; "" where the person found the page by themselves.
    channel = models.CharField(max_length=32, blank=True)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["drill", "person"], name="drill_sighting_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.person_id} saw drill {self.drill_id}"
