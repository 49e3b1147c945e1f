"""What surrounds every page: the navigation with its numbers, the environment, the
clock and the signed-in person."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from journal import failover, restore_epochs
from policies import sign_ins
from policies.models import Person
from policies.solo import is_solo
from reviews import permissions, standstills
from reviews.choices import Scope
from reviews.people import preferences
from reviews.people.preferences import PersonPreferences
from reviews.roles import Permission
from reviews.standstills import StandstillState

from . import badges as components_badges
from . import banners, navigation
from . import switches as components_switches
from .badges import Badges
from .banners import DeskStatus, IncidentBanner, SwitchBanner
from .navigation import NavGroup, NavItem


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
    def solo(self) -> bool:
        """Whether one person does everything, on their own machine."""
        return is_solo()

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

    @property
    def compares(self) -> bool:
        """Whether a standby took over, and the hosts compare their notes with it."""
        another = restore_epochs.last_status.why == restore_epochs.ANOTHER
        return another and failover.is_enabled()

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
        """The clock and the notices, in one query. Every page asks for them: the
        session is in use."""
        status = banners.load_desk_status(self.person)
        if self.person is not None and self.request.session.session_key:
            sign_ins.mark_seen(self.request.session.session_key, status.now)
        return status

    @property
    def stops_tools(self) -> bool:
        """Whether this person may raise a stop."""
        return self._may(Permission.STOP)

    @property
    def sees_people(self) -> bool:
        return self._may(Permission.SEE_PEOPLE)

    @property
    def sees_health(self) -> bool:
        return self._may(Permission.SEE_HEALTH)

    def _may(self, permission: Permission) -> bool:
        person = self.person
        return person is not None and permissions.has_permission(person, permission)

    @property
    def has_passkey(self) -> bool:
        return self.person is not None and self.moment.has_passkey

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
            for switch in self.moment.list_switches(person)
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
        # Without a deciding role only these count, and the clock query has them.
        alarms = self.moment.alarms if self.sees_alarms else 0
        return Badges(alarms=alarms, questions=self.moment.questions)

    @property
    def waiting(self) -> str:
        """The number in the window's title: `(7) Queue`."""
        return components_badges.format_badge(self.badges.queue)

    @cached_property
    def nav(self) -> list[NavGroup]:
        """The groups of the navigation that this person sees."""
        if self.person is None:
            return []
        path = self.request.get_full_path()
        return navigation.build_navigation(self.person, path, self.badges)

    @property
    def queue(self) -> NavItem:
        return self.nav[0].items[0]


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
