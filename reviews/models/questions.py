"""Questions of agents to people, each with the form of its answer."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from policies.models import Person, Queue
from reviews.choices import QuestionStatus

from .base import (
    build_choice_check,
    build_choices,
    build_removal_index,
    new_question_id,
    person_key,
    removed_after,
)


class Question(models.Model):
    """A question of an agent to the reviewers of one queue or to one person. Its answer
    is data: it authorises nothing."""

    id = models.CharField(max_length=40, primary_key=True, default=new_question_id)
    status = models.CharField(max_length=9, choices=build_choices(QuestionStatus))
    agent = models.CharField(max_length=64)
    thread = models.CharField(max_length=128)
    owner = models.CharField(max_length=40)  # the agent's, who may read it
    queue = models.ForeignKey(
        Queue,
        null=True,
        on_delete=models.PROTECT,
        db_index=False,
        related_name="questions",
    )
    person = person_key("questions", null=True, db_index=False)
    text = models.TextField()  # redacted, as the titles in `schema` are
    schema = (
        models.JSONField()
    )  # as `reviews.questions.forms.build_form_schema` makes it
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    answer = models.JSONField(null=True)
    note = models.TextField(blank=True)  # why a person declined to answer
    settled_by = person_key(null=True, db_index=False)  # who answered or declined
    settled_at = models.DateTimeField(null=True)
    removed_after = removed_after()

    class Meta:
        constraints: ClassVar = [
            build_choice_check("question_status", "status", QuestionStatus),
            models.CheckConstraint(
                name="question_to_one",
                condition=Q(queue__isnull=True, person__isnull=False)
                | Q(queue__isnull=False, person__isnull=True),
            ),
            models.CheckConstraint(
                name="question_end_paired",
                condition=Q(status="open", settled_at__isnull=True)
                | ~Q(status="open") & Q(settled_at__isnull=False),
            ),
            models.CheckConstraint(
                name="question_person_paired",
                condition=Q(
                    status__in=["answered", "declined"], settled_by__isnull=False
                )
                | Q(settled_by__isnull=True) & ~Q(status__in=["answered", "declined"]),
            ),
            models.CheckConstraint(
                name="question_answer_paired",
                condition=Q(status="answered", answer__isnull=False)
                | ~Q(status="answered") & Q(answer__isnull=True),
            ),
            models.CheckConstraint(
                name="question_note_declined",
                condition=Q(note="") | Q(status="declined"),
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["expires_at"],
                name="question_open",
                condition=Q(status="open"),
            ),
            models.Index(
                fields=["agent", "thread", "-asked_at"], name="question_of_run"
            ),
            models.Index(fields=["agent", "-asked_at"], name="question_of_agent"),
            models.Index(fields=["-settled_at"], name="question_settled"),
            build_removal_index("question_removable", "settled_at"),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def addressee(self) -> Person | Queue:
        """Whom it asks."""
        chosen = self.person or self.queue
        assert chosen is not None  # the database says so
        return chosen
