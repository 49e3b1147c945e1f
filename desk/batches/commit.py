"""Arming and committing a verdict on a batch.

Builds the panel for an armed verdict: what it does to exactly which requests, and what
the person typed so far. A commit submits exactly what was on the page, with the page
evidence that is kept, or shows the refusal in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from journal.errors import BatchChanged, DomainError, TooFast
from policies import active
from reviews.batches import decide
from reviews.batches.decide import BatchSubmission
from reviews.choices import REASON_LABELS, VERDICT_SPECS, Verdict
from reviews.decisions.submission import PageEvidence, RenderedPage
from reviews.effects.wording import format_delay

from ..components import htmx, throttle
from ..components.choice import VERDICT_WORDINGS
from ..components.formatting import ReasonChoice
from . import evidence, table
from .answers import (
    RESULT,
    build_foot_page,
    build_fresh_page,
    build_selection,
    load_requested_batch,
    redirect_to_batch,
    render_refusal,
    render_whole_batch,
    retarget_to_batch,
)
from .evidence import ShownBatchRow
from .forms import BatchButton, BatchForm
from .links import format_request_count
from .load import LoadedBatch
from .page import BatchPage, compute_took_ms
from .result import BatchResultPage


@dataclass(frozen=True, slots=True)
class BatchPanel:
    """One verdict, armed for one exact list of requests."""

    name: str
    heading: str
    digest: str
    lines: Sequence[str]
    reasons: Sequence[ReasonChoice]
    reason_required: bool
    reason_error: str
    note: str
    stop: bool
    problem: str
    commit: str
    after: str

    @property
    def focus(self) -> str:
        """The element to focus: the error, else the heading, never a button."""
        if self.reason_error:
            return "#reasons"
        return "#problem" if self.problem else "#panel"


def build_panel(
    page: BatchPage,
    verdict: Verdict,
    form: BatchForm,
    *,
    error: DomainError | None = None,
) -> BatchPanel:
    """Build the panel for the current selection, with what the person typed so far."""
    code = error.code if error else ""
    verb = VERDICT_WORDINGS[verdict].verb
    commits = form.do is BatchButton.COMMIT
    reasons = _list_reason_choices(page, verdict, form)
    own = form.data.get("verdict", verdict) == verdict  # typed for this verdict
    return BatchPanel(
        name=verdict.value,
        heading=f"{verb} selected items",
        digest=page.choice.digest,
        lines=_describe_consequences(page, verdict),
        reasons=reasons,
        reason_required=_needs_reason(page, verdict),
        reason_error=error.detail if error and code == "reason" and reasons else "",
        note=str(form.cleaned_data.get("reason", "")) if own else "",
        stop=bool(form.cleaned_data.get("stop")) if commits else True,
        problem=_describe_problem(error)
        if error and not (code == "reason" and reasons)
        else "",
        commit=f"{verb} {page.choice.what}",
        after=_describe_what_follows(page, verdict),
    )


def _describe_problem(error: DomainError) -> str:
    if error.code == "batch_changed":
        return (
            "This panel was opened for a different selection. Nothing was recorded."
            " Check the total, then confirm again."
        )
    return error.detail


def _describe_consequences(page: BatchPage, verdict: Verdict) -> list[str]:
    many = format_request_count(page.definition, len(page.choice.ids))
    effect = VERDICT_WORDINGS[verdict].batch_effect.format(many=many)
    return [f"{effect} {page.choice.left_out_said}".rstrip()]


def _needs_reason(page: BatchPage, verdict: Verdict) -> bool:
    """Apply the operation's own rule: a refusal needs a reason, and so does a request
    that the policy marks."""
    if VERDICT_SPECS[verdict].needs_reason:
        return True
    return page.facts.first.version.requires_reason


def _list_reason_choices(
    page: BatchPage, verdict: Verdict, form: BatchForm
) -> list[ReasonChoice]:
    if not _needs_reason(page, verdict):
        return []
    chosen = form.cleaned_data.get("reason_code", "")
    return [
        ReasonChoice(code.value, REASON_LABELS[code], code.value == chosen)
        for code in VERDICT_SPECS[verdict].reasons
    ]


def _describe_what_follows(page: BatchPage, verdict: Verdict) -> str:
    if verdict is Verdict.REJECT:
        return ""
    if verdict is Verdict.ESCALATE:
        return "An item that nobody decides in time expires and is not executed."
    seconds = page.facts.first.version.recall_seconds
    when = f"{format_delay(seconds)} after approval"
    undo = "You can undo all of them until then (Z)."
    if not seconds:
        when, undo = "immediately", "The approvals cannot be undone."
    if page.definition.by_agent:
        return f"The agent may perform them {when}. {undo}"
    return f"They run {when}, one after another. {undo}"


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
    if not page.choice.ids:
        return TooFast("No item is selected. Select the items to decide.")
    if not VERDICT_SPECS[verdict].commits:
        return None
    if page.choice.too_much:
        return TooFast(f"{page.choice.too_much} Select fewer items.")
    left = len(page.unopened)
    return TooFast(describe_unopened_samples(left)) if left else None


def describe_unopened_samples(left: int) -> str:
    """Describe which samples must be opened before an approval."""
    rows = "the sample row" if left == 1 else f"{left} sample rows"
    return f"Open {rows} before you approve."


def _build_submission(loaded: LoadedBatch, form: BatchForm) -> BatchSubmission:
    """Build the submission, with the refusal that the page defers if there is one."""
    items = _sort_items(loaded, form.items)
    said = BatchSubmission(
        batch_id=loaded.batch.pk,
        person=loaded.person,
        verdict=form.meant,
        digest=form.cleaned_data.get("digest", ""),
        items=items,
        left_out=[pk for pk in form.marks if pk not in set(items)],
        reason_code=form.cleaned_data.get("reason_code", ""),
        reason=form.cleaned_data.get("reason", "").replace("\r\n", "\n"),
        stop_at_failure=form.cleaned_data.get("stop", False),
        marks=form.marks,
        by="page",
    )
    if not (loaded.members and loaded.waits and items):
        return said
    page = BatchPage(loaded, build_selection(loaded, form))
    sight = _collect_evidence(page, form)
    took_ms = compute_took_ms(loaded, form.marks, form.seen)
    refusal = (
        find_arming_refusal(page, form.meant)
        or _find_evidence_refusal(sight, took_ms)
        or _find_throttle_refusal(loaded, form.meant)
    )
    return replace(
        said,
        page=PageEvidence(sight, took_ms, deferred_refusal=refusal),
        samples=table.build_opened_record(page.opened, loaded.now),
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


def _collect_evidence(page: BatchPage, form: BatchForm) -> RenderedPage | None:
    rows = {
        row.request: (row.mark, ShownBatchRow(row.request, row.version, row.reading))
        for row in form.rows
    }
    return evidence.build_page_evidence(page, rows)


def _find_evidence_refusal(
    sight: RenderedPage | None, took_ms: int | None
) -> DomainError | None:
    """Refuse a commit whose page cannot have been rendered by us."""
    if sight is not None and took_ms is not None:
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
    changed = {one["path"]: one["message"] for one in error.errors}
    if isinstance(error, TooFast):
        return render_refusal(request, build_foot_page(request, loaded, form), error)
    page = build_fresh_page(loaded, form)
    page.selection = replace(
        page.selection, changed={**page.selection.changed, **changed}
    )
    page.problem = error
    if not page.pinned:
        page.armed = build_panel(page, form.meant, form, error=error)
    return render_whole_batch(request, page, status=error.status)
