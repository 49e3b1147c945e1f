"""The forms of the on-call page: a shift, and a drill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from journal.errors import DomainError
from policies.choices import Risk
from policies.models import Person, Queue

from ..forms import TimeField

_TIME_ERRORS = {
    "required": "Enter a day and a time, such as 2026-11-25 18:00.",
    "invalid": "Enter a day and a time, such as 2026-11-25 18:00.",
}
_QUEUE_ERRORS = {
    "required": "Choose a queue.",
    "invalid_choice": "Choose one of your queues.",
}


class _QueueForm(forms.Form):
    queue = forms.ModelChoiceField(
        Queue.objects.none(), to_field_name="name", error_messages=_QUEUE_ERRORS
    )

    def __init__(self, *args: Any, queues: Sequence[int], **more: Any) -> None:
        super().__init__(*args, **more)
        self._set_choices("queue", Queue.objects.filter(pk__in=queues), "title")

    def _set_choices(self, name: str, rows: Any, order: str) -> None:
        field: Any = self.fields[name]
        field.queryset = rows.order_by(order, "pk")

    def add_refusal(self, refusal: DomainError) -> None:
        """Show each problem that the operation found at its field, or as a whole."""
        for error in refusal.errors:
            self.add_error(error["path"], error["message"])
        if not refusal.errors:
            self.add_error(None, refusal.detail)


class ShiftForm(_QueueForm):
    """Who is on call, for which queue and when, in the reader's time zone."""

    person = forms.ModelChoiceField(
        Person.objects.none(),
        to_field_name="public_id",
        error_messages={
            "required": "Choose a person.",
            "invalid_choice": "Choose one of these people.",
        },
    )
    begins_at = TimeField(label="From", error_messages=_TIME_ERRORS)
    ends_at = TimeField(label="Until", error_messages=_TIME_ERRORS)

    def __init__(self, *args: Any, people: Sequence[int], **more: Any) -> None:
        super().__init__(*args, **more)
        self._set_choices("person", Person.objects.filter(pk__in=people), "username")

    @property
    def times(self) -> list[forms.BoundField]:
        return [self["begins_at"], self["ends_at"]]


class DrillForm(_QueueForm):
    """Which queue's people get the message, and by which risk level's channels."""

    risk = forms.ChoiceField(
        choices=[(risk.value, risk.value.capitalize()) for risk in reversed(Risk)],
        error_messages={
            "required": "Choose a risk level.",
            "invalid_choice": "Choose one of these risk levels.",
        },
    )
