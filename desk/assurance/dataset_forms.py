"""The form that asks for a dataset."""

from __future__ import annotations

from typing import Any

from django import forms

from assurance.datasets.consent import DatasetTerms, describe_share_problem
from journal.errors import DomainError
from policies.models import Person, Tool
from reviews.administration.second_person import LONGEST_TEXT

from ..forms import DayField, TextField

_DAY_ERRORS = {
    "required": "Enter a day, such as 2026-11-25.",
    "invalid": "Enter a day as year, month and day, such as 2026-11-25.",
}
_SHARE_RULE = "Enter a whole number from 0 to 100."
_SHARE_ERRORS = dict.fromkeys(
    ("required", "invalid", "min_value", "max_value"), _SHARE_RULE
)


def _build_share(percent: int) -> forms.IntegerField:
    return forms.IntegerField(
        min_value=0, max_value=100, initial=percent, error_messages=_SHARE_ERRORS
    )


class DatasetForm(forms.Form):
    """Purpose, owner, tools, period and split. The operation checks how they fit."""

    purpose = TextField(
        max_length=LONGEST_TEXT,
        error_messages={"required": "Say what the dataset is for."},
    )
    owner = forms.ModelChoiceField(
        Person.objects.none(),
        to_field_name="public_id",
        error_messages={
            "required": "Choose who is responsible for the file.",
            "invalid_choice": "Choose one of these people as the owner.",
        },
    )
    tools = forms.MultipleChoiceField(
        error_messages={
            "required": "Choose at least one tool.",
            "invalid_choice": "Choose among these tools only.",
        },
    )
    since = DayField(label="First day", error_messages=_DAY_ERRORS)
    until = DayField(label="Last day", error_messages=_DAY_ERRORS)
    train = _build_share(70)
    validation = _build_share(15)
    test = _build_share(15)
    with_canaries = forms.BooleanField(required=False)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        people: Any = self.fields["owner"]
        people.queryset = Person.objects.filter(is_active=True).order_by("username")
        names = Tool.objects.order_by("name").values_list("name", flat=True).distinct()
        tools: Any = self.fields["tools"]
        tools.choices = [(name, name) for name in names]

    def clean(self) -> None:
        """Mark every share when their sum is wrong, beside the errors of others."""
        shares = [self.cleaned_data.get(field.name) for field in self.shares]
        given = [share for share in shares if share is not None]
        if len(given) == len(shares) and (problem := describe_share_problem(given)):
            for field in self.shares:
                self.add_error(field.name, problem)

    @property
    def days(self) -> list[forms.BoundField]:
        """The fields of the period."""
        return [self["since"], self["until"]]

    @property
    def shares(self) -> list[forms.BoundField]:
        """The fields of the split, in percent."""
        return [self["train"], self["validation"], self["test"]]

    @property
    def terms(self) -> DatasetTerms:
        """What a valid form asks for."""
        return DatasetTerms(**self.cleaned_data)

    def add_refusal(self, refusal: DomainError) -> None:
        """Show each problem that the operation found at its field."""
        for error in refusal.errors:
            self.add_error(error["path"], error["message"])
