"""Forms of the agents' pages."""

from __future__ import annotations

from typing import Any

from django import forms

from agents.models import MAX_URL_LENGTH, Agent
from agents.webhooks import endpoints
from journal import canonical
from journal.errors import DomainError, InvalidInput
from reviews.choices import RepairChange

from ..forms import TextField


class EndpointForm(forms.Form):
    """The address of a new webhook endpoint."""

    url = TextField(
        max_length=MAX_URL_LENGTH,
        error_messages={"required": "Enter the URL that receives the webhooks."},
    )

    def __init__(self, *args: Any, agent: Agent) -> None:
        super().__init__(*args)
        self.agent = agent

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        try:
            endpoints.check_new_url(self.agent, url)
        except InvalidInput as error:
            message = error.errors[0]["message"]
            raise forms.ValidationError(
                f"{message[:1].upper()}{message[1:]}."
            ) from None
        return url


class ReversalForm(forms.Form):
    """The reason for a reversal."""

    reason = TextField(
        max_length=2000,
        error_messages={
            "required": "Enter a reason. The people who decide will read it."
        },
    )


class RepairForm(forms.Form):
    """A proposed repair and its reason. `change` is a RepairChange, followed by `:` and
    the execution's id for a change of one; `resume_at` and `state` are the corrected
    checkpoint's."""

    change = TextField(
        max_length=80, error_messages={"required": "Choose what to repair."}
    )
    reason = TextField(
        max_length=2000,
        error_messages={"required": "Describe what is wrong. It is logged."},
    )
    resume_at = TextField(max_length=128, required=False)
    state = TextField(max_length=70_000, required=False)

    def clean_change(self) -> tuple[RepairChange, str]:
        change, _, execution = self.cleaned_data["change"].partition(":")
        if change not in set(RepairChange):
            raise forms.ValidationError("Choose what to repair.")
        of_execution = change in {RepairChange.SAY_UNKNOWN, RepairChange.NEVER_RUN}
        if of_execution != bool(execution):
            raise forms.ValidationError("Choose what to repair.")
        return RepairChange(change), execution

    def clean(self) -> None:
        change, _ = self.cleaned_data.get("change") or ("", "")
        state = self.cleaned_data.get("state", "")
        if change == RepairChange.CHECKPOINT and not _is_json_object(state):
            self.add_error("state", "Enter the state as a JSON object.")


def _is_json_object(typed: str) -> bool:
    try:
        return isinstance(canonical.parse(typed.encode()), dict)
    except DomainError:
        return False


class RepairAnswerForm(forms.Form):
    """The second person's answer to a repair: confirm, or refuse with a reason."""

    do = forms.ChoiceField(choices=[("confirm", ""), ("refuse", "")])
    answer = TextField(max_length=2000, required=False)

    def clean(self) -> None:
        values = self.cleaned_data
        if values.get("do") == "refuse" and not values.get("answer"):
            self.add_error("answer", "Enter a reason. The audit log keeps it.")
