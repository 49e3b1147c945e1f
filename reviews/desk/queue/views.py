"""The queue, what is new in it, and a look at one of its rows."""

from __future__ import annotations

from dataclasses import astuple
from datetime import UTC, datetime
from zlib import crc32

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET, require_safe

from journal.errors import NotFound
from reviews.desk.components import frame, htmx
from reviews.desk.components.frame import person
from reviews.desk.forms import ViewForm

from . import page as queries
from .page import Filters


@require_safe
@htmx.varies
def queue(request: HttpRequest) -> HttpResponse:
    """My queue; all of its state is in the address."""
    return shown(request, Filters.read(request.GET))


def shown(
    request: HttpRequest, filters: Filters, form: ViewForm | None = None
) -> HttpResponse:
    """The page of these filters, perhaps with a form that was refused."""
    desk = frame.of(request)
    desk.ready()
    page = queries.page(
        person(request), filters, decidable=desk.badges.queue, now=desk.now
    )
    template = htmx.part(request, "reviews/queue.html", "queue-table")
    context = {"page": page, "view_form": form}
    return render(request, template, context, status=422 if form else 200)


@require_GET
@htmx.varies
def queue_fresh(request: HttpRequest) -> HttpResponse:
    """How many came since the list on the screen was made, and what of it is over."""
    since = _moment(request.GET.get("since", ""))
    if since is None:
        raise NotFound
    count = queries.newer(person(request), since)
    gone = queries.since(person(request), since)
    numbers = [count, *astuple(frame.of(request).badges)]
    said = "".join(f"{one.id}{one.said}" for one in gone)
    etag = ".".join(str(one) for one in [*numbers, crc32(said.encode())])
    context = {
        "count": count,
        "gone": gone,
        "back": _back(request),
        "etag": etag,
        "oob": True,
    }
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
