"""Saved views on a list's page: links to them, and the form that saves the current
one."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from policies.models import Person
from reviews.people import preferences


@dataclass(frozen=True, slots=True)
class SavedViewLink:
    id: int
    name: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class SavedViewList:
    """A person's saved views of one list. `offers`: the list is filtered, so its view
    can be saved."""

    page: str
    views: list[SavedViewLink]
    query: str
    offers: bool

    @property
    def url(self) -> str:
        return reverse("reviews:view_save", args=[self.page])


def build_saved_view_list(
    person: Person, page: str, query: str, *, offers: bool
) -> SavedViewList:
    """The person's saved views of `page` ("queue" or "log"), in one query; `query` is
    the one on the screen."""
    base = reverse(f"reviews:{page}")
    views = [
        SavedViewLink(
            view.pk,
            view.name,
            f"{base}?{view.query}" if view.query else base,
            view.query == query,
        )
        for view in preferences.list_saved_views(person, page)
    ]
    return SavedViewList(page, views, query, offers)
