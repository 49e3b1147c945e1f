"""What surrounds every page: the navigation with its numbers, the tabs of the upkeep
pages, the environment, the clock and the signed-in person."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from journal import restore_epochs
from policies.models import Person
from reviews import permissions, standstills
from reviews.choices import Scope
from reviews.people import preferences
from reviews.people.preferences import PersonPreferences
from reviews.permissions import Permission
from reviews.standstills import StandstillState

from . import badges as components_badges
from . import banners
from . import switches as components_switches
from .badges import Badges
from .banners import DeskStatus, IncidentBanner, SwitchBanner

# What a badge counts, for screen readers; other badges count pending requests.
COUNTED_WORDS = {"badge-announced": "unread", "badge-alarms": "open"}


@dataclass(frozen=True, slots=True)
class NavItem:
    """One entry of the main navigation; `key` follows `g` as its shortcut."""

    label: str
    url: str
    key: str
    current: bool
    badge_id: str = ""
    count: int = 0
    soon: int = 0

    @property
    def shown(self) -> str:
        """The number as the badge prints it."""
        return components_badges.format_badge(self.count)

    @property
    def counted(self) -> str:
        """What the number counts, as a word after it."""
        return COUNTED_WORDS.get(self.badge_id, "pending")

    @property
    def has_soon(self) -> bool:
        """Whether the badge also shows how many expire soon."""
        return self.badge_id == "badge-queue"


class PageFrame:
    """The frame of a page, as `desk` in templates.

    Everything is computed when a template first reads it, once a request; an API
    response costs nothing.
    """

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.stop_url = reverse("reviews:stop")  # a page about one run narrows it

    def ready(self) -> None:
        """Load what every page prints, so that rendering does not wait for a query."""
        _ = self.nav, self.prefs, self.now

    @property
    def environment(self) -> str:
        return str(settings.COUNTERSEAL.deployment)

    @property
    def address(self) -> str:
        """The address of this installation, to which a printed link belongs."""
        return str(settings.COUNTERSEAL.base_url)

    @property
    def restored(self) -> bool:
        """Whether nothing runs until two people have checked the restored database."""
        return bool(restore_epochs.last_status.why) and not self.unread

    @property
    def unread(self) -> bool:
        """Whether nothing runs because the note on disk cannot be read."""
        return restore_epochs.last_status.why == restore_epochs.DISK_ERROR

    @cached_property
    def standstill(self) -> StandstillState | None:
        """The late executions and sweeps; None when all run."""
        known = standstills.known
        if self.person is None or not (known.effects or known.sweeps):
            return None
        return known

    @property
    def log_stall(self) -> StandstillState | None:
        """The log that an open transaction holds back; None otherwise."""
        known = standstills.known
        return known if known.log and self.sees_alarms else None

    @property
    def sees_alarms(self) -> bool:
        return self._may(Permission.SEE_ALARMS)

    @cached_property
    def now(self) -> datetime:
        """The database's clock, so that countdowns agree with decisions."""
        return self.moment.now

    @cached_property
    def moment(self) -> DeskStatus:
        """The clock and the notices, in one query."""
        return banners.load_desk_status()

    @property
    def stops_tools(self) -> bool:
        """Whether this person may raise a stop."""
        return self._may(Permission.STOP)

    def _may(self, permission: Permission) -> bool:
        person = self.person
        return person is not None and permissions.has_permission(person, permission)

    @property
    def incidents(self) -> list[IncidentBanner]:
        return self.moment.concerning(self.person)

    @cached_property
    def switches(self) -> list[SwitchBanner]:
        """The paused or stopped agents and tools that concern this person, and the stop
        over their own decisions."""
        person = self.person
        if person is None:
            return []
        own = [
            switch
            for switch in self.moment.switches
            if switch.scope != Scope.REVIEWER or switch.key == person.public_id
        ]
        return components_switches.filter_for_person(person, own) if own else []

    @cached_property
    def person(self) -> Person | None:
        user = getattr(self.request, "user", None)
        return user if isinstance(user, Person) else None

    @cached_property
    def roles(self) -> str:
        if self.person is None:
            return ""
        roles = permissions.roles_of(self.person)
        return ", ".join(sorted(role.value for role in roles)) or "no role"

    @property
    def prefs(self) -> PersonPreferences:
        return preferences.load_preferences(self.person)

    @property
    def keys(self) -> str:
        """The shortcuts for the script: empty for the defaults, `off`, or JSON."""
        keys = self.prefs.keys
        if not keys.on:
            return "off"
        return json.dumps(keys.mine) if keys.mine else ""

    @cached_property
    def badges(self) -> Badges:
        person = self.person
        if person is None or permissions.find_deciding_role(person) is not None:
            return components_badges.count_badges(person) if person else Badges()
        # Without a deciding role only alarms count, and the clock query has those.
        return Badges(alarms=self.moment.alarms if self.sees_alarms else 0)

    @property
    def waiting(self) -> str:
        """The number in the window's title: `(7) Queue`."""
        return components_badges.format_badge(self.badges.queue)

    @cached_property
    def nav(self) -> list[NavItem]:
        """The entries of the main navigation that this person sees."""
        counts, item = self.badges, self._item
        entries = [
            item("Queue", "queue", "q", "queue", counts.queue, counts.soon),
            item("Escalations", "escalations", "e", "escalations", counts.escalations),
            item("Batches", "batches", "b", "batches", counts.batches),
            item("Activity", "announced", "n", "announced", counts.announced),
            item("Agents", "agents:agents", "r"),
        ]
        if self.sees_alarms:
            alarms = item("Alarms", "alarms", "a", "alarms", counts.alarms)
            path = self.request.path
            current = any(path.startswith(reverse(name)) for name, *_ in UPKEEP_PAGES)
            entries.append(replace(alarms, current=current))
        entries.append(item("Audit log", "log", "l"))
        if self._may(Permission.SEE_POLICIES):
            entries.append(item("Policy", "policies:policies", "p"))
        if self._may(Permission.SEE_STATISTICS):
            entries.append(item("Statistics", "statistics", "m"))
        return entries

    @property
    def queue(self) -> NavItem:
        return self.nav[0]

    def _item(
        self,
        label: str,
        name: str,
        key: str,
        badge: str = "",
        count: int = 0,
        soon: int = 0,
    ) -> NavItem:
        url = reverse(name if ":" in name else f"reviews:{name}")
        return NavItem(
            label,
            url,
            key,
            current=self.request.path.startswith(url),
            badge_id=f"badge-{badge}" if badge else "",
            count=count,
            soon=soon,
        )


def desk(request: HttpRequest) -> Mapping[str, Any]:
    """The context processor: `desk` in every template."""
    return {"desk": get_frame(request)}


def get_frame(request: HttpRequest) -> PageFrame:
    """The frame of this request, always the same object."""
    frame: PageFrame | None = getattr(request, "desk", None)
    if frame is None:
        frame = request.desk = PageFrame(request)  # type: ignore[attr-defined]
    return frame


def require_person(request: HttpRequest) -> Person:
    """The signed-in person; LoginRequiredMiddleware admits nobody else."""
    assert isinstance(request.user, Person)
    return request.user


ALARMS = "reviews:alarms"
UNKNOWN = "reviews:unknown"
REPAIRS = "agents:repairs"
DELIVERIES = "agents:deliveries"
# The page's URL name, its label, and the permission that it needs.
UPKEEP_PAGES: tuple[tuple[str, str, Permission], ...] = (
    (ALARMS, "Alarms", Permission.SEE_ALARMS),
    (UNKNOWN, "Unknown", Permission.SEE_ALARMS),
    (REPAIRS, "Repairs", Permission.SEE_ALARMS),
    (DELIVERIES, "Deliveries", Permission.SEE_DELIVERIES),
    ("reviews:incidents", "Incidents", Permission.SEE_ALARMS),
)


@dataclass(frozen=True, slots=True)
class UpkeepTab:
    label: str
    url: str
    current: bool


def list_upkeep_tabs(person: Person, current: str) -> list[UpkeepTab]:
    """The tabs that this person may open; `current` is the URL name of the page."""
    return [
        UpkeepTab(label, reverse(name), name == current)
        for name, label, needed in UPKEEP_PAGES
        if permissions.has_permission(person, needed)
    ]
