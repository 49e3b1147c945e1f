"""A list's saved views as its page prints them: links back, and a place to save the
view that is on the screen."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from policies.models import Person
from reviews.models import SavedView
from reviews.people import saved_views


@dataclass(frozen=True, slots=True)
class View:
    """A saved view of this person's."""

    id: int
    name: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class Saved:
    """The views of one list. `offers` says that there is something to name: the list
    is not as it always is."""

    page: str
    views: list[View]
    query: str
    offers: bool

    @property
    def url(self) -> str:
        """Where the view on the screen is saved."""
        return reverse("reviews:view_save", args=[self.page])


def of(person: Person, page: str, query: str, *, offers: bool) -> Saved:
    """The person's views of `page`, "queue" or "log", of which one may be on the
    screen; in one query."""
    base = reverse(f"reviews:{page}")
    views = [_view(one, base, query) for one in saved_views.of(person, page)]
    return Saved(page, views, query, offers)


def _view(one: SavedView, base: str, query: str) -> View:
    url = f"{base}?{one.query}" if one.query else base
    return View(one.pk, one.name, url, one.query == query)
