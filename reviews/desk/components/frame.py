"""What every page carries: navigation with its numbers, environment, the clock.

The person behind a request, as the type that operations take.
"""

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
from reviews.people import preferences
from reviews.people.preferences import Prefs
from reviews.permissions import Permission
from reviews.standstills import Known

from . import badges as components_badges
from . import banners, navigation
from . import switches as components_switches
from .badges import Badges
from .banners import Banner, Moment, SwitchBanner


@dataclass(frozen=True, slots=True)
class NavItem:
    """One entry of the main navigation; `key` follows `g`."""

    label: str
    url: str
    key: str
    current: bool
    badge_id: str = ""
    count: int = 0
    soon: int = 0

    @property
    def shown(self) -> str:
        return components_badges.capped(self.count)

    @property
    def has_soon(self) -> bool:
        return self.badge_id == "badge-queue"


class Desk:
    """Computed when a template asks, once a request: an API answer pays nothing."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.stop_url = reverse("reviews:stop")  # a page of a run narrows it

    def ready(self) -> None:
        """Ask for what every page prints around its own, before it is printed."""
        _ = self.nav, self.prefs, self.now

    @property
    def environment(self) -> str:
        return str(settings.HOLDPOINT.deployment)

    @property
    def restored(self) -> bool:
        """Whether nothing runs until two people have looked at the database."""
        return bool(restore_epochs.known.why) and not self.unread

    @property
    def unread(self) -> bool:
        """Whether nothing runs until the disk gives the note beside the database."""
        return restore_epochs.known.why == restore_epochs.UNREAD

    @cached_property
    def standstill(self) -> Known | None:
        """What stands still; None while all is well."""
        known = standstills.known
        if self.person is None or not (known.effects or known.sweeps):
            return None
        return known

    @property
    def sees_alarms(self) -> bool:
        person = self.person
        return person is not None and permissions.allowed(person, Permission.SEE_ALARMS)

    @cached_property
    def now(self) -> datetime:
        """The database's clock, so that countdowns agree with decisions."""
        return self.moment.now

    @cached_property
    def moment(self) -> Moment:
        return banners.moment()

    @property
    def stops_tools(self) -> bool:
        person = self.person
        return person is not None and permissions.allowed(person, Permission.STOP)

    @property
    def incidents(self) -> list[Banner]:
        """The open ones that this person's pages say."""
        return self.moment.concerning(self.person)

    @cached_property
    def switches(self) -> list[SwitchBanner]:
        """The agents and tools that are paused or stopped, as far as this person sees
        anything of them."""
        if self.person is None or not self.moment.switches:
            return []
        return components_switches.concerning(self.person, self.moment.switches)

    @cached_property
    def person(self) -> Person | None:
        user = getattr(self.request, "user", None)
        return user if isinstance(user, Person) else None

    @cached_property
    def roles(self) -> str:
        if self.person is None:
            return ""
        found = permissions.roles_of(self.person)
        return ", ".join(sorted(role.value for role in found)) or "no role"

    @property
    def prefs(self) -> Prefs:
        return preferences.of(self.person)

    @property
    def keys(self) -> str:
        """For the script: nothing, what differs from the usual, or that it is off."""
        keys = self.prefs.keys
        if not keys.on:
            return "off"
        return json.dumps(keys.mine) if keys.mine else ""

    @cached_property
    def badges(self) -> Badges:
        person = self.person
        if person is None or permissions.deciding_role(person) is not None:
            return components_badges.of(person) if person else Badges()
        # Whoever decides nothing has alarms alone, and those came with the clock.
        return Badges(alarms=self.moment.alarms if self.sees_alarms else 0)

    @property
    def waiting(self) -> str:
        """For the window's title: `(7) Queue`."""
        return components_badges.capped(self.badges.queue)

    @cached_property
    def nav(self) -> list[NavItem]:
        found = self.badges
        return [
            self._item("Queue", "reviews:queue", "q", "queue", found.queue, found.soon),
            self._item(
                "Escalations",
                "reviews:escalations",
                "e",
                "escalations",
                found.escalations,
            ),
            self._item("Batches", "reviews:batches", "b", "batches", found.batches),
            self._item(
                "Announced", "reviews:announced", "n", "announced", found.announced
            ),
            self._item("Agents", "agents:agents", "r"),
            *self._alarms(),
            self._item("Log", "reviews:log", "l"),
            *self._policies(),
        ]

    @property
    def queue(self) -> NavItem:
        return self.nav[0]

    def _alarms(self) -> list[NavItem]:
        if not self.sees_alarms:
            return []
        item = self._item(
            "Alarms", navigation.ALARMS, "a", "alarms", self.badges.alarms
        )
        return [replace(item, current=navigation.is_upkeep(self.request.path))]

    def _policies(self) -> list[NavItem]:
        person = self.person
        if person is None or not permissions.allowed(person, Permission.SEE_POLICIES):
            return []
        return [self._item("Policies", "policies:policies", "p")]

    def _item(
        self,
        label: str,
        name: str,
        key: str,
        badge: str = "",
        count: int = 0,
        soon: int = 0,
    ) -> NavItem:
        url = reverse(name)
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
    return {"desk": of(request)}


def of(request: HttpRequest) -> Desk:
    """This request's frame; one object, so that its numbers are counted once."""
    found: Desk | None = getattr(request, "desk", None)
    if found is None:
        found = request.desk = Desk(request)  # type: ignore[attr-defined]
    return found


def person(request: HttpRequest) -> Person:
    """Who signed in; LoginRequiredMiddleware let nobody else through."""
    assert isinstance(request.user, Person)
    return request.user
