"""What a person says of how the desk is to be: three forms, each one page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from reviews import shortcuts
from reviews.preferences import Display, Keys
from reviews.shortcuts import CHORD, Choice


class DisplayForm(forms.Form):
    """Every field has a choice; what is not sent is as it was."""

    theme = forms.ChoiceField(
        label="Theme",
        choices=[("system", "As the system"), ("light", "Light"), ("dark", "Dark")],
        widget=forms.RadioSelect,
    )
    density = forms.ChoiceField(
        label="Density of lists",
        choices=[
            ("comfortable", "Comfortable: two lines a row"),
            ("compact", "Compact: one line a row"),
        ],
        widget=forms.RadioSelect,
    )
    diff = forms.ChoiceField(
        label="Differences",
        choices=[
            ("auto", "Side by side where there is room"),
            ("unified", "One below the other"),
            ("side", "Side by side"),
        ],
        widget=forms.RadioSelect,
    )
    advance = forms.ChoiceField(
        label="After a decision",
        choices=[
            ("off", "Stay on its page"),
            ("on", "Go on to the next request"),
            ("unless_rejected", "Go on, but stay after a rejection"),
        ],
        widget=forms.RadioSelect,
    )
    timers = forms.ChoiceField(
        label="Time left",
        choices=[("minutes", "In words: 11 min left"), ("clock", "As a clock: 11:04")],
        widget=forms.RadioSelect,
    )
    sound = forms.BooleanField(
        label="A short sound three seconds before a recall window closes",
        help_text="Only while its page is open. Your browser may keep it silent.",
        required=False,
    )

    @property
    def shape(self) -> Display:
        return Display(**self.cleaned_data)


class KeysForm:
    """One field for each key that may be chosen; what was typed survives an error."""

    def __init__(self, keys: Keys, data: Mapping[str, str] | None = None) -> None:
        self.on = keys.on if data is None else "on" in data
        self.mine = dict(keys.mine) if data is None else _typed(data)
        self.errors = {} if data is None else shortcuts.problems(self.mine)

    @property
    def shape(self) -> Keys:
        return Keys(on=self.on, mine=dict(shortcuts.changed(self.mine)))

    @property
    def places(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Every action under where it works, with what is wrong with its key."""
        return [
            (where, [self._row(one) for one in members])
            for where, members in shortcuts.by_place(self.mine)
        ]

    def _row(self, one: Choice) -> dict[str, Any]:
        return {"choice": one, "error": self.errors.get(one.shortcut.key, "")}


def _typed(data: Mapping[str, str]) -> dict[str, str]:
    """Usual key -> what was typed for it; an empty field means the usual."""
    found = {}
    for one in shortcuts.choices({}):
        typed = data.get(one.field, "").strip().lower()[:8]
        if typed and not one.shortcut.fixed:
            chord = CHORD if one.shortcut.key.startswith(CHORD) else ""
            found[one.shortcut.key] = chord + typed
    return found
