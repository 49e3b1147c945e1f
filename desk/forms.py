"""The forms of the desk: verdicts, drafts, stops, incidents, holds and settlements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, cast

from django import forms
from django.core.validators import MaxLengthValidator
from django.db.models import QuerySet

from journal import clock
from policies.models import Person, Queue
from policies.passkeys import LONGEST_ANSWER
from reviews.choices import (
    EVERY_QUEUE_VALUE,
    REASON_LABELS,
    STOP_REASON_LABELS,
    Scope,
    StopMode,
    StopReason,
    Verdict,
)
from reviews.decisions.drafts import ARGUMENT_PREFIX
from reviews.people import tokens

NOTE_LENGTH = 2000
CODE_LENGTH = 40  # of an app or for recovery, however it is spaced
MAX_NUMBER = 2**31 - 1  # of a version or a round: the database stores no larger one
# A message to the agent: a question or an answer, and a request to revise.
MESSAGE_PANELS = ("ask", "send_back")
EXTENSION_PANEL = "extend"
ALL_AGENTS_PHRASE = "all agents"  # typed to confirm a stop of every agent
REASON_REQUIRED = "Enter a reason. The audit log keeps it."
STOP_REASON_REQUIRED = "Choose a reason, or enter details. The audit log keeps them."
STOP_DETAILS_REQUIRED = "Enter details of the other reason. The audit log keeps them."

TIME_ERRORS = {"invalid": "Enter a date and a time, such as 2026-11-25 14:00."}


class _BrowserLengthValidator(MaxLengthValidator):
    def clean(self, x: Any) -> int:
        return len(str(x).encode("utf-16-le", "surrogatepass")) // 2


class TextField(forms.CharField):
    """A text whose `max_length` is counted as a browser counts `maxlength`: in UTF-16
    code units, so that an emoji is two."""

    def __init__(self, *, max_length: int | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.max_length = max_length
        if max_length is not None:
            self.validators.append(_BrowserLengthValidator(max_length))


def _build_required_text(message: str, longest: int = NOTE_LENGTH) -> TextField:
    """A text that must not be empty; `message` says what to enter."""
    return TextField(max_length=longest, error_messages={"required": message})


class TimeField(forms.DateTimeField):
    """A date and a time in the reader's zone, in the years that the product handles."""

    def to_python(self, value: Any) -> datetime | None:
        moment = super().to_python(value)
        _check_years(moment)
        return moment


class DayField(forms.DateField):
    """A day in the years that the product handles."""

    def to_python(self, value: Any) -> date | None:
        day = super().to_python(value)
        _check_years(day)
        return day


def _check_years(day: date | None) -> None:
    if day and not clock.EARLIEST.year <= day.year < clock.LATEST.year:
        raise forms.ValidationError(f"The year {clock.YEARS_RULE}. Enter another day.")


def name_message_draft(panel: str, answered: int | None) -> str:
    """The name of a message's panel in drafts: an answer belongs to one question."""
    return f"answer-{answered}" if panel == "ask" and answered else panel


class ArmForm(forms.Form):
    """Which panel is opened: of a verdict, a message, or more time."""

    arm = forms.ChoiceField(
        choices=[(v, v) for v in [*Verdict, *MESSAGE_PANELS, EXTENSION_PANEL]]
    )


class DecisionForm(forms.Form):
    """A verdict on the version and action hash that were on the screen."""

    verdict = forms.ChoiceField(choices=[(v.value, v.value) for v in Verdict])
    version = forms.IntegerField(min_value=1, max_value=MAX_NUMBER)
    action_hash = forms.RegexField(r"^sha256:[0-9a-f]{64}$", max_length=80)
    reason_code = forms.ChoiceField(choices=list(REASON_LABELS.items()), required=False)
    reason = TextField(max_length=NOTE_LENGTH, required=False)
    ready = TextField(max_length=16, required=False)  # the key of a ready text
    leaning = forms.ChoiceField(
        choices=[("approve", ""), ("reject", "")], required=False
    )
    pause = forms.BooleanField(required=False)  # also pause the run; only to reject
    # Conditions, only to approve: times in the reader's zone.
    not_before = TimeField(required=False, error_messages=TIME_ERRORS)
    not_after = TimeField(required=False, error_messages=TIME_ERRORS)
    password = TextField(max_length=4096, required=False, strip=False)
    one_time_code = TextField(max_length=CODE_LENGTH, required=False)
    passkey = TextField(max_length=LONGEST_ANSWER, required=False)

    @property
    def meant(self) -> Verdict:
        """The verdict, also of an invalid form; harmless REJECT if unknown."""
        sent = self.data.get("verdict", "")
        return Verdict(sent) if sent in set(Verdict) else Verdict.REJECT

    @property
    def seen(self) -> int | None:
        """The version that was on the screen; None if it is not a number."""
        sent = self.data.get("version", "")
        return int(sent) if sent.isdecimal() and len(sent) < 10 else None


class MessageForm(forms.Form):
    """A message to the agent about the version that was on the screen."""

    panel = forms.ChoiceField(choices=[(name, name) for name in MESSAGE_PANELS])
    version = forms.IntegerField(min_value=1, max_value=MAX_NUMBER)
    round = forms.IntegerField(min_value=1, max_value=MAX_NUMBER, required=False)
    # Named like the note of a verdict, so that drafts keep it. The operation checks it.
    reason = TextField(required=False, strip=False)

    @property
    def meant(self) -> str:
        """The panel, also of an invalid form; a question if unknown."""
        sent = self.data.get("panel", "")
        return sent if sent in MESSAGE_PANELS else "ask"


class StopForm(forms.Form):
    """What to stop, how and why.

    `target` is a scope and its key in one choice, as `scope:key`. The reason is a
    preset, text, or both. `sure` must be typed only to stop all agents.
    """

    target = _build_required_text("Choose what to stop.", longest=240)
    mode = forms.ChoiceField(
        choices=[(m.value, m.value) for m in StopMode],
        error_messages={"required": "Choose to stop or to pause."},
    )
    reason_code = forms.ChoiceField(
        choices=list(STOP_REASON_LABELS.items()), required=False
    )
    reason = TextField(max_length=NOTE_LENGTH, required=False)
    sure = TextField(max_length=40, required=False)

    def clean_target(self) -> tuple[Scope, str]:
        scope, _, key = self.cleaned_data["target"].partition(":")
        if scope not in set(Scope):
            raise forms.ValidationError("Choose what to stop.")
        return Scope(scope), key

    def clean(self) -> None:
        sent = self.cleaned_data
        code, text = sent.get("reason_code", ""), sent.get("reason", "")
        if not text and not code:
            self.add_error("reason", STOP_REASON_REQUIRED)
        elif not text and code == StopReason.OTHER:
            self.add_error("reason", STOP_DETAILS_REQUIRED)
        everything = sent.get("target", ("", ""))[0] is Scope.EVERYTHING
        if everything and sent.get("sure", "").casefold() != ALL_AGENTS_PHRASE:
            self.add_error("sure", f"Type “{ALL_AGENTS_PHRASE}” to confirm.")

    @property
    def said(self) -> str:
        """The reason as people read it: the preset's words, then the text."""
        code, text = self.cleaned_data["reason_code"], self.cleaned_data["reason"]
        preset = (
            "" if code in {"", StopReason.OTHER} else f"{STOP_REASON_LABELS[code]}."
        )
        return f"{preset} {text}".strip()


class RevealForm(forms.Form):
    """Which hidden argument to reveal, and why."""

    name = TextField(max_length=200)
    reason_code = TextField(max_length=16, required=False)
    reason = TextField(max_length=NOTE_LENGTH, required=False)


class ReasonForm(forms.Form):
    """A reason alone, for breaking a hold or lifting a stop."""

    reason = _build_required_text(REASON_REQUIRED)


class IncidentForm(forms.Form):
    """Whose deadlines stand still, and why: one queue's, or every queue's by an
    explicit choice. An empty choice is an error, so that nothing is frozen by
    omission."""

    queue = TextField(max_length=20, error_messages={"required": "Choose a queue."})
    reason = _build_required_text("Describe what happened. It is shown and logged.")

    def clean_queue(self) -> Queue | None:
        """The queue; None for every queue."""
        choice: str = self.cleaned_data["queue"]
        if choice == EVERY_QUEUE_VALUE:
            return None
        queue = Queue.objects.filter(pk=choice).first() if choice.isdecimal() else None
        if queue is None:
            raise forms.ValidationError("Choose one of these queues.")
        return queue


class CloseAlarmForm(forms.Form):
    """What an alarm was about, and what was done."""

    note = _build_required_text("Describe what you found. The audit log keeps it.")


class DraftForm(forms.Form):
    """A panel as typed so far. An invalid draft, or one of no panel, is not stored."""

    version = forms.IntegerField(min_value=1, max_value=MAX_NUMBER, required=False)
    verdict = forms.ChoiceField(
        choices=[(v.value, v.value) for v in Verdict], required=False
    )
    panel = forms.ChoiceField(
        choices=[(name, name) for name in MESSAGE_PANELS], required=False
    )
    round = forms.IntegerField(min_value=1, max_value=MAX_NUMBER, required=False)
    reason_code = forms.ChoiceField(choices=list(REASON_LABELS.items()), required=False)
    reason = TextField(max_length=NOTE_LENGTH, required=False)

    @property
    def target(self) -> str:
        """The panel that the draft belongs to; empty for none, or if invalid."""
        if not self.is_valid():
            return ""
        sent = self.cleaned_data
        return sent["verdict"] or name_message_draft(sent["panel"], sent["round"])

    @property
    def edits(self) -> dict[str, str]:
        """The edited arguments by field name; empty unless it is to modify."""
        if self.data.get("verdict") != Verdict.MODIFY:
            return {}
        return {
            n: str(v) for n, v in self.data.items() if n.startswith(ARGUMENT_PREFIX)
        }


class NoteForm(forms.Form):
    """A note for the record."""

    text = TextField(max_length=NOTE_LENGTH, required=False)


class MoveForm(forms.Form):
    """The queue to which a request moves, and why."""

    queue = forms.ChoiceField(
        error_messages={
            "required": "Choose a queue.",
            "invalid_choice": "There is no such queue to move it to. Choose another.",
        }
    )
    reason = _build_required_text("Say why it moves. The audit log keeps it.")

    def __init__(
        self, data: Mapping[str, str] | None, *, queues: Iterable[Queue]
    ) -> None:
        super().__init__(data)
        self._queues = {queue.name: queue for queue in queues}
        field = cast(forms.ChoiceField, self.fields["queue"])
        names = [(name, queue.title) for name, queue in self._queues.items()]
        field.choices = [("", "Choose a queue"), *names]

    def clean_queue(self) -> Queue:
        return self._queues[self.cleaned_data["queue"]]


class HandOverForm(forms.Form):
    """The colleague to whom a hold is offered."""

    to = forms.ModelChoiceField(
        queryset=Person.objects.none(),
        to_field_name="public_id",
        empty_label="Choose a colleague",
        error_messages={
            "required": "Choose a person.",
            "invalid_choice": "They cannot decide this. Choose another person.",
        },
    )

    def __init__(
        self, data: Mapping[str, str] | None, *, people: QuerySet[Person]
    ) -> None:
        super().__init__(data)
        field = cast("forms.ModelChoiceField[Person]", self.fields["to"])
        field.queryset = people.order_by("first_name", "last_name", "username")


class SettleForm(forms.Form):
    """What happened to an effect with an unknown outcome."""

    happened = forms.TypedChoiceField(
        choices=[("yes", "yes"), ("no", "no")],
        coerce=lambda value: value == "yes",
        error_messages={"required": "Choose whether it happened."},
    )
    shown = TextField(max_length=40, required=False)  # what the page knew
    reason = _build_required_text("Describe how you know. The audit log keeps it.")


class TokenForm(forms.Form):
    """The name of a new personal token, and for how many days it is valid."""

    name = _build_required_text("Enter what will use the token.", longest=64)
    days = forms.TypedChoiceField(
        choices=[(days, f"{days} days") for days in (7, 30, 90, 180, 365)],
        coerce=int,
        required=False,
        initial=tokens.USUAL_DAYS,
        error_messages={"invalid_choice": "Choose one of these."},
    )

    def clean_days(self) -> int:
        """Scripts written before this field existed do not send it."""
        return self.cleaned_data["days"] or tokens.USUAL_DAYS


class GuidanceForm(forms.Form):
    """What reviewers should look at, for a request that is given back to them."""

    guidance = _build_required_text("Enter guidance for the reviewers.")


class ArbitrationForm(forms.Form):
    """What a supervisor concludes from a disagreement between reviewers."""

    text = _build_required_text("Enter what was learned.")


class SavedViewForm(forms.Form):
    """The name of a saved view."""

    name = _build_required_text("Give the view a name.", longest=64)
