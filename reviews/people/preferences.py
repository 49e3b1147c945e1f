"""A person's preferences: display, shortcut keys, notifications and saved views.

They change nothing about what may be done, by whom or until when. They are stored in
the database, so that they are the same on every machine.
"""

from __future__ import annotations

from datetime import UTC, time, tzinfo
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from zoneinfo import ZoneInfo, available_timezones

import phonenumbers
from django.db import IntegrityError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from journal import clock
from journal.errors import Conflict, InvalidInput, NotFound
from journal.operations import operation
from policies.choices import Risk
from policies.models import Person
from reviews.models import Preferences, SavedView

NoticeTiming = Literal["now", "unclaimed", "digest", "never"]
NO_PHONE_MESSAGE = "Enter a number with its country code, such as +49 30 901820."
NO_ZONE_MESSAGE = "Enter a time zone such as Europe/Berlin, or UTC."


class PreferenceModel(BaseModel):
    """Base of the preference models: frozen, and ignores members that it does not
    know, which another release stored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


_load_zone_names = cache(available_timezones)  # reading them is slow


def is_zone_name(name: str) -> bool:
    return name in _load_zone_names()


def check_zone(name: str) -> str:
    """Return the name if it is a time zone's. Raises ValueError."""
    if not is_zone_name(name):
        raise ValueError(NO_ZONE_MESSAGE)
    return name


def check_phone(number: str) -> str:
    """Return the number in its international form, or an empty text. Raises
    ValueError."""
    if not number.strip():
        return ""
    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        raise ValueError(NO_PHONE_MESSAGE) from None
    if not phonenumbers.is_valid_number(parsed):
        raise ValueError(NO_PHONE_MESSAGE)
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)


def _check_optional_zone(name: str) -> str:
    return check_zone(name) if name else name


def load_zone(name: str) -> tzinfo:
    """The time zone of this name; UTC when there is none."""
    return ZoneInfo(name) if is_zone_name(name) else UTC


class DisplayPreferences(PreferenceModel):
    """How pages look, and the time zone in which they show times."""

    theme: Literal["system", "light", "dark"] = "system"
    density: Literal["comfortable", "compact"] = "comfortable"
    diff: Literal["auto", "unified", "side"] = "auto"
    advance: Literal["off", "on", "unless_rejected"] = "off"
    timers: Literal["minutes", "clock"] = "minutes"
    zone: Annotated[str, AfterValidator(_check_optional_zone)] = ""  # empty: UTC


class KeyPreferences(PreferenceModel):
    """Single-key shortcuts: whether they are on, and the person's own keys."""

    on: bool = True
    mine: dict[str, str] = {}  # default key -> the person's own key


class NotificationPreferences(PreferenceModel):
    """Which notifications this person gets, when and how. Times are in `zone`."""

    email: dict[Risk, NoticeTiming] = {}
    sms: dict[Risk, NoticeTiming] = {}
    push: dict[Risk, NoticeTiming] = {}
    phone: Annotated[str, AfterValidator(check_phone)] = ""  # as +15550100
    desk: dict[Risk, Literal["now", "never"]] = {}  # the bar on pages, such as "3 new"
    minutes: Annotated[int, Field(ge=1, le=1440)] = 10  # the delay of `unclaimed`
    digest_at: time = time(8)
    quiet_from: time | None = None
    quiet_until: time | None = None
    on_call: bool = False  # urgent mails ignore the quiet hours
    once_taken: bool = True  # no more mails once somebody holds it
    per_hour: Annotated[int, Field(ge=1, le=1000)] = 60
    zone: Annotated[str, AfterValidator(check_zone)] = "UTC"

    def choose_timing(self, channel: str, risk: str) -> NoticeTiming:
        """When to send a message about a request of this risk on a channel."""
        chosen = {"email": self.email, "sms": self.sms, "push": self.push}
        return chosen.get(channel, {}).get(Risk(risk), "now")

    @property
    def muted(self) -> list[str]:
        """Risk levels whose new requests no page announces."""
        return [risk.value for risk, when in self.desk.items() if when == "never"]


class PersonPreferences(NamedTuple):
    display: DisplayPreferences = DisplayPreferences()
    keys: KeyPreferences = KeyPreferences()
    notifications: NotificationPreferences = NotificationPreferences()


_Shape = TypeVar("_Shape", bound=PreferenceModel)


def load_preferences(person: Person | None) -> PersonPreferences:
    """A person's preferences, or the defaults. One query, cached on the person."""
    if person is None:
        return PersonPreferences()
    preferences = find_cached_preferences(person)
    if preferences is None:
        preferences = parse_preferences(
            getattr(person, "preferences", None)
        )  # one query, or none
        person._prefs = preferences  # type: ignore[attr-defined]
    return preferences


def find_cached_preferences(person: Person | None) -> PersonPreferences | None:
    """The cached preferences; None when they have not been loaded yet. No query."""
    cached: PersonPreferences | None = getattr(person, "_prefs", None)
    return cached


def parse_preferences(row: Preferences | None) -> PersonPreferences:
    """Parse a stored row; a part that is no longer valid gets its defaults."""
    if row is None:
        return PersonPreferences()
    return PersonPreferences(
        _parse_or_default(DisplayPreferences, row.display),
        _parse_or_default(KeyPreferences, row.keys),
        _parse_or_default(NotificationPreferences, row.notifications),
    )


def _parse_or_default(shape: type[_Shape], stored: Any) -> _Shape:
    try:
        return shape.model_validate(stored)
    except ValidationError:
        return shape()


@operation(writes="Preferences")
def save_preferences(
    *,
    person: Person,
    display: DisplayPreferences | None = None,
    keys: KeyPreferences | None = None,
    notifications: NotificationPreferences | None = None,
) -> PersonPreferences:
    """Store the given parts and leave the others unchanged."""
    given = {"display": display, "keys": keys, "notifications": notifications}
    changes = {
        name: shape.model_dump(mode="json")
        for name, shape in given.items()
        if shape is not None
    }
    row, _ = Preferences.objects.update_or_create(
        person=person, defaults={**changes, "changed_at": clock.now()}
    )
    person._prefs = parse_preferences(row)  # type: ignore[attr-defined]
    return load_preferences(person)


MAX_VIEWS = 20  # views of one list


def list_saved_views(person: Person, page: str) -> list[SavedView]:
    """The person's saved views of a list (`page`), sorted by name."""
    return list(SavedView.objects.filter(person=person, page=page).order_by("name"))


@operation(writes="SavedView")
def create_saved_view(*, person: Person, page: str, name: str, query: str) -> SavedView:
    """Save a filter under a name. Raises InvalidInput, or Conflict for a name in
    use."""
    own = SavedView.objects.filter(person=person, page=page)
    if own.count() >= MAX_VIEWS:
        raise InvalidInput(f"You can save at most {MAX_VIEWS} views. Delete one first.")
    try:
        return own.create(person=person, page=page, name=name, query=query)
    except IntegrityError:
        raise Conflict(
            "You already have a view with this name. Nothing was saved."
        ) from None


@operation(writes="SavedView")
def delete_saved_view(*, person: Person, view_id: int) -> str:
    """Delete one of the person's views; return its page. Raises NotFound."""
    own = SavedView.objects.filter(person=person, pk=view_id).first()
    if own is None:
        raise NotFound
    own.delete()
    return own.page
