"""Saved views of the queue and the log: save one, delete one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from journal.errors import NotFound
from reviews.desk.components import htmx
from reviews.desk.components.frame import person
from reviews.desk.forms import ViewForm
from reviews.desk.log import views
from reviews.desk.log.filters import Filters as LogFilters
from reviews.desk.queue import views as queue
from reviews.desk.queue.page import Filters as QueueFilters
from reviews.people import saved_views

MOST = 1000  # characters of a query

# How each list parses its filters, and how it is rendered.
LISTS: dict[str, tuple[Callable[[QueryDict], Any], Callable[..., HttpResponse]]] = {
    "queue": (QueueFilters.read, queue.shown),
    "log": (LogFilters.read, views.shown),
}


@require_POST
def view_save(request: HttpRequest, page: str) -> HttpResponse:
    """Save the current filter under a name."""
    if page not in LISTS:
        raise NotFound
    read, shown = LISTS[page]
    form = ViewForm(request.POST)
    filters = read(QueryDict(request.POST.get("query", "")[:MOST]))
    if form.is_valid():
        name, query = form.cleaned_data["name"], filters.query()
        error = htmx.attempt(
            lambda: saved_views.save(
                person=person(request), page=page, name=name, query=query
            )
        )
        if error is None:
            return redirect(filters.url())
        form.add_error("name", error.detail)
    return shown(request, filters, form)


@require_POST
def view_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete one of the person's own views."""
    return redirect(f"reviews:{saved_views.delete(person=person(request), view_id=pk)}")
