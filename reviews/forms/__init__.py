"""What people send: verdicts, stops and settlements."""

from __future__ import annotations

from django import forms

from reviews.choices import REASONS, Scope, StopMode, Verdict

NOTE_LENGTH = 2000


class ArmForm(forms.Form):
    """Which verb's panel is asked for."""

    arm = forms.ChoiceField(choices=[(v.value, v.value) for v in Verdict])


class DecisionForm(forms.Form):
    """A verdict on the version and bytes that were on the screen."""

    verdict = forms.ChoiceField(choices=[(v.value, v.value) for v in Verdict])
    version = forms.IntegerField(min_value=1)
    action_hash = forms.RegexField(r"^sha256:[0-9a-f]{64}$", max_length=80)
    reason_code = forms.ChoiceField(choices=list(REASONS.items()), required=False)
    reason = forms.CharField(max_length=NOTE_LENGTH, required=False)
    password = forms.CharField(max_length=4096, required=False, strip=False)

    @property
    def meant(self) -> Verdict:
        """What was meant, also on a form that is not valid; refusing is harmless."""
        sent = self.data.get("verdict", "")
        return Verdict(sent) if sent in set(Verdict) else Verdict.REJECT

    @property
    def seen(self) -> int | None:
        """The version that was on the screen."""
        sent = self.data.get("version", "")
        return int(sent) if sent.isdecimal() and len(sent) < 10 else None


class StopForm(forms.Form):
    """What to stop, how, and why. `target` is a scope and its key in one choice."""

    target = forms.CharField(
        max_length=240, error_messages={"required": "Choose what to stop."}
    )
    mode = forms.ChoiceField(
        choices=[(m.value, m.value) for m in StopMode],
        error_messages={"required": "Choose how."},
    )
    reason = forms.CharField(
        max_length=NOTE_LENGTH,
        error_messages={"required": "Say why. The log keeps it."},
    )

    def clean_target(self) -> tuple[Scope, str]:
        scope, _, key = self.cleaned_data["target"].partition(":")
        if scope not in set(Scope):
            raise forms.ValidationError("Choose what to stop.")
        return Scope(scope), key


class ReasonForm(forms.Form):
    """A reason alone: for what is switched on again."""

    reason = forms.CharField(
        max_length=NOTE_LENGTH,
        error_messages={"required": "Say why. The log keeps it."},
    )


class SettleForm(forms.Form):
    """What really happened to an effect whose outcome nobody could know."""

    happened = forms.TypedChoiceField(
        choices=[("yes", "yes"), ("no", "no")],
        coerce=lambda value: value == "yes",
        error_messages={"required": "Choose one: it happened, or it did not."},
    )
    reason = forms.CharField(
        max_length=NOTE_LENGTH,
        error_messages={"required": "Say how you know. The log keeps it."},
    )


class TokenForm(forms.Form):
    """The name of a new personal token."""

    name = forms.CharField(
        max_length=64, error_messages={"required": "Name what will use it."}
    )
