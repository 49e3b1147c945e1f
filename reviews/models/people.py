"""Rows that belong to one person: tokens, preferences, saved views, notices."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from policies.choices import Role
from reviews.choices import AuthorityKind, ChangeStatus

from .alarms import Alarm
from .base import build_choice_check, build_choices, build_settled_check, person_key
from .executions import Execution
from .on_call import NotificationDrill
from .questions import Question
from .requests import ApprovalRequest


class PersonalToken(models.Model):
    """A person's API token, stored as a digest. It never satisfies a step-up."""

    person = person_key("tokens", on_delete=models.CASCADE)
    name = models.CharField(max_length=64)
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=80)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix}…"


class AuthorityChange(models.Model):
    """What one administrator asks for a person and another one confirms, because it
    widens what the person may do, or lets them in. Empty fields stay as they are."""

    person = person_key("authority_changes", db_index=False)
    kind = models.CharField(max_length=10, choices=build_choices(AuthorityKind))
    role = models.CharField(max_length=20, blank=True, choices=build_choices(Role))
    queues = models.JSONField(default=list)  # names, in addition to the present ones
    # "500.00 USD", or "none" for any amount.
    ceiling = models.CharField(max_length=40, blank=True)
    email = models.CharField(max_length=254, blank=True)
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
            build_choice_check("authority_change_status", "status", ChangeStatus),
            build_choice_check("authority_change_kind", "kind", AuthorityKind),
            build_settled_check("authority_change_settled_paired"),
            models.CheckConstraint(
                name="authority_change_second_person",
                condition=Q(settled_by__isnull=True)
                | ~Q(settled_by=F("asked_by")) & ~Q(settled_by=F("person")),
            ),
            models.UniqueConstraint(
                fields=["person"],
                name="authority_change_one_open",
                condition=Q(status="proposed"),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["person", "-asked_at"], name="authority_change_of_person"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.person_id}"


class Preferences(models.Model):
    """One person's preferences; `reviews.people.preferences` defines their members."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="preferences",
    )
    display = models.JSONField(default=dict)
    keys = models.JSONField(default=dict)
    notifications = models.JSONField(default=dict)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"preferences of {self.person_id}"


class SavedView(models.Model):
    """A named filter of a list, stored as its query string."""

    person = person_key("saved_views", on_delete=models.CASCADE)
    page = models.CharField(max_length=16)  # "queue" or "log"
    name = models.CharField(max_length=64)
    query = models.CharField(max_length=1000)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["person", "page", "name"], name="saved_view_name"
            )
        ]

    def __str__(self) -> str:
        return f"{self.page}: {self.name}"


SUBJECTS = ("request", "execution", "alarm", "drill", "question")  # of a notice


def _build_subject_check() -> Q:
    """Exactly one subject is set."""
    condition = Q()
    for chosen in SUBJECTS:
        condition |= Q(
            **{f"{subject}__isnull": subject != chosen for subject in SUBJECTS}
        )
    return condition


class Notice(models.Model):
    """One message on one channel: planned once, then either sent or dropped. It goes to
    one person, or without a person to a place, such as a room of a chat. After a failed
    attempt, `due_at` is the time of the next one."""

    person = person_key("notices", null=True, on_delete=models.CASCADE)
    channel = models.CharField(max_length=32, default="email", db_default="email")
    # The place, as the policy names it; "" for a person or the channel's default.
    target = models.CharField(max_length=80, blank=True, default="", db_default="")
    # Its subject: exactly one of the five.
    request = models.ForeignKey(
        ApprovalRequest, null=True, on_delete=models.CASCADE, related_name="notices"
    )
    execution = models.ForeignKey(
        Execution, null=True, on_delete=models.CASCADE, related_name="notices"
    )
    # Each person is told once about an alarm: `occasion` is the alarm's id.
    alarm = models.ForeignKey(
        Alarm, null=True, on_delete=models.CASCADE, related_name="notices"
    )
    drill = models.ForeignKey(  # `occasion` is the drill's id
        NotificationDrill,
        null=True,
        on_delete=models.CASCADE,
        db_index=False,
        related_name="notices",
    )
    question = models.ForeignKey(  # `occasion` is the question's id
        Question,
        null=True,
        on_delete=models.CASCADE,
        db_index=False,
        related_name="notices",
    )
    version = models.PositiveIntegerField(default=0)
    kind = models.CharField(max_length=24)
    # Distinguishes repeated events of the same version, such as being freed twice.
    occasion = models.CharField(max_length=24, blank=True)
    at = models.DateTimeField()
    due_at = models.DateTimeField()
    digest = models.BooleanField(default=False)  # sent with others in one mail
    sent_at = models.DateTimeField(null=True)
    let_go = models.CharField(max_length=16, blank=True)  # why it was dropped
    attempts = models.PositiveSmallIntegerField(default=0, db_default=0)
    # What the channel calls the message that it took.
    message_id = models.CharField(max_length=250, blank=True, default="", db_default="")
    # Why the last attempt failed, in Counterseal's words; "" after one that did not.
    error = models.CharField(max_length=200, blank=True, default="", db_default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=[
                    "person",
                    "request",
                    "execution",
                    "version",
                    "kind",
                    "occasion",
                    "channel",
                    "target",
                ],
                nulls_distinct=False,
                name="notice_once",
            ),
            models.CheckConstraint(
                name="notice_about_one",
                condition=_build_subject_check(),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["person", "-sent_at"],
                name="notice_sent",
                condition=Q(sent_at__isnull=False),
            ),
            models.Index(
                fields=["person", "due_at"],
                name="notice_unsent",
                condition=Q(sent_at__isnull=True, let_go=""),
            ),
            models.Index(
                fields=["drill"],
                name="notice_of_drill",
                condition=Q(drill__isnull=False),
            ),
            models.Index(
                fields=["question"],
                name="notice_of_question",
                condition=Q(question__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.person_id or self.target or self.channel}"


class PushSubscription(models.Model):
    """A browser that shows push messages to a person. The browser chose the address and
    the keys (RFC 8030, RFC 8291)."""

    person = person_key("push_subscriptions", on_delete=models.CASCADE)
    endpoint = models.CharField(max_length=1000)
    digest = models.BinaryField(max_length=32, unique=True)  # SHA-256 of the endpoint
    p256dh = models.CharField(max_length=100)  # the browser's public key, base64url
    auth = models.CharField(max_length=32)  # a secret of 16 bytes, base64url
    browser = models.CharField(max_length=80, blank=True)  # in words, for the page
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.browser or 'browser'} of {self.person_id}"


class Sighting(models.Model):
    """A person has seen an announced effect, and may have marked it a near miss."""

    person = person_key("sightings")
    execution = models.ForeignKey(
        Execution, on_delete=models.PROTECT, related_name="sightings"
    )
    near_miss = models.BooleanField(default=False)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["person", "execution"], name="sighting_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.execution_id} by {self.person_id}"
