"""What people send about an agent."""

from __future__ import annotations

from typing import Any

from django import forms

from journal.errors import Invalid

from . import endpoints
from .models import LONGEST_URL, Agent


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
