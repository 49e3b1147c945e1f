"""Saved views: a person's named filters of a list."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from journal.errors import Conflict, InvalidInput, NotFound
from policies.models import Person
from reviews.models import SavedView

MAX_VIEWS = 20  # views of one list


def list_saved_views(person: Person, page: str) -> list[SavedView]:
    """The person's saved views of a list (`page`), sorted by name."""
    return list(SavedView.objects.filter(person=person, page=page).order_by("name"))


@transaction.atomic(durable=True)
def create_saved_view(*, person: Person, page: str, name: str, query: str) -> SavedView:
    """Save a filter under a name. Raises Invalid, or Conflict for a name in use."""
    own = SavedView.objects.filter(person=person, page=page)
    if own.count() >= MAX_VIEWS:
        raise InvalidInput(f"{MAX_VIEWS} views are the most. Delete one first.")
    try:
        return own.create(person=person, page=page, name=name, query=query)
    except IntegrityError:
        raise Conflict("You have a view of this name. Nothing was saved.") from None


@transaction.atomic(durable=True)
def delete_saved_view(*, person: Person, view_id: int) -> str:
    """Delete one of the person's views; return its page. Raises NotFound."""
    own = SavedView.objects.filter(person=person, pk=view_id).first()
    if own is None:
        raise NotFound
    own.delete()
    return own.page
