"""Committing a verdict on a batch.

A commit submits exactly what was on the page, with the page evidence that is kept, or
shows the refusal in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from journal.errors import BatchChanged, DomainError, TooFast
from policies import active
from reviews.batches import decide
from reviews.batches.decide import BatchSubmission
from reviews.choices import VERDICT_SPECS, Verdict
from reviews.decisions.submission import PageEvidence, RenderedPage

from ..components import htmx, ready_texts, throttle
from . import evidence, rows
from .forms import BatchForm
from .load import LoadedBatch
from .page import BatchPage, build_page, compute_took_ms
from .panel import build_panel
from .responses import (
    RESULT,
    build_foot_page,
    load_requested_batch,
    redirect_to_batch,
    render_refusal,
    render_whole_batch,
    retarget_to_batch,
)
from .result import BatchResultPage
from .selection import build_fresh_selection, build_selection


def commit_verdict(
    request: HttpRequest, loaded: LoadedBatch, form: BatchForm
) -> HttpResponse:
    """Record the verdict on every item, or on none."""
    error = htmx.catch_refusal(
        lambda: decide.decide_batch(_build_submission(loaded, form))
    )
    if error is None:
        return redirect_to_batch(request, loaded.batch.pk)
    return _render_failed_commit(request, form, error, loaded.batch.pk)


def find_arming_refusal(page: BatchPage, verdict: Verdict) -> DomainError | None:
    """Find what the page has against this verdict: the batch is not this person's to
    decide, nothing is ticked, the sum is too high, or a sample is unopened. None if it
    may be armed."""
    if page.loaded.why_not:
        return TooFast(page.loaded.why_not)
    if not page.ticked.ids:
        return TooFast("No item is selected. Select the items to decide.")
    if not VERDICT_SPECS[verdict].commits:
        return None
    if page.ticked.too_much:
        return TooFast(f"{page.ticked.too_much} Select fewer items.")
    left = len(page.unopened)
    return TooFast(describe_unopened_samples(left)) if left else None


def describe_unopened_samples(left: int) -> str:
    rows = "the sample row" if left == 1 else f"{left} sample rows"
    return f"Open {rows} before you approve."


def _build_submission(loaded: LoadedBatch, form: BatchForm) -> BatchSubmission:
    """Build the submission, with the refusal that the page defers if there is one."""
    items, sent = _sort_items(loaded, form.items), form.cleaned_data
    note = ready_texts.read_note(
        loaded.preset, sent.get("reason", ""), sent.get("ready", "")
    )
    submission = BatchSubmission(
        batch_id=loaded.batch.pk,
        person=loaded.person,
        verdict=form.meant,
        digest=sent.get("digest", ""),
        items=items,
        left_out=[pk for pk in form.marks if pk not in set(items)],
        reason_code=sent.get("reason_code", ""),
        reason=note,
        stop_at_failure=sent.get("stop", False),
        marks=form.marks,
        by="page",
    )
    if not (loaded.members and loaded.waits and items):
        return submission
    page = build_page(loaded, build_selection(loaded, form))
    rendered = evidence.build_page_evidence(page, form.rows)
    took_ms = compute_took_ms(loaded, form.marks, form.seen)
    refusal = (
        find_arming_refusal(page, form.meant)
        or _find_evidence_refusal(rendered, took_ms)
        or _find_throttle_refusal(loaded, form.meant)
    )
    return replace(
        submission,
        page=PageEvidence(rendered, took_ms, deferred_refusal=refusal),
        samples=rows.build_opened_record(page.samples.opened, loaded.now),
    )


def _find_throttle_refusal(loaded: LoadedBatch, verdict: Verdict) -> DomainError | None:
    if not VERDICT_SPECS[verdict].commits:
        return None
    desk = active.load_document(loaded.members[0].version.policy).desk
    return throttle.find_rate_refusal(
        loaded.person, most=desk.most_decisions, now=loaded.now
    )


def _sort_items(loaded: LoadedBatch, items: Sequence[str]) -> list[str]:
    """Sort items in the order of the batch; unknown ones come last."""
    places = {member.id: at for at, member in enumerate(loaded.members)}
    return sorted(items, key=lambda pk: places.get(pk, len(places)))


def _find_evidence_refusal(
    rendered: RenderedPage | None, took_ms: int | None
) -> DomainError | None:
    """Refuse a commit whose page cannot have been rendered by us."""
    if rendered is not None and took_ms is not None:
        return None
    return BatchChanged(
        "This batch changed after you opened it. No item was decided. Review it, then"
        " confirm again."
    )


def _render_failed_commit(
    request: HttpRequest, form: BatchForm, error: DomainError, pk: str
) -> HttpResponse:
    """Show the refusal on the batch as it is now; everything typed is kept."""
    request.desk = None  # type: ignore[attr-defined]  # the clock has moved on
    loaded = load_requested_batch(request, pk)
    if loaded.over:
        context = {"page": BatchResultPage(loaded), "problem": error}
        answer = render(request, RESULT, context, status=error.status)
        return retarget_to_batch(request, answer)
    changed = {change["path"]: change["message"] for change in error.errors}
    if isinstance(error, TooFast):
        return render_refusal(request, build_foot_page(request, loaded, form), error)
    selection = build_fresh_selection(loaded, form)
    selection = replace(selection, changed={**selection.changed, **changed})
    page = build_page(loaded, selection, problem=error)
    if not page.pinned:
        panel = build_panel(page.ticked, form.meant, form, error=error)
        page = replace(page, armed=panel)
    return render_whole_batch(request, page, status=error.status)
