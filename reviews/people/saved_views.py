"""Saved views: a person's named filters of a list."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from journal.errors import Conflict, Invalid, NotFound
from policies.models import Person
from reviews.models import SavedView

MOST = 20  # views of one list


def of(person: Person, page: str) -> list[SavedView]:
    """The person's saved views of a list (`page`), sorted by name."""
    return list(SavedView.objects.filter(person=person, page=page).order_by("name"))


@transaction.atomic(durable=True)
def save(*, person: Person, page: str, name: str, query: str) -> SavedView:
    """Save a filter under a name. Raises Invalid, or Conflict for a name in use."""
    own = SavedView.objects.filter(person=person, page=page)
    if own.count() >= MOST:
        raise Invalid(f"{MOST} views are the most. Delete one first.")
    try:
        return own.create(person=person, page=page, name=name, query=query)
    except IntegrityError:
        raise Conflict("You have a view of this name. Nothing was saved.") from None


@transaction.atomic(durable=True)
def delete(*, person: Person, view_id: int) -> str:
    """Delete one of the person's views; return its page. Raises NotFound."""
    own = SavedView.objects.filter(person=person, pk=view_id).first()
    if own is None:
        raise NotFound
    own.delete()
    return own.page
