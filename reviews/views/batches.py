"""Batches: the list, one that waits, what came of one that was decided, and what can
still be done with that."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from reviews.batches import follow_up, recalling
from reviews.desk.batches import lists, table
from reviews.desk.batches.answers import RESULT, TEMPLATE, load, see
from reviews.desk.batches.page import BatchPage
from reviews.desk.batches.result import ResultPage
from reviews.desk.components import frame, htmx
from reviews.queries.batches.choice import Selection

from .who import person


@require_safe
def batches(request: HttpRequest) -> HttpResponse:
    """What waits to be decided together, and what was in a week."""
    page = lists.listed(person(request), now=frame.of(request).now)
    return render(request, "reviews/batches.html", {"page": page})


@require_safe
@htmx.varies
def batch(request: HttpRequest, pk: str) -> HttpResponse:
    """One batch: to decide, or item by item what came of it."""
    loaded = load(request, pk)
    if loaded.over:
        return render(request, RESULT, {"page": ResultPage(loaded)})
    return render(request, TEMPLATE, {"page": BatchPage(loaded)})


@require_safe
@htmx.varies
def batch_live(request: HttpRequest, pk: str) -> HttpResponse:
    """What came of each item by now."""
    page = ResultPage(load(request, pk))
    return htmx.fragment(
        request, f"{RESULT}#live", {"page": page}, etag=page.etag, settled=page.over
    )


@require_safe
@htmx.varies
def batch_item(request: HttpRequest, pk: str, item: str) -> HttpResponse:
    """R1 to R3 of one row, in its place; without htmx the page with the row open."""
    loaded = load(request, pk)
    peek = table.peek(loaded, item)
    if htmx.wants_partial(request):
        context = {"peek": peek, "span": BatchPage(loaded).span}
        return render(request, "reviews/_batch_peek.html", context)
    page = BatchPage(loaded, Selection(open_now=(item,)))
    return render(request, TEMPLATE, {"page": page})


@require_POST
@htmx.varies
def batch_recall(request: HttpRequest, pk: str) -> HttpResponse:
    """Take back everything whose window is open."""
    count = recalling.recall_all(
        batch_id=load(request, pk).batch.pk, person=person(request)
    )
    messages.success(request, f"{count} recalled. Nothing of them was executed.")
    return see(request, pk)


@require_POST
@htmx.varies
def batch_retry(request: HttpRequest, pk: str) -> HttpResponse:
    """Try what failed again, and nothing else."""
    count = follow_up.retry_failed(
        batch_id=load(request, pk).batch.pk, person=person(request)
    )
    messages.success(request, f"{count} queued again.")
    return see(request, pk)


@require_POST
@htmx.varies
def batch_run(request: HttpRequest, pk: str) -> HttpResponse:
    """Let what waits behind a failure run."""
    follow_up.run_rest(batch_id=load(request, pk).batch.pk, person=person(request))
    messages.success(request, "The rest goes on. What is paused waits.")
    return see(request, pk)
