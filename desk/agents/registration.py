"""The forms of an agent's registration, settings and keys, and the page of its keys."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.core.validators import validate_slug

from agents import registry
from agents.models import Agent, AgentKey
from journal.errors import InvalidInput
from policies import active, budgets, tools
from policies.choices import Risk
from policies.documents import EVERY_TOOL
from policies.models import Person
from reviews.administration.second_person import LONGEST_TEXT
from reviews.effects.wording import format_names

from ..forms import TextField
from ..people.forms import PasswordCheckedForm

MOST_KEYS = 50  # shown, the newest first
MOST_DAYS = 3650
_SEPARATORS = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """A tool of the active policy, with its box in the form."""

    name: str
    title: str
    risk: str
    chosen: bool


class _ToolNames(forms.Textarea):
    """Boxes and a text, each with names: a text with all of them."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str:
        return "\n".join(data.getlist(name))


class SettingsForm(PasswordCheckedForm):
    """Who answers for an agent, and what it may propose. `held` are the tools that it
    may propose already, also those that no policy has any more."""

    owner = forms.ModelChoiceField(
        Person.objects.none(),
        to_field_name="public_id",
        error_messages={
            "required": "Choose who answers for the agent.",
            "invalid_choice": "Choose one of these people.",
        },
    )
    every_tool = forms.BooleanField(required=False)
    tools = TextField(max_length=8000, required=False, widget=_ToolNames)
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

    def __init__(self, *args: Any, held: Collection[str] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        people: Any = self.fields["owner"]
        people.queryset = Person.objects.filter(is_active=True).order_by("username")
        self.held = held
        policy = active.find_active_policy()
        self.known = active.load_tools(policy) if policy else {}

    @property
    def tool_choices(self) -> list[ToolChoice]:
        """A box for each tool of the active policy."""
        names = _split(self["tools"].value())
        return [
            ToolChoice(
                name, tools.load_definition(tool).title, tool.risk, name in names
            )
            for name, tool in sorted(self.known.items())
        ]

    @property
    def typed_tools(self) -> str:
        """The names and patterns that have no box."""
        names = _split(self["tools"].value())
        return "\n".join(name for name in names if name not in self.known)

    def clean_tools(self) -> list[str]:
        """The names, with each pattern in place of the policy's tools that it
        matches."""
        words = _split(self.cleaned_data["tools"])
        patterns = [word for word in words if registry.is_pattern(word)]
        named = [word for word in words if not registry.is_pattern(word)]
        if long := next((word for word in named if len(word) > 64), None):
            raise forms.ValidationError(f"No tool has a name as long as {long[:64]}….")
        strange = [word for word in named if word not in {*self.known, *self.held}]
        if strange and self.known:
            raise forms.ValidationError(_describe_strange(strange[0], self.known))
        return sorted({*named, *_match(patterns)})

    def clean_daily_money(self) -> dict[str, str]:
        """The budget; empty for none."""
        try:
            return budgets.parse_budget(self.cleaned_data["daily_money"])
        except InvalidInput as error:
            raise _to_form_error(error) from None

    @property
    def chosen_tools(self) -> Sequence[str]:
        """What a valid form lets the agent propose."""
        sent = self.cleaned_data
        return [EVERY_TOOL] if sent["every_tool"] else sent["tools"]

    @property
    def refused_calls(self) -> str:
        """Which of the chosen tools the chosen maximum risk keeps out, of a valid form;
        "" for none."""
        most = Risk(self.cleaned_data["risk_ceiling"])
        above = [
            f"{name} ({self.known[name].risk} risk)"
            for name in sorted({*self.chosen_tools} & {*self.known})
            if Risk(self.known[name].risk).rank > most.rank
        ]
        if not above:
            return ""
        listed = format_names(above, most=5)
        return f"Its maximum risk is {most}: calls of {listed} are refused."


def _split(text: str | None) -> list[str]:
    return [word for word in _SEPARATORS.split(text or "") if word]


def _to_form_error(error: InvalidInput) -> forms.ValidationError:
    message = error.errors[0]["message"]
    return forms.ValidationError(f"{message[:1].upper()}{message[1:]}.")


def _describe_strange(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    question = f" Did you mean {near[0]}?" if near else ""
    return (
        f"The active policy has no tool {name}.{question} A policy that brings a new"
        " tool can give it to agents when it is activated."
    )


def _match(patterns: Sequence[str]) -> list[str]:
    try:
        return registry.match_tools(patterns)
    except InvalidInput as error:
        raise _to_form_error(error) from None


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
