"""The forms of an agent's registration, settings and keys, and the page of its keys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.core.validators import validate_slug

from agents import registry
from agents.models import Agent, AgentKey
from journal.errors import InvalidInput
from policies import active, budgets
from policies.choices import Risk
from policies.documents import EVERY_TOOL
from policies.models import Person
from reviews.administration.second_person import LONGEST_TEXT

from ..forms import TextField
from ..people.forms import PasswordCheckedForm

MOST_KEYS = 50  # shown, the newest first
MOST_DAYS = 3650
_SEPARATORS = re.compile(r"[\s,]+")


class SettingsForm(PasswordCheckedForm):
    """Who answers for an agent, and what it may propose."""

    owner = forms.ModelChoiceField(
        Person.objects.none(),
        to_field_name="public_id",
        error_messages={
            "required": "Choose who answers for the agent.",
            "invalid_choice": "Choose one of these people.",
        },
    )
    every_tool = forms.BooleanField(required=False)
    tools = TextField(max_length=8000, required=False)
    risk_ceiling = forms.ChoiceField(
        choices=[(risk.value, risk.value.capitalize()) for risk in reversed(Risk)],
        initial=Risk.CRITICAL,
        error_messages={"invalid_choice": "Choose one of these."},
    )

    daily_proposals = forms.IntegerField(
        min_value=1,
        max_value=registry.MOST_DAILY,
        required=False,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            f"Enter a number of proposals from 1 to {registry.MOST_DAILY}, or nothing.",
        ),
    )

    daily_money = TextField(max_length=800, required=False)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        people: Any = self.fields["owner"]
        people.queryset = Person.objects.filter(is_active=True).order_by("username")

    def clean_tools(self) -> list[str]:
        """The names, with each pattern in place of the policy's tools that it
        matches."""
        words = [word for word in _SEPARATORS.split(self.cleaned_data["tools"]) if word]
        patterns = [word for word in words if registry.is_pattern(word)]
        named = [word for word in words if not registry.is_pattern(word)]
        if long := next((word for word in named if len(word) > 64), None):
            raise forms.ValidationError(f"No tool has a name as long as {long[:64]}….")
        return sorted({*named, *_match(patterns)})

    def clean_daily_money(self) -> dict[str, str]:
        """The budget; empty for none."""
        try:
            return budgets.parse_budget(self.cleaned_data["daily_money"])
        except InvalidInput as error:
            message = error.errors[0]["message"]
            raise forms.ValidationError(
                f"{message[:1].upper()}{message[1:]}."
            ) from None

    @property
    def chosen_tools(self) -> Sequence[str]:
        """What a valid form lets the agent propose."""
        sent = self.cleaned_data
        return [EVERY_TOOL] if sent["every_tool"] else sent["tools"]


def _match(patterns: Sequence[str]) -> list[str]:
    try:
        return registry.match_tools(patterns)
    except InvalidInput as error:
        message = error.errors[0]["message"]
        raise forms.ValidationError(f"{message[:1].upper()}{message[1:]}.") from None


class RegistrationForm(SettingsForm):
    """A new agent."""

    slug = forms.CharField(
        max_length=64,
        validators=[validate_slug],
        error_messages={"required": "Enter an id, such as riley."},
    )
    name = forms.CharField(
        max_length=128, error_messages={"required": "Enter a name that people read."}
    )
    unattended = forms.BooleanField(required=False)
    reason = TextField(max_length=LONGEST_TEXT, required=False)


class ChangeForm(SettingsForm):
    """Other settings of an agent, with the reason for what lets it do more."""

    reason = TextField(max_length=LONGEST_TEXT, required=False)


class KeyForm(PasswordCheckedForm):
    """A new key, for so many days or without an end."""

    days = forms.IntegerField(
        min_value=1,
        max_value=MOST_DAYS,
        required=False,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            f"Enter a number of days from 1 to {MOST_DAYS}, or nothing.",
        ),
    )


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One key of an agent; `valid` while a call with it is admitted."""

    key: AgentKey
    state: str
    valid: bool

    @property
    def ends_at(self) -> datetime | None:
        """When it ended or ends; None while nothing ends it."""
        return self.key.revoked_at or self.key.expires_at


def list_keys(agent: Agent, now: datetime) -> list[KeyLine]:
    """The agent's keys, newest first."""
    keys = agent.keys.order_by("-created_at", "-pk")[:MOST_KEYS]
    return [_build_line(key, now) for key in keys]


def _build_line(key: AgentKey, now: datetime) -> KeyLine:
    if key.revoked_at is not None:
        return KeyLine(key, "Revoked", valid=False)
    if key.expires_at is not None and key.expires_at <= now:
        return KeyLine(key, "Expired", valid=False)
    return KeyLine(key, "Valid", valid=True)


def list_policy_tools() -> list[str]:
    """The names of the active policy's tools."""
    policy = active.find_active_policy()
    return sorted(active.load_document(policy).tools) if policy else []
