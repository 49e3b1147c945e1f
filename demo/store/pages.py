"""The store's pages for people, and its inbox for whoever works through it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from . import config, database, queries
from .database import Connection
from .refusals import Refusal
from .shown import visible

STYLE = (Path(__file__).parent / "store.css").read_text()
EVERY = 5
"""Seconds between two loads of a page that refreshes itself."""


@contextmanager
def _store() -> Iterator[Connection]:
    """The database; what is not there is a 404."""
    try:
        with database.reading(config.load().database) as db:
            yield db
    except Refusal as refusal:
        raise Http404(refusal.detail) from refusal


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Money first, then everything else that happened, then the orders."""
    with _store() as db:
        shown = {
            "ledger": queries.ledger(db),
            "paid": queries.paid(db),
            "mails": queries.mails(db),
            "returns": queries.return_labels(db),
            "redirections": queries.redirections(db),
            "deletions": queries.deletions(db),
            "tags": queries.tags(db),
            "drafts": queries.drafts(db),
            "orders": queries.orders(db),
        }
    every = "" if request.GET.get("refresh") == "off" else str(EVERY)
    return render(
        request,
        "home.html",
        {**shown, "every": every, "now": queries.shown_time(database.now())},
    )


@require_safe
def order(request: HttpRequest, number: str) -> HttpResponse:
    """One order."""
    with _store() as db:
        return render(request, "order.html", {"order": queries.order(db, number)})


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """What customers wrote."""
    with _store() as db:
        messages = [_shown(message) for message in queries.inbox(db)]
    return render(request, "inbox.html", {"messages": messages})


@require_safe
def message(request: HttpRequest, number: str) -> HttpResponse:
    """One message, its text made inert."""
    with _store() as db:
        shown = _shown(queries.message(db, number))
    return render(request, "message.html", {"message": shown})


def _shown(message: queries.Shown) -> queries.Shown:
    shown = {name: visible(value) for name, value in message.items()}
    return {**shown, "received_at": queries.shown_time(message["received_at"])}


@require_safe
def inbox_json(request: HttpRequest) -> HttpResponse:
    """The inbox for an agent: what is there, without the bodies."""
    with _store() as db:
        return JsonResponse({"messages": queries.inbox(db)})


@require_safe
def message_json(request: HttpRequest, number: str) -> HttpResponse:
    """One message for an agent, exactly as it was sent."""
    with _store() as db:
        return JsonResponse(queries.message(db, number))


@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """Whether the store can answer and read its database."""
    with _store() as db:
        db.execute("SELECT 1 FROM call LIMIT 1")
    return HttpResponse("ok", content_type="text/plain")


@require_safe
@cache_control(max_age=60)
def style(request: HttpRequest) -> HttpResponse:
    """The one stylesheet."""
    return HttpResponse(STYLE, content_type="text/css; charset=utf-8")


def missing(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404."""
    return render(request, "missing.html", status=404)
