"""The forms of a person's settings: display, keyboard shortcuts and notifications."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse

from journal.errors import TextMissing
from policies import people
from policies.choices import Risk
from policies.models import Person
from policies.passkeys import LONGEST_ANSWER, LONGEST_NAME
from reviews.people import preferences, shortcuts
from reviews.people.preferences import (
    DisplayPreferences,
    KeyPreferences,
    NotificationPreferences,
)
from reviews.people.shortcuts import CHORD_PREFIX, PersonalShortcut

from ..components.frame import require_person
from ..components.fresh_sign_in import confirm_form
from ..forms import CODE_LENGTH, TextField
from ..people.forms import PasswordCheckedForm


def _check_zone(name: str) -> str:
    if name and not preferences.is_zone_name(name):
        raise forms.ValidationError(preferences.NO_ZONE_MESSAGE)
    return name


class DisplayForm(forms.Form):
    """The display settings; every field has a choice."""

    theme = forms.ChoiceField(
        label="Theme",
        choices=[("system", "System setting"), ("light", "Light"), ("dark", "Dark")],
        widget=forms.RadioSelect,
    )
    density = forms.ChoiceField(
        label="Density of lists",
        choices=[
            ("comfortable", "Comfortable: two lines per row"),
            ("compact", "Compact: denser rows"),
        ],
        widget=forms.RadioSelect,
    )
    diff = forms.ChoiceField(
        label="Differences",
        choices=[
            ("auto", "Side by side if there is room"),
            ("unified", "Unified, one below the other"),
            ("side", "Side by side"),
        ],
        widget=forms.RadioSelect,
    )
    advance = forms.ChoiceField(
        label="After a decision",
        choices=[
            ("off", "Stay on the page"),
            ("on", "Open the next request"),
            ("unless_rejected", "Open the next request, except after a rejection"),
        ],
        widget=forms.RadioSelect,
    )
    timers = forms.ChoiceField(
        label="Time left",
        choices=[("minutes", "In words: 11 min left"), ("clock", "As a clock: 11:04")],
        widget=forms.RadioSelect,
    )
    zone = forms.CharField(label="Time zone", required=False, max_length=64)

    def clean_zone(self) -> str:
        return _check_zone(self.cleaned_data["zone"])

    @property
    def shape(self) -> DisplayPreferences:
        return DisplayPreferences(**self.cleaned_data)


class KeysForm:
    """One field for each key that a person may change. What was typed survives an
    error."""

    def __init__(
        self, keys: KeyPreferences, data: Mapping[str, str] | None = None
    ) -> None:
        self.on = keys.on if data is None else "on" in data
        self.mine = dict(keys.mine) if data is None else _read_typed_keys(data)
        self.errors = {} if data is None else shortcuts.list_key_problems(self.mine)

    @property
    def shape(self) -> KeyPreferences:
        return KeyPreferences(
            on=self.on, mine=dict(shortcuts.list_changed_keys(self.mine))
        )

    @property
    def places(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """The actions by the page they work on, with the errors of their keys."""
        return [
            (where, [self._row(choice) for choice in members])
            for where, members in shortcuts.group_shortcuts(self.mine)
        ]

    def _row(self, choice: PersonalShortcut) -> dict[str, Any]:
        return {"choice": choice, "error": self.errors.get(choice.shortcut.key, "")}


def _read_typed_keys(data: Mapping[str, str]) -> dict[str, str]:
    """Read the typed key by its default key; an empty field means the default."""
    keys = {}
    for choice in shortcuts.list_shortcuts({}):
        typed = data.get(choice.field, "").strip().lower()[:8]
        if typed and not choice.shortcut.fixed:
            chord = CHORD_PREFIX if choice.shortcut.key.startswith(CHORD_PREFIX) else ""
            keys[choice.shortcut.key] = chord + typed
    return keys


MAIL_CHOICES = [
    ("now", "Immediately"),
    ("unclaimed", "If still unclaimed"),
    ("digest", "In a daily digest"),
    ("never", "Never"),
]
DESK_CHOICES = [("now", "Immediately"), ("never", "Never")]
TIME_WIDGET = forms.TimeInput(format="%H:%M", attrs={"type": "time"})


def _build_number(label: str, most: int) -> forms.IntegerField:
    message = f"Enter a whole number from 1 to {most}."
    kinds = ("required", "invalid", "min_value", "max_value")
    return forms.IntegerField(
        label=label,
        min_value=1,
        max_value=most,
        error_messages=dict.fromkeys(kinds, message),
    )


def _build_time(label: str, *, required: bool = True) -> forms.TimeField:
    message = "Enter a time of day, such as 08:00."
    return forms.TimeField(
        label=label,
        required=required,
        widget=TIME_WIDGET,
        error_messages=dict.fromkeys(("required", "invalid"), message),
    )


class BrowserForm(forms.Form):
    """What a browser sends to register for push messages."""

    endpoint = forms.CharField(max_length=1000)
    p256dh = forms.CharField(max_length=100)
    auth = forms.CharField(max_length=32)


class NotificationsForm(forms.Form):
    """By risk: what is sent on each channel and when, and what an open page announces.
    The other fields set the digest, quiet hours and limits. `channels` are the names
    and titles of the personal channels that this installation has."""

    minutes = _build_number("“If still unclaimed” waits", 1440)
    digest_at = _build_time("Send the daily digest at")
    quiet_from = _build_time("Quiet hours from", required=False)
    quiet_until = _build_time("Quiet hours until", required=False)
    zone = forms.CharField(
        label="Time zone of these times",
        max_length=64,
        error_messages={"required": preferences.NO_ZONE_MESSAGE},
    )
    per_hour = _build_number("Messages per hour on each channel", 1000)
    phone = forms.CharField(label="Phone number", required=False, max_length=32)
    once_taken = forms.BooleanField(required=False)
    on_call = forms.BooleanField(required=False)

    def __init__(
        self,
        now: NotificationPreferences,
        data: Mapping[str, str] | None = None,
        *,
        channels: Sequence[tuple[str, str]] = (("email", "Mail"),),
    ) -> None:
        self.now, self.channels = now, channels
        initial = now.model_dump()
        for risk in Risk:
            initial[f"desk-{risk}"] = now.desk.get(risk, "now")
            for channel, _ in channels:
                initial[f"{channel}-{risk}"] = now.choose_timing(channel, risk)
        super().__init__(data, initial=initial)
        for risk in Risk:
            name = risk.value.capitalize()
            self.fields[f"desk-{risk}"] = forms.ChoiceField(
                choices=DESK_CHOICES, label=f"{name}, on an open page"
            )
            for channel, title in channels:
                self.fields[f"{channel}-{risk}"] = forms.ChoiceField(
                    choices=MAIL_CHOICES, label=f"{name}, {title.lower()}"
                )

    def clean_phone(self) -> str:
        try:
            return preferences.check_phone(self.cleaned_data["phone"])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None

    def clean_zone(self) -> str:
        return _check_zone(self.cleaned_data["zone"])

    def clean(self) -> None:
        given = [self.cleaned_data.get(f"quiet_{end}") for end in ("from", "until")]
        if (given[0] is None) != (given[1] is None) and not self.errors:
            self.add_error("quiet_until", "Quiet hours need a start and an end.")

    @property
    def has_phone(self) -> bool:
        """Whether text messages can be sent, so that a number is of use."""
        return any(channel == "sms" for channel, _ in self.channels)

    @property
    def rows(self) -> list[tuple[str, Any, list[tuple[str, Any]]]]:
        """One row of the matrix for each risk, highest first: the field of the open
        page, and those of the channels with their titles."""
        return [
            (
                risk.value,
                self[f"desk-{risk}"],
                [(title, self[f"{name}-{risk}"]) for name, title in self.channels],
            )
            for risk in reversed(Risk)
        ]

    @property
    def shape(self) -> NotificationPreferences:
        """The valid form as a preference. What is chosen for a channel that this
        installation does not have now is kept."""
        values = dict(self.cleaned_data)
        chosen = {
            channel: {risk: values.pop(f"{channel}-{risk}") for risk in Risk}
            for channel, _ in self.channels
        }
        desk = {risk: values.pop(f"desk-{risk}") for risk in Risk}
        if not self.has_phone:
            values.pop("phone")
        return NotificationPreferences.model_validate(
            {**self.now.model_dump(), **values, **chosen, "desk": desk}
        )


Act = Callable[[HttpRequest, Person], HttpResponse]


def choose_act(request: HttpRequest, acts: Mapping[str, Act]) -> Act:
    """What the field `act` of a page with several forms says. Raises TextMissing for
    anything else."""
    act = acts.get(request.POST.get("act", ""))
    if act is None:
        raise TextMissing("Choose what to do. Nothing was changed.")
    return act


class CodeForm(forms.Form):
    """A code of an authenticator app, or for recovery."""

    code = TextField(
        max_length=CODE_LENGTH, error_messages={"required": "Enter the code."}
    )


class SignInCodeForm(CodeForm):
    """The second factor at a sign-in: a code, or the answer of a passkey."""

    code = TextField(max_length=CODE_LENGTH, required=False)
    passkey = TextField(max_length=LONGEST_ANSWER, required=False)

    def clean_passkey(self) -> str:
        """The answer; without it, mark a missing code."""
        answer: str = self.cleaned_data["passkey"]
        if not answer and not self.cleaned_data.get("code"):
            self.add_error("code", "Enter the code.")
        return answer


class FactorRemovalForm(SignInCodeForm):
    """The password, or a fresh sign-in in its place, and a second factor besides."""

    password = forms.CharField(max_length=1024, strip=False, required=False)
    fresh = forms.BooleanField(required=False)

    def clean_passkey(self) -> str:
        """The answer; the second factor comes after a fresh sign-in."""
        answer: str = self.cleaned_data["passkey"]
        return answer if "fresh" in self.data else super().clean_passkey()

    def clean(self) -> None:
        """Mark a missing password."""
        sent = self.cleaned_data
        if not sent.get("password") and not sent.get("fresh"):
            self.add_error("password", "Enter your password.")

    def confirm(self, http: HttpRequest) -> None:
        """Check the password of a valid form, or the fresh sign-in. Raises what
        `confirm_password` and `confirm_form` raise."""
        password: str = self.cleaned_data["password"]
        if password:
            people.confirm_password(http, require_person(http), password)
        else:
            confirm_form(http, with_code=True)


class PasskeyForm(PasswordCheckedForm):
    """The name of a new passkey, and proof of who adds it."""

    name = TextField(
        max_length=LONGEST_NAME,
        error_messages={"required": "Enter a name, such as the device it is on."},
    )


class PasskeyRemovalForm(FactorRemovalForm):
    """Which passkey is removed, and proof of who removes it."""

    which = forms.IntegerField(
        min_value=1,
        max_value=2**62,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"), "Choose a passkey."
        ),
    )
