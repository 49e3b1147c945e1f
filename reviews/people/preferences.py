"""How one person wants the desk. None of it changes what may be done, by whom or
until when; the database keeps it, so that it is the same on every machine."""

from __future__ import annotations

from datetime import UTC, time, tzinfo
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from django.db import transaction
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from journal import clock
from policies.choices import Risk
from policies.models import Person
from reviews.models import Preferences

When = Literal["now", "unclaimed", "digest", "never"]
NO_ZONE = "Name a zone like Europe/Berlin, or UTC."


class Shape(BaseModel):
    """Frozen, and lenient about members that an older version wrote."""

    model_config = ConfigDict(frozen=True, extra="ignore")


@cache
def _zones() -> frozenset[str]:
    """The names of all time zones. The library goes through its files for them, which
    takes longer than the rest of most pages."""
    return frozenset(available_timezones())


def is_zone(name: str) -> bool:
    """Whether a time zone has that name."""
    return name in _zones()


def known_zone(name: str) -> str:
    """The same name. Raises ValueError where it is no time zone's."""
    if not is_zone(name):
        raise ValueError(NO_ZONE)
    return name


def _zone_or_none(name: str) -> str:
    return known_zone(name) if name else name


def zone_of(name: str) -> tzinfo:
    """The zone of that name; UTC where none is known by it."""
    return ZoneInfo(name) if is_zone(name) else UTC


class Display(Shape):
    """What pages look like, and in which zone they say times."""

    theme: Literal["system", "light", "dark"] = "system"
    density: Literal["comfortable", "compact"] = "comfortable"
    diff: Literal["auto", "unified", "side"] = "auto"
    advance: Literal["off", "on", "unless_rejected"] = "off"
    timers: Literal["minutes", "clock"] = "minutes"
    zone: Annotated[str, AfterValidator(_zone_or_none)] = ""  # not known: UTC


class Keys(Shape):
    """Single-key shortcuts: whether at all, and which differ from the usual."""

    on: bool = True
    mine: dict[str, str] = {}  # the usual key -> this person's


class Notifications(Shape):
    """What reaches this person, and how. Times are in `zone`."""

    email: dict[Risk, When] = {}
    desk: dict[Risk, Literal["now", "never"]] = {}  # the bar that says "3 new"
    minutes: Annotated[int, Field(ge=1, le=1440)] = 10  # for `unclaimed`
    digest_at: time = time(8)
    quiet_from: time | None = None
    quiet_until: time | None = None
    on_call: bool = False  # quiet hours do not hold for what must be told
    once_taken: bool = True  # say no more when somebody has it
    per_hour: Annotated[int, Field(ge=1, le=1000)] = 60
    zone: Annotated[str, AfterValidator(known_zone)] = "UTC"

    def mail(self, risk: str) -> When:
        """When a mail about a request of this risk goes out."""
        return self.email.get(Risk(risk), "now")

    @property
    def muted(self) -> list[str]:
        """Risks whose arrival no page announces."""
        return [risk.value for risk, when in self.desk.items() if when == "never"]


class Prefs(NamedTuple):
    """All of one person's."""

    display: Display = Display()
    keys: Keys = Keys()
    notifications: Notifications = Notifications()


_Shape = TypeVar("_Shape", bound=Shape)


def of(person: Person | None) -> Prefs:
    """One query, remembered on the person; the usual for who saved nothing."""
    if person is None:
        return Prefs()
    found = remembered(person)
    if found is None:
        found = shaped(getattr(person, "preferences", None))  # one query, or none
        person._prefs = found  # type: ignore[attr-defined]
    return found


def remembered(person: Person | None) -> Prefs | None:
    """The same without a query: nothing unless they were asked for before."""
    found: Prefs | None = getattr(person, "_prefs", None)
    return found


def shaped(row: Preferences | None) -> Prefs:
    """A stored row in its shapes; what no longer fits one is as usual."""
    if row is None:
        return Prefs()
    return Prefs(
        _fitting(Display, row.display),
        _fitting(Keys, row.keys),
        _fitting(Notifications, row.notifications),
    )


def _fitting(shape: type[_Shape], stored: Any) -> _Shape:
    try:
        return shape.model_validate(stored)
    except ValidationError:
        return shape()


@transaction.atomic(durable=True)
def save(
    *,
    person: Person,
    display: Display | None = None,
    keys: Keys | None = None,
    notifications: Notifications | None = None,
) -> Prefs:
    """Keep what is given and leave the rest as it was."""
    given = {"display": display, "keys": keys, "notifications": notifications}
    changes = {
        name: shape.model_dump(mode="json")
        for name, shape in given.items()
        if shape is not None
    }
    row, _ = Preferences.objects.update_or_create(
        person=person, defaults={**changes, "changed_at": clock.now()}
    )
    person._prefs = shaped(row)  # type: ignore[attr-defined]
    return of(person)
