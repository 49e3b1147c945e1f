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

KEY = "zone"


class ReadersZone:
    """Middleware that renders the pages of a signed-in person in their time zone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return self.get_response(request)
        with timezone.override(preferences.zone_of(request.session.get(KEY, ""))):
            answer = self.get_response(request)
        desk = getattr(request, "desk", None)  # the page frame has the preferences
        known = preferences.remembered(desk.person) if desk else None
        if known is not None:
            follow(request, known.display.zone)
        return answer


def learn(request: HttpRequest, person: Person) -> None:
    """Save the zone of the browser at sign-in, unless the person has one."""
    display = preferences.of(person).display
    offered = request.POST.get(KEY, "")
    if not display.zone and preferences.is_zone(offered):
        display = display.model_copy(update={KEY: offered})
        preferences.save(person=person, display=display)
    follow(request, display.zone)


def follow(request: HttpRequest, zone: str) -> None:
    """Copy the zone of the preference into the session; another session may have
    changed it."""
    if request.session.get(KEY, "") != zone:
        request.session[KEY] = zone
