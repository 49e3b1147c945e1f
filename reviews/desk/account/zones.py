"""In which zone a person's pages say times: their preference, which the browser gives
first, when they sign in. The session carries it, so that no request asks for it."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from policies.models import Person
from reviews.people import preferences

KEY = "zone"


class ReadersZone:
    """Has what the pages of a signed-in person say of time in their zone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return self.get_response(request)
        with timezone.override(preferences.zone_of(request.session.get(KEY, ""))):
            answer = self.get_response(request)
        desk = getattr(request, "desk", None)  # a page's frame, which asks for them
        known = preferences.remembered(desk.person) if desk else None
        if known is not None:
            follow(request, known.display.zone)
        return answer


def learn(request: HttpRequest, person: Person) -> None:
    """Keep the zone of the browser somebody signs in with, unless one is known."""
    display = preferences.of(person).display
    offered = request.POST.get(KEY, "")
    if not display.zone and preferences.is_zone(offered):
        display = display.model_copy(update={KEY: offered})
        preferences.save(person=person, display=display)
    follow(request, display.zone)


def follow(request: HttpRequest, zone: str) -> None:
    """The session says times as the preference has it, also when another changed it."""
    if request.session.get(KEY, "") != zone:
        request.session[KEY] = zone
