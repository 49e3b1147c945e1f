"""The navigation beside every page: groups of entries, each where its person has
something to do or to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from django.urls import reverse

from policies.models import Person
from reviews import permissions
from reviews.roles import Permission

from . import badges as components_badges
from .badges import Badges

# What a badge counts, for screen readers; other badges count pending requests.
COUNTED_WORDS = {"badge-announced": "unread", "badge-alarms": "open"}
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
class Destination:
    """A page of the navigation. `key` follows `g` as its shortcut; `below` are the
    pages that it leads to; `words` are what else people call it; `query` makes it a
    part of a page."""

    label: str
    page: str
    key: str = ""
    badge: str = ""
    needs: Permission | None = None
    below: tuple[str, ...] = ()
    words: str = ""
    query: str = ""

    @property
    def url(self) -> str:
        return reverse(self.page) + (f"?{self.query}" if self.query else "")


GROUPS: tuple[tuple[str, tuple[Destination, ...]], ...] = (
    (
        "Work",
        (
            Destination("Queue", "reviews:queue", "q", "queue", words="requests inbox"),
            Destination(
                "Mine", "reviews:queue", words="claimed assigned", query="tab=mine"
            ),
            Destination("Questions", "reviews:questions", "u", "questions"),
            Destination("Escalations", "reviews:escalations", "e", "escalations"),
            Destination("Batches", "reviews:batches", "b", "batches"),
            Destination("Activity", "reviews:announced", "n", "announced"),
        ),
    ),
    (
        "Oversight",
        (
            Destination(
                "Overview",
                "reviews:overview",
                "o",
                needs=Permission.SEE_STATISTICS,
                below=("reviews:load", "reviews:on_call"),
                words="home workload on call queues",
            ),
            Destination(
                "Statistics",
                "reviews:statistics",
                "m",
                needs=Permission.SEE_STATISTICS,
                words="figures charts times",
            ),
            Destination(
                "Own agents' figures",
                "agents:own_statistics",
                needs=Permission.SEE_OWN_STATISTICS,
                words="statistics charts times",
            ),
            Destination(
                "Assurance", "reviews:assurance", words="practice checks canaries"
            ),
            Destination(
                "Alarms",
                ALARMS,
                "a",
                "alarms",
                Permission.SEE_ALARMS,
                below=tuple(page for page, *_ in UPKEEP_PAGES),
                words="unknown repairs deliveries incidents",
            ),
        ),
    ),
    (
        "Record",
        (
            Destination("Audit log", "reviews:log", "l", words="history decisions"),
            Destination(
                "Runs",
                "agents:runs",
                needs=Permission.SEE_ALL,
                words="threads checkpoints what agents work on",
            ),
            Destination(
                "Exports",
                "reviews:exports",
                needs=Permission.EXPORT,
                words="download csv evidence",
            ),
        ),
    ),
    (
        "Set-up",
        (
            Destination(
                "People",
                "reviews:people",
                needs=Permission.SEE_PEOPLE,
                words="users accounts invite roles",
            ),
            Destination(
                "Queues",
                "reviews:queues",
                needs=Permission.SEE_PEOPLE,
                words="staffing gaps who decides",
            ),
            Destination(
                "Agents",
                "agents:agents",
                "r",
                below=("agents:register_agent",),
                words="keys",
            ),
            Destination(
                "Tools",
                "policies:tools",
                needs=Permission.SEE_POLICIES,
                words="risk calls undeclared",
            ),
            Destination(
                "Policy",
                "policies:policies",
                "p",
                needs=Permission.SEE_POLICIES,
                words="rules versions drafts",
            ),
            Destination(
                "Channels",
                "channels",
                needs=Permission.SEE_HEALTH,
                words="notifications messages mail slack chat push sms webhook",
            ),
            Destination(
                "Health",
                "health",
                needs=Permission.SEE_HEALTH,
                words="status workers beat broker disk mail settings versions single"
                " sign-on",
            ),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class NavItem:
    """One entry, with its number."""

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


@dataclass(frozen=True, slots=True)
class NavGroup:
    label: str
    items: list[NavItem]

    @property
    def heading_id(self) -> str:
        return f"nav-{self.label.lower()}"


def list_destinations(person: Person) -> Iterator[tuple[str, list[Destination]]]:
    """The pages that this person may open, by group."""
    for label, destinations in GROUPS:
        open_to_person = [
            destination
            for destination in destinations
            if destination.needs is None
            or permissions.has_permission(person, destination.needs)
        ]
        if open_to_person:
            yield label, open_to_person


def build_navigation(person: Person, path: str, counts: Badges) -> list[NavGroup]:
    """The groups for this person on the page at `path`, which has its query, with what
    waits."""
    groups = dict(list_destinations(person))
    current = _find_current(path, chain.from_iterable(groups.values()))
    return [
        NavGroup(
            label, [_build_item(place, place is current, counts) for place in places]
        )
        for label, places in groups.items()
    ]


def _find_current(path: str, places: Iterable[Destination]) -> Destination | None:
    """The place whose address, or one below it, is the longest start of this path."""
    addresses = [
        (url, place)
        for place in places
        for url in (place.url, *map(reverse, place.below))
    ]
    fitting = [(len(url), place) for url, place in addresses if path.startswith(url)]
    return max(fitting, key=lambda hit: hit[0])[1] if fitting else None


def _build_item(place: Destination, current: bool, counts: Badges) -> NavItem:
    return NavItem(
        place.label,
        place.url,
        place.key,
        current,
        badge_id=f"badge-{place.badge}" if place.badge else "",
        count=getattr(counts, place.badge) if place.badge else 0,
        soon=counts.soon if place.badge == "queue" else 0,
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
