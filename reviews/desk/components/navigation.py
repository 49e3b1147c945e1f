"""The tabs of the upkeep pages: alarms, unknown outcomes, repairs, deliveries,
incidents. A new upkeep page adds its line here."""

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
    """One tab of the upkeep pages."""

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


def is_upkeep_path(path: str) -> bool:
    """Whether a path belongs to an upkeep page, for the main navigation."""
    return any(path.startswith(reverse(name)) for name, _, _ in UPKEEP_PAGES)


def build_page_url(name: str) -> str:
    """The address of an upkeep page by its URL name."""
    return reverse(name)
