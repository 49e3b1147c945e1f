"""The batch pages: the list, a waiting batch, a decided one, and their actions.

A waiting batch is one form. Every button submits which rows are ticked and opened and
what each row was on the page, so that nothing is lost without JavaScript.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from journal.errors import DomainError, TooFast
from reviews.batches import follow_up
from reviews.choices import Verdict
from reviews.desk.components import frame, htmx
from reviews.desk.components.frame import person

from . import commit, lists, table
from . import page as changes
from .answers import RESULT, TEMPLATE, anew, foot, load, see, shown, told, whole
from .forms import BatchForm, Do
from .load import Loaded
from .page import BatchPage, Selection
from .result import ResultPage

Step = Callable[[HttpRequest, Loaded, BatchForm], HttpResponse]


@require_POST
@htmx.varies
def batch_decide(request: HttpRequest, pk: str) -> HttpResponse:
    """Handle every button on a batch that waits."""
    loaded, form = load(request, pk), BatchForm(request.POST)
    if loaded.over and form.do not in ALSO_OVER:
        return see(request, pk)
    return STEPS[form.do](request, loaded, form)


def _select(request: HttpRequest, loaded: Loaded, form: BatchForm) -> HttpResponse:
    return foot(request, shown(request, loaded, form))


def _open(request: HttpRequest, loaded: Loaded, form: BatchForm) -> HttpResponse:
    page = anew(loaded, form)
    page.selection = replace(page.selection, open_now=(form.argument,))
    return render(request, TEMPLATE, {"page": page})


def _split(request: HttpRequest, loaded: Loaded, form: BatchForm) -> HttpResponse:
    """Keep only the rows with one value of one column."""
    page = anew(loaded, form)
    place = form.cleaned_data.get("split", "")
    kept = page.table.with_value(place) or form.items
    page.selection = replace(page.selection, items=frozenset(kept), made=True)
    page.focus = "#decide"
    return whole(request, page)


def _look(request: HttpRequest, loaded: Loaded, form: BatchForm) -> HttpResponse:
    """Poll: report what changed since the page was made, without moving any row."""
    news = changes.since(loaded, form.marks)
    context = {
        "news": news,
        "page": {"decide_url": request.path, "id": loaded.batch.pk},
    }
    return htmx.fragment(
        request,
        "reviews/_batch_news.html",
        context,
        etag=news.etag,
        settled=news.over,
    )


def _refresh(request: HttpRequest, loaded: Loaded, form: BatchForm) -> HttpResponse:
    """Render the batch as it is now, changed rows on top; ticked rows stay ticked."""
    page = anew(loaded, form)
    page.focus = "#h1"
    return whole(request, page)


def _arm(request: HttpRequest, loaded: Loaded, form: BatchForm) -> HttpResponse:
    page, verdict = shown(request, loaded, form), form.armed
    error = commit.not_yet(page, verdict) or _in_vain(page, verdict)
    if error is not None:
        return told(request, page, error)
    page.armed = commit.build(page, verdict, form)
    return foot(request, page)


def _in_vain(page: BatchPage, verdict: Verdict) -> DomainError | None:
    """Refuse to arm an escalation for which the page shows no button."""
    if verdict is not Verdict.ESCALATE or page.choice.escalates:
        return None
    return TooFast(page.choice.why_not_escalate)


STEPS: Mapping[Do, Step] = {
    Do.SELECT: _select,
    Do.OPEN: _open,
    Do.SPLIT: _split,
    Do.LOOK: _look,
    Do.REFRESH: _refresh,
    Do.ARM: _arm,
    Do.COMMIT: commit.commit,
}
ALSO_OVER = (Do.COMMIT, Do.LOOK)  # they report it themselves


@require_safe
def batches(request: HttpRequest) -> HttpResponse:
    """The batches that wait, and those decided in the last week."""
    page = lists.listed(person(request), now=frame.of(request).now)
    return render(request, "reviews/batches.html", {"page": page})


@require_safe
@htmx.varies
def batch(request: HttpRequest, pk: str) -> HttpResponse:
    """One batch: to decide, or the result of each item."""
    loaded = load(request, pk)
    if loaded.over:
        return render(request, RESULT, {"page": ResultPage(loaded)})
    return render(request, TEMPLATE, {"page": BatchPage(loaded)})


@require_safe
@htmx.varies
def batch_live(request: HttpRequest, pk: str) -> HttpResponse:
    """The current result of each item, polled."""
    page = ResultPage(load(request, pk))
    return htmx.fragment(
        request, f"{RESULT}#live", {"page": page}, etag=page.etag, settled=page.over
    )


@require_safe
@htmx.varies
def batch_item(request: HttpRequest, pk: str, item: str) -> HttpResponse:
    """Regions R1 to R3 of one row, in its place; without htmx the page with this row
    open."""
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
    """Recall every item whose recall window is open."""
    count = follow_up.recall_all(
        batch_id=load(request, pk).batch.pk, person=person(request)
    )
    messages.success(request, f"{count} recalled. Nothing of them was executed.")
    return see(request, pk)


@require_POST
@htmx.varies
def batch_retry(request: HttpRequest, pk: str) -> HttpResponse:
    """Try the failed items again, and nothing else."""
    count = follow_up.retry_failed(
        batch_id=load(request, pk).batch.pk, person=person(request)
    )
    messages.success(request, f"{count} queued again.")
    return see(request, pk)


@require_POST
@htmx.varies
def batch_run(request: HttpRequest, pk: str) -> HttpResponse:
    """Let the items run that wait behind a failure."""
    follow_up.run_rest(batch_id=load(request, pk).batch.pk, person=person(request))
    messages.success(request, "The rest goes on. What is paused waits.")
    return see(request, pk)
