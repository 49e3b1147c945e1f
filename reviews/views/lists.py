"""The lists: queue, escalations, announced."""

from __future__ import annotations

from datetime import UTC, datetime

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET, require_safe

from journal.errors import NotFound
from reviews import htmx, permissions, shortcuts
from reviews.queries import announced as announced_queries
from reviews.queries import escalations as escalation_queries
from reviews.queries import queue as queue_queries

from . import frame
from .who import person


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Each role's first page."""
    decides = permissions.deciding_role(person(request)) is not None
    return redirect("reviews:queue" if decides else "reviews:log")


@require_safe
@htmx.varies
def queue(request: HttpRequest) -> HttpResponse:
    """My queue; all of its state is in the address."""
    desk = frame.of(request)
    page = queue_queries.page(
        person(request),
        queue_queries.Filters.read(request.GET),
        decidable=desk.badges.queue,
        now=desk.now,
    )
    template = htmx.part(request, "reviews/queue.html", "queue-table")
    return render(request, template, {"page": page})


@require_GET
@htmx.varies
def queue_fresh(request: HttpRequest) -> HttpResponse:
    """How many requests came since the list on the screen was made."""
    since = _moment(request.GET.get("since", ""))
    if since is None:
        raise NotFound
    count = queue_queries.newer(person(request), since)
    found = frame.of(request).badges
    etag = f"{count}.{found.queue}.{found.soon}.{found.escalations}"
    context = {"count": count, "back": _back(request), "etag": etag, "oob": True}
    return htmx.fragment(request, "reviews/_fresh.html", context, etag=etag)


def _moment(said: str) -> datetime | None:
    """None for what is no moment: a thirteenth month, no zone, before the year 1."""
    try:
        found = parse_datetime(said.replace(" ", "+"))
        return found.astimezone(UTC) if found and found.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _back(request: HttpRequest) -> str:
    """The list's own address again, never one that a link brought along."""
    back, own = request.GET.get("back", ""), reverse("reviews:queue")
    return back if back == own or back.startswith(f"{own}?") else own


@require_safe
def escalations(request: HttpRequest) -> HttpResponse:
    """What was handed up or needs two people, by answer-by time."""
    page = escalation_queries.page(person(request), now=frame.of(request).now)
    return render(request, "reviews/escalations.html", {"page": page})


@require_safe
def announced(request: HttpRequest) -> HttpResponse:
    """What ran under NOTIFY."""
    lines = announced_queries.page(person(request))
    return render(request, "reviews/announced.html", {"lines": lines})


@login_not_required
@require_safe
@htmx.varies
def help(request: HttpRequest) -> HttpResponse:
    """Keys and states, in words; for the dialog the keys alone."""
    places = shortcuts.by_place(frame.of(request).prefs.keys.mine)
    template = htmx.part(request, "reviews/help.html", "keys")
    return render(request, template, {"places": places})
