"""Saved views of the queue and the log: save one, delete one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from journal.errors import NotFound
from reviews.desk.components import htmx
from reviews.desk.components.frame import require_person
from reviews.desk.forms import SavedViewForm
from reviews.desk.log import views
from reviews.desk.log.filters import LogFilters as LogFilters
from reviews.desk.queue import views as queue
from reviews.desk.queue.page import QueueFilters as QueueFilters
from reviews.people import saved_views

MAX_QUERY_LENGTH = 1000  # characters of a query

# How each list parses its filters, and how it is rendered.
LISTS: dict[str, tuple[Callable[[QueryDict], Any], Callable[..., HttpResponse]]] = {
    "queue": (QueueFilters.read, queue.render_queue_page),
    "log": (LogFilters.read, views.render_log_page),
}


@require_POST
def view_save(request: HttpRequest, page: str) -> HttpResponse:
    """Save the current filter under a name."""
    if page not in LISTS:
        raise NotFound
    read, shown = LISTS[page]
    form = SavedViewForm(request.POST)
    filters = read(QueryDict(request.POST.get("query", "")[:MAX_QUERY_LENGTH]))
    if form.is_valid():
        name, query = form.cleaned_data["name"], filters.query()
        error = htmx.catch_refusal(
            lambda: saved_views.create_saved_view(
                person=require_person(request), page=page, name=name, query=query
            )
        )
        if error is None:
            return redirect(filters.url())
        form.add_error("name", error.detail)
    return shown(request, filters, form)


@require_POST
def view_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete one of the person's own views."""
    page = saved_views.delete_saved_view(person=require_person(request), view_id=pk)
    return redirect(f"reviews:{page}")
