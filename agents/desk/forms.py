"""What people send about an agent."""

from __future__ import annotations

from typing import Any

from django import forms

from agents.models import LONGEST_URL, Agent
from agents.webhooks import endpoints
from journal.errors import Invalid
from reviews.choices import RepairChange


class EndpointForm(forms.Form):
    """Where an agent wants to hear what became of its proposals."""

    url = forms.CharField(
        max_length=LONGEST_URL,
        error_messages={"required": "Say where the letters go."},
    )

    def __init__(self, *args: Any, agent: Agent) -> None:
        super().__init__(*args)
        self.agent = agent

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        try:
            endpoints.check_new(self.agent, url)
        except Invalid as error:
            said = error.errors[0]["message"]
            raise forms.ValidationError(f"{said[:1].upper()}{said[1:]}.") from None
        return url


class UndoForm(forms.Form):
    """Why something is to be undone."""

    reason = forms.CharField(
        max_length=2000,
        error_messages={"required": "Say why. Who decides it reads this."},
    )


class RepairForm(forms.Form):
    """What is to be mended, and what is wrong. `change` names an execution where it is
    about one; the last two fields are a checkpoint's."""

    change = forms.CharField(
        max_length=80, error_messages={"required": "Choose what is to be mended."}
    )
    reason = forms.CharField(
        max_length=2000,
        error_messages={"required": "Say what is wrong. The log keeps it."},
    )
    resume_at = forms.CharField(max_length=128, required=False)
    state = forms.CharField(max_length=70_000, required=False)

    def clean_change(self) -> tuple[RepairChange, str]:
        change, _, execution = self.cleaned_data["change"].partition(":")
        if change not in set(RepairChange):
            raise forms.ValidationError("Choose what is to be mended.")
        of_execution = change in {RepairChange.SAY_UNKNOWN, RepairChange.NEVER_RUN}
        if of_execution != bool(execution):
            raise forms.ValidationError("Choose what is to be mended.")
        return RepairChange(change), execution


class AnswerForm(forms.Form):
    """What a second person says to a repair."""

    do = forms.ChoiceField(choices=[("confirm", ""), ("refuse", "")])
    answer = forms.CharField(max_length=2000, required=False)

    def clean(self) -> None:
        said = self.cleaned_data
        if said.get("do") == "refuse" and not said.get("answer"):
            self.add_error("answer", "Say why not. The log keeps it.")
