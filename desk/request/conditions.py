"""The conditions of an approval: what its panel offers, and what was sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import QueryDict
from django.utils import timezone

from journal.errors import DomainError
from reviews.choices import Verdict
from reviews.governance import readings
from reviews.grants.grants import NO_CONDITIONS, ExpectedValue, GrantConditions

from ..components.formatting import format_condition_value
from ..forms import DecisionForm
from .load import LoadedRequest


@dataclass(frozen=True, slots=True)
class ConditionChoice:
    """A field of the current reading, and its value: untrusted text."""

    name: str
    label: str
    value: str
    checked: bool


@dataclass(frozen=True, slots=True)
class ConditionFields:
    """The conditions of an approval as typed, and what is wrong with them."""

    not_before: str
    not_after: str
    choices: Sequence[ConditionChoice]
    zone: str  # of the times
    errors: Mapping[str, str]  # by field: not_before, not_after, expect

    @property
    def is_open(self) -> bool:
        typed = bool(self.not_before or self.not_after or self.errors)
        return typed or any(choice.checked for choice in self.choices)


LONGEST_VALUE = 200  # characters; a longer value is no condition for people
PATH_PREFIX = "conditions."  # of their errors


def build_condition_fields(
    loaded: LoadedRequest, data: Mapping[str, str] | None, error: DomainError | None
) -> ConditionFields:
    """The fields as they were sent, and what is wrong with them."""
    shown = readings.load_shown_reading(loaded.reading, loaded.revision)
    labels, known = shown.get("labels", {}), readings.list_plain_values(shown)
    chosen = data.getlist("expect") if isinstance(data, QueryDict) else []
    typed = data or {}
    errors = {
        problem["path"].removeprefix(PATH_PREFIX).partition(".")[0]: problem["message"]
        for problem in (error.errors if error else ())
        if problem["path"].startswith(PATH_PREFIX)
    }
    return ConditionFields(
        not_before=typed.get("not_before", ""),
        not_after=typed.get("not_after", ""),
        choices=[
            ConditionChoice(
                name,
                labels.get(name, name.replace("_", " ").capitalize()),
                format_condition_value(value),
                name in chosen,
            )
            for name, value in known.items()
            if len(str(value)) <= LONGEST_VALUE
        ],
        zone=timezone.get_current_timezone_name(),
        errors=errors,
    )


def parse_conditions(
    loaded: LoadedRequest, form: DecisionForm, expected: Sequence[str]
) -> GrantConditions:
    """The conditions of an approval; `expected` names the fields that must be as they
    are. An expected value is the one of the reading on the
    page; the decision itself refuses another reading."""
    if form.meant is not Verdict.APPROVE:
        return NO_CONDITIONS
    shown = readings.load_shown_reading(loaded.reading, loaded.revision)
    known = readings.list_plain_values(shown)
    return GrantConditions(
        form.cleaned_data["not_before"],
        form.cleaned_data["not_after"],
        tuple(ExpectedValue(name, known.get(name)) for name in dict.fromkeys(expected)),
    )
