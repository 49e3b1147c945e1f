"""Rows of the desk: holds, drafts, notes, messages, exports of the audit log, and the
daily figures of its statistics.

None of these has a part in a decision's validity; the decision's own checks have. A
person requests an export on a page, and a job writes it in parts.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from policies.models import Queue
from reviews.choices import ExportStatus, LostHow, MessageKind, NoteKind

from .base import (
    FileParts,
    build_choice_check,
    build_choices,
    build_removal_index,
    new_export_id,
    person_key,
    removed_after,
)
from .requests import ApprovalRequest


class Hold(models.Model):
    """A person's hold on a request. Without a holder the request is free. Every hold
    ends by itself at `until`."""

    request = models.OneToOneField(
        ApprovalRequest,
        on_delete=models.PROTECT,
        primary_key=True,
        related_name="hold",
    )
    holder = person_key("holds", null=True)
    token = models.CharField(max_length=40, blank=True)
    taken_at = models.DateTimeField(null=True)
    until = models.DateTimeField(null=True)
    # The person the holder offered it to; it becomes theirs when they take it.
    offered_to = person_key("offers", null=True)
    # The colleague who declined the holder's last offer, which the holder is told.
    declined_by = person_key(null=True)
    # Public ids of people who asked to be told when it is free.
    asked_by = ArrayField(models.CharField(max_length=40), default=list)
    # The person who lost a hold, who ended it, when and how. Shown to the person who
    # lost it, until they hold the request again or somebody decides it.
    lost_by = person_key(null=True)
    lost_to = person_key(null=True)
    lost_at = models.DateTimeField(null=True)
    lost_how = models.CharField(
        max_length=12, choices=build_choices(LostHow), blank=True
    )
    # A hold was broken since the last decision; the next decision is flagged.
    broken = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="hold_paired",
                condition=Q(
                    holder__isnull=True,
                    token="",
                    taken_at__isnull=True,
                    until__isnull=True,
                    offered_to__isnull=True,
                    declined_by__isnull=True,
                )
                | Q(holder__isnull=False, taken_at__isnull=False, until__isnull=False)
                & ~Q(token=""),
            ),
            models.CheckConstraint(
                name="hold_lost_paired",
                condition=Q(
                    lost_by__isnull=True,
                    lost_to__isnull=True,
                    lost_at__isnull=True,
                    lost_how="",
                )
                | Q(
                    lost_by__isnull=False,
                    lost_to__isnull=False,
                    lost_at__isnull=False,
                    lost_how__in=list(LostHow),
                ),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["holder", "until"],
                name="hold_held",
                condition=Q(holder__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"hold of {self.request_id}"


class Draft(models.Model):
    """What a person typed into one panel and did not submit. Kept for a day, also after
    a refusal."""

    person = person_key("drafts", on_delete=models.CASCADE)
    request = models.ForeignKey(
        ApprovalRequest, on_delete=models.CASCADE, related_name="drafts"
    )
    version = models.PositiveIntegerField()
    panel = models.CharField(max_length=20, blank=True)  # of a verdict or a message
    reason_code = models.CharField(max_length=16, blank=True)
    reason = models.TextField(blank=True)
    edits = models.JSONField(default=dict)  # form field -> text, as typed
    saved_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["person", "request", "panel"], name="draft_once"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["saved_at"], name="draft_age")]

    def __str__(self) -> str:
        return f"draft on {self.request_id}"


class Note(models.Model):
    """What a person wrote on a request apart from a verdict."""

    request = models.ForeignKey(
        ApprovalRequest, on_delete=models.PROTECT, related_name="notes"
    )
    version = models.PositiveIntegerField()
    author = person_key("notes")
    kind = models.CharField(max_length=16, choices=build_choices(NoteKind))
    text = models.TextField()
    at = models.DateTimeField()
    removed_after = removed_after()

    class Meta:
        constraints: ClassVar = [build_choice_check("note_kind", "kind", NoteKind)]
        indexes: ClassVar = [
            models.Index(fields=["request", "at"], name="note_order"),
            build_removal_index("note_removable", "at"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on {self.request_id}"


class QueuePreset(models.Model):
    """What the decision panel offers in one queue, as its administrator chose it. What
    a verdict accepts stays the same for every queue."""

    queue = models.OneToOneField(
        Queue, on_delete=models.PROTECT, primary_key=True, related_name="preset"
    )
    # Codes by verdict, in their order; a verdict without a list offers all of its own.
    reasons = models.JSONField(default=dict)
    # Texts that a reviewer can put into the note.
    texts = ArrayField(models.TextField(), default=list)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"preset of {self.queue_id}"


class Message(models.Model):
    """A question, an answer or guidance between people and the agent that proposed. A
    question or guidance opens a round of the request; an answer has the round of what
    it answers. An agent's text is stored redacted. The row never changes, but
    for the removal of an old text."""

    request = models.ForeignKey(
        ApprovalRequest,
        on_delete=models.PROTECT,
        related_name="messages",
        db_index=False,
    )
    version = models.PositiveIntegerField()
    round = models.PositiveSmallIntegerField()  # counted from 1
    kind = models.CharField(max_length=8, choices=build_choices(MessageKind))
    # Null for the agent's own. `role` is what the agent learns of a person.
    author = person_key("messages", null=True, db_index=False)
    role = models.CharField(max_length=16, blank=True)
    text = models.TextField()
    at = models.DateTimeField()
    removed_after = removed_after()

    class Meta:
        constraints: ClassVar = [
            build_choice_check("message_kind", "kind", MessageKind),
            models.CheckConstraint(
                name="message_author_paired",
                condition=Q(author__isnull=True, role="")
                | Q(author__isnull=False) & ~Q(role=""),
            ),
            models.CheckConstraint(
                name="message_guidance_by_person",
                condition=~Q(kind="guidance") | Q(author__isnull=False),
            ),
            models.UniqueConstraint(
                fields=["request", "round"],
                name="message_opens_round",
                condition=~Q(kind="answer"),
            ),
            models.UniqueConstraint(
                fields=["request", "round"],
                name="message_answers_round",
                condition=Q(kind="answer"),
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["request", "at"], name="message_order"),
            build_removal_index("message_removable", "at"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.round} on {self.request_id}"

    @property
    def by_agent(self) -> bool:
        return self.author_id is None


class Export(models.Model):
    """One file with the log records that match a filter."""

    id = models.CharField(max_length=40, primary_key=True, default=new_export_id)
    person = person_key("exports")
    status = models.CharField(max_length=7, choices=build_choices(ExportStatus))
    format = models.CharField(max_length=8)  # "csv" or "jsonl"
    query = models.CharField(max_length=1000, blank=True)
    # The last record it covers; records written while it runs are left out.
    until_record = models.BigIntegerField(default=0)
    # Progress of the job: the last record written, rows so far, rows in total.
    at_record = models.BigIntegerField(default=0)
    rows = models.PositiveIntegerField(default=0)
    rows_in_all = models.PositiveIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)  # bytes
    problem = models.CharField(max_length=200, blank=True)
    asked_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            build_choice_check("export_status", "status", ExportStatus),
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
    """A slice of the file, so that a killed job can resume."""

    export = models.ForeignKey(Export, on_delete=models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField()
    body = models.BinaryField()

    objects = FileParts.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["export", "number"], name="export_part_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.export_id} {self.number}"


class MetricDay(models.Model):
    """One UTC day of the statistics: when its figures were last computed, and whether
    they have to be computed again because something about that day changed."""

    day = models.DateField(primary_key=True)
    due = models.BooleanField(default=True)
    # The last log position that was read when the day was marked; -1 for none.
    through = models.BigIntegerField(default=-1)
    computed_at = models.DateTimeField(null=True)
    took_ms = models.PositiveIntegerField(default=0, db_default=0)  # to compute it

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["through"], name="metric_day_through"),
            models.Index(fields=["day"], name="metric_day_due", condition=Q(due=True)),
        ]

    def __str__(self) -> str:
        return f"{self.day}"


class MetricRollup(models.Model):
    """The figures of one measure on one UTC day, for one tool and risk level.

    An empty tool or risk means all of them: those rows are computed, not added up, so
    that a run that used two tools counts once. The rows can be deleted and computed
    again at any time.
    """

    day = models.DateField()
    measure = models.CharField(max_length=32)
    tool = models.CharField(max_length=64, blank=True)
    risk = models.CharField(max_length=8, blank=True)
    # A JSON object: what the measure counts (an outcome, an hour, a number of seconds),
    # and its value. Text, because a page parses thousands of them.
    bins = models.TextField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["measure", "tool", "risk", "day"],
                name="rollup_once",
            )
        ]
        indexes: ClassVar = [models.Index(fields=["day"], name="rollup_day")]

    def __str__(self) -> str:
        return f"{self.measure} {self.day}"
