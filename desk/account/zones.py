"""The time zone in which a person's pages print times.

The zone is a preference; the browser supplies it at the first sign-in. The session
holds a copy, so that a request needs no query for it.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from policies.models import Person
from reviews.people import preferences

ZONE_KEY = "zone"


class ReadersZone:
    """Middleware that renders the pages of a signed-in person in their time zone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return self.get_response(request)
        with timezone.override(
            preferences.load_zone(request.session.get(ZONE_KEY, ""))
        ):
            answer = self.get_response(request)
        desk = getattr(request, "desk", None)  # the page frame has the preferences
        known = preferences.find_cached_preferences(desk.person) if desk else None
        if known is not None:
            update_session_zone(request, known.display.zone)
        return answer


def record_browser_zone(request: HttpRequest, person: Person) -> None:
    """Save the zone of the browser at sign-in, unless the person has one."""
    display = preferences.load_preferences(person).display
    offered = request.POST.get(ZONE_KEY, "")
    if not display.zone and preferences.is_zone_name(offered):
        display = display.model_copy(update={ZONE_KEY: offered})
        preferences.save_preferences(person=person, display=display)
    update_session_zone(request, display.zone)


def update_session_zone(request: HttpRequest, zone: str) -> None:
    """Copy the zone of the preference into the session; another session may have
    changed it."""
    if request.session.get(ZONE_KEY, "") != zone:
        request.session[ZONE_KEY] = zone
