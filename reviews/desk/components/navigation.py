"""The pages of what must be looked after, as one row of tabs. Whoever adds a page adds
its line here."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from policies.models import Person
from reviews import permissions
from reviews.permissions import Permission

ALARMS = "reviews:alarms"
UNKNOWN = "reviews:unknown"
REPAIRS = "agents:repairs"
DELIVERIES = "agents:deliveries"
# The name of the page's address, its label, and the permission that shows it.
PAGES: tuple[tuple[str, str, Permission], ...] = (
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


def tabs(person: Person, current: str) -> list[UpkeepTab]:
    """Those this person may open; `current` is the name of the page's address."""
    return [
        UpkeepTab(label, reverse(name), name == current)
        for name, label, needed in PAGES
        if permissions.allowed(person, needed)
    ]


def is_upkeep(path: str) -> bool:
    """Whether an address belongs to one of them, for the navigation."""
    return any(path.startswith(reverse(name)) for name, _, _ in PAGES)


def url(name: str) -> str:
    """The address of one of them."""
    return reverse(name)
