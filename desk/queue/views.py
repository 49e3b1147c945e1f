"""The queue page and the poll for what is new in it."""

from __future__ import annotations

from dataclasses import astuple
from zlib import crc32

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_safe

from journal.errors import NotFound

from ..components import frame, htmx
from ..components.frame import require_person
from ..forms import SavedViewForm
from ..live.subscription import parse_moment
from . import page as queries
from .page import QueueFilters


@require_safe
@htmx.vary_on_htmx
def queue(request: HttpRequest) -> HttpResponse:
    """The person's queue; its whole state is in the URL."""
    return render_queue_page(request, QueueFilters.read(request.GET))


def render_queue_page(
    request: HttpRequest, filters: QueueFilters, form: SavedViewForm | None = None
) -> HttpResponse:
    """Render the queue with these filters, and a saved-view form that was refused."""
    desk = frame.get_frame(request)
    desk.ready()
    page = queries.build_queue_page(require_person(request), filters, now=desk.now)
    template = htmx.choose_template(request, "desk/queue/queue.html", "queue-table")
    context = {"page": page, "view_form": form}
    return render(request, template, context, status=422 if form else 200)


@require_GET
@htmx.vary_on_htmx
def queue_fresh(request: HttpRequest) -> HttpResponse:
    """How many requests arrived since the list was rendered, and which of its rows are
    settled."""
    since = parse_moment(request.GET.get("since", ""))
    if since is None:
        raise NotFound
    count = queries.count_newer(require_person(request), since)
    gone = queries.list_gone_requests(require_person(request), since)
    offers = queries.count_offers(require_person(request), frame.get_frame(request).now)
    numbers = [count, offers, *astuple(frame.get_frame(request).badges)]
    outcomes = "".join(f"{row.id}{row.outcome}" for row in gone)
    etag = ".".join(str(part) for part in [*numbers, crc32(outcomes.encode())])
    context = {
        "count": count,
        "gone": gone,
        "offers": offers,
        "back": _read_back_url(request),
        "etag": etag,
        "oob": True,
    }
    return htmx.render_fragment(request, "desk/queue/_fresh.html", context, etag=etag)


def _read_back_url(request: HttpRequest) -> str:
    """Read the list's own URL; a URL outside the queue is replaced by the queue's."""
    back, own = request.GET.get("back", ""), reverse("reviews:queue")
    return back if back == own or back.startswith(f"{own}?") else own
