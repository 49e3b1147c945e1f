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
from reviews.effects.wording import format_people

from ..components import frame, htmx, ready_texts
from ..components.frame import require_person
from . import commit, lists
from .forms import BatchButton, BatchForm
from .load import LoadedBatch
from .page import BatchPage, build_page
from .panel import NOTE_HINT, build_panel
from .responses import (
    RESULT,
    TEMPLATE,
    build_foot_page,
    load_requested_batch,
    redirect_to_batch,
    render_foot,
    render_refusal,
    render_whole_batch,
)
from .result import BatchResultPage
from .rows import load_peek
from .selection import BatchSelection, build_batch_changes, build_fresh_selection

ButtonHandler = Callable[[HttpRequest, LoadedBatch, BatchForm], HttpResponse]


@require_POST
@htmx.vary_on_htmx
def batch_decide(request: HttpRequest, pk: str) -> HttpResponse:
    """Handle every button on a batch that waits."""
    loaded, form = load_requested_batch(request, pk), BatchForm(request.POST)
    if loaded.over and form.do not in ALLOWED_WHEN_OVER:
        return redirect_to_batch(request, pk)
    if "ready" in request.GET:
        return _render_note(request, loaded, form)
    return HANDLERS[form.do](request, loaded, form)


def _render_note(
    request: HttpRequest, loaded: LoadedBatch, form: BatchForm
) -> HttpResponse:
    """The note of an open panel with the ready text that was just chosen."""
    if loaded.why_not:
        return HttpResponse(status=204)
    sent = form.cleaned_data
    note, key = sent.get("reason", ""), sent.get("ready", "")
    note = ready_texts.insert_ready_text(loaded.preset, note, key)
    ready = ready_texts.list_ready_texts(loaded.preset, "")
    panel = {"note": note, "note_hint": NOTE_HINT, "ready": ready}
    context = {"panel": panel, "note_url": request.path, "inserted": True}
    return render(request, "desk/components/_note.html", context)


def _update_selection(
    request: HttpRequest, loaded: LoadedBatch, form: BatchForm
) -> HttpResponse:
    return render_foot(request, build_foot_page(request, loaded, form))


def _open_row(
    request: HttpRequest, loaded: LoadedBatch, form: BatchForm
) -> HttpResponse:
    selection = build_fresh_selection(loaded, form)
    page = build_page(loaded, replace(selection, open_now=(form.argument,)))
    return render(request, TEMPLATE, {"page": page})


def _split_batch(
    request: HttpRequest, loaded: LoadedBatch, form: BatchForm
) -> HttpResponse:
    """Keep only the rows with one value of one column."""
    selection = build_fresh_selection(loaded, form)
    table, place = build_page(loaded).table, form.cleaned_data.get("split", "")
    chosen = frozenset(table.with_value(place) or form.items)
    selection = replace(selection, items=chosen, made=True)
    return render_whole_batch(request, build_page(loaded, selection, focus="#decide"))


def _report_changes(
    request: HttpRequest, loaded: LoadedBatch, form: BatchForm
) -> HttpResponse:
    """Poll: report what changed since the page was made, without moving any row."""
    news = build_batch_changes(loaded, form.marks)
    context = {
        "news": news,
        "page": {"decide_url": request.path, "id": loaded.batch.pk},
    }
    return htmx.render_fragment(
        request, "desk/batches/_news.html", context, etag=news.etag, settled=news.over
    )


def _refresh_batch(
    request: HttpRequest, loaded: LoadedBatch, form: BatchForm
) -> HttpResponse:
    """Render the batch as it is now, changed rows on top; ticked rows stay ticked."""
    selection = build_fresh_selection(loaded, form)
    return render_whole_batch(request, build_page(loaded, selection, focus="#h1"))


def _arm_verdict(
    request: HttpRequest, loaded: LoadedBatch, form: BatchForm
) -> HttpResponse:
    page, verdict = build_foot_page(request, loaded, form), form.armed
    error = commit.find_arming_refusal(page, verdict) or _find_escalation_refusal(
        page, verdict
    )
    if error is not None:
        return render_refusal(request, page, error)
    panel = build_panel(page.ticked, verdict, form)
    return render_foot(request, replace(page, armed=panel))


def _find_escalation_refusal(page: BatchPage, verdict: Verdict) -> DomainError | None:
    """Refuse to arm an escalation for which the page shows no button."""
    if verdict is not Verdict.ESCALATE or page.ticked.escalates:
        return None
    return TooFast(page.ticked.why_not_escalate)


HANDLERS: Mapping[BatchButton, ButtonHandler] = {
    BatchButton.SELECT: _update_selection,
    BatchButton.OPEN: _open_row,
    BatchButton.SPLIT: _split_batch,
    BatchButton.LOOK: _report_changes,
    BatchButton.REFRESH: _refresh_batch,
    BatchButton.ARM: _arm_verdict,
    BatchButton.COMMIT: commit.commit_verdict,
}
ALLOWED_WHEN_OVER = (BatchButton.COMMIT, BatchButton.LOOK)  # they report it themselves


@require_safe
def batches(request: HttpRequest) -> HttpResponse:
    """The batches that wait, and those decided in the last week."""
    page = lists.build_batch_list(
        require_person(request), now=frame.get_frame(request).now
    )
    return render(request, "desk/batches/batches.html", {"page": page})


@require_safe
@htmx.vary_on_htmx
def batch(request: HttpRequest, pk: str) -> HttpResponse:
    """One batch: to decide, or the result of each item."""
    loaded = load_requested_batch(request, pk)
    if loaded.over:
        return render(request, RESULT, {"page": BatchResultPage(loaded)})
    return render(request, TEMPLATE, {"page": build_page(loaded)})


@require_safe
@htmx.vary_on_htmx
def batch_live(request: HttpRequest, pk: str) -> HttpResponse:
    """The current result of each item, polled."""
    page = BatchResultPage(load_requested_batch(request, pk))
    return htmx.render_fragment(
        request, f"{RESULT}#live", {"page": page}, etag=page.etag, settled=page.over
    )


@require_safe
@htmx.vary_on_htmx
def batch_item(request: HttpRequest, pk: str, item: str) -> HttpResponse:
    """Regions R1 to R3 of one row in its place, or the page with this row open."""
    loaded = load_requested_batch(request, pk)
    peek = load_peek(loaded, item)
    page = build_page(loaded, BatchSelection(open_now=(item,)))
    if htmx.wants_partial(request):
        context = {"peek": peek, "span": page.table.span}
        return render(request, "desk/batches/_peek.html", context)
    return render(request, TEMPLATE, {"page": page})


@require_POST
@htmx.vary_on_htmx
def batch_recall(request: HttpRequest, pk: str) -> HttpResponse:
    """Recall every item whose recall window is open."""
    loaded = load_requested_batch(request, pk)
    count = follow_up.recall_batch(batch_id=pk, person=loaded.person)
    approvals = format_people(count, "approval")
    messages.success(request, f"{approvals} undone. Nothing was executed.")
    return redirect_to_batch(request, pk)


@require_POST
@htmx.vary_on_htmx
def batch_retry(request: HttpRequest, pk: str) -> HttpResponse:
    """Try the failed items again, and nothing else."""
    loaded = load_requested_batch(request, pk)
    count = follow_up.retry_failed(batch_id=pk, person=loaded.person)
    messages.success(request, f"{format_people(count, 'item')} queued again.")
    return redirect_to_batch(request, pk)


@require_POST
@htmx.vary_on_htmx
def batch_run(request: HttpRequest, pk: str) -> HttpResponse:
    """Let the items run that wait behind a failure."""
    loaded = load_requested_batch(request, pk)
    follow_up.run_rest(batch_id=pk, person=loaded.person)
    messages.success(request, "Remaining items resumed. Paused items still wait.")
    return redirect_to_batch(request, pk)
