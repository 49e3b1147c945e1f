"""Batches: the list, one that waits, the decision on it, and what came of it.

The form is one: which rows are in, which were opened and what each was on the page go
with every press, so that without JavaScript nothing is lost either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from journal.errors import BatchChanged, DomainError, TooFast
from reviews import batches as operations
from reviews import htmx
from reviews.batches import SaidOfMany
from reviews.choices import Verdict
from reviews.forms.batches import BatchForm, Do
from reviews.queries import batches as queries
from reviews.queries.batches import BatchPage, Loaded, ResultPage, Selection, samples

from . import batch_panels, frame
from .who import person

TEMPLATE, RESULT = "reviews/batch.html", "reviews/batch_result.html"
MOST_ROWS = 100


@require_safe
def batches(request: HttpRequest) -> HttpResponse:
    """What waits to be decided together, and what was in a week."""
    page = queries.listed(person(request), now=frame.of(request).now)
    return render(request, "reviews/batches.html", {"page": page})


@require_safe
@htmx.varies
def batch(request: HttpRequest, pk: str) -> HttpResponse:
    """One batch: to decide, or item by item what came of it."""
    loaded = _load(request, pk)
    if not loaded.waits or len(loaded.members) < 2:
        return render(request, RESULT, {"page": ResultPage(loaded)})
    return render(request, TEMPLATE, {"page": BatchPage(loaded)})


@require_safe
@htmx.varies
def batch_live(request: HttpRequest, pk: str) -> HttpResponse:
    """What came of each item by now."""
    page = ResultPage(_load(request, pk))
    return htmx.fragment(
        request, f"{RESULT}#results", {"page": page}, etag=page.etag, settled=page.over
    )


@require_safe
@htmx.varies
def batch_item(request: HttpRequest, pk: str, item: str) -> HttpResponse:
    """R1 to R3 of one row, in its place; without htmx the page with the row open."""
    loaded = _load(request, pk)
    if htmx.wants_partial(request):
        page = BatchPage(loaded)
        context = {"peek": queries.peek(loaded, item), "span": page.span}
        return render(request, "reviews/_batch_peek.html", context)
    queries.peek(loaded, item)
    page = BatchPage(loaded, Selection(open_now=(item,)))
    return render(request, TEMPLATE, {"page": page})


@require_POST
@htmx.varies
def batch_decide(request: HttpRequest, pk: str) -> HttpResponse:
    """One door: choose rows, open one, take a batch apart, arm a verb, commit."""
    loaded, form = _load(request, pk), BatchForm(request.POST)
    if form.do is Do.COMMIT:
        return _commit(request, loaded, form)
    if not loaded.waits or len(loaded.members) < 2:
        return _see(request, pk)
    return STEPS[form.do](request, loaded, form)


@require_POST
@htmx.varies
def batch_recall(request: HttpRequest, pk: str) -> HttpResponse:
    """Take back everything whose window is open."""
    loaded = _load(request, pk)
    count = operations.recall_all(batch_id=loaded.batch.pk, person=loaded.person)
    messages.success(request, f"{count} recalled. Nothing of them was executed.")
    return _see(request, pk)


@require_POST
@htmx.varies
def batch_retry(request: HttpRequest, pk: str) -> HttpResponse:
    """Try what failed again, and nothing else."""
    loaded = _load(request, pk)
    count = operations.retry_failed(batch_id=loaded.batch.pk, person=loaded.person)
    messages.success(request, f"{count} queued again.")
    return _see(request, pk)


@require_POST
@htmx.varies
def batch_run(request: HttpRequest, pk: str) -> HttpResponse:
    """Let what waits behind a failure run."""
    loaded = _load(request, pk)
    operations.run_rest(batch_id=loaded.batch.pk, person=loaded.person)
    messages.success(request, "The rest runs now.")
    return _see(request, pk)


def _load(request: HttpRequest, pk: str) -> Loaded:
    return queries.load(person(request), pk, frame.of(request).now)


def _see(request: HttpRequest, pk: str) -> HttpResponse:
    """POST, redirect, GET; htmx goes to the whole page, for all of it is another."""
    response = redirect("reviews:batch", pk)
    if htmx.wants_partial(request):
        return HttpResponseClientRedirect(response.url)
    response.status_code = 303
    return response


def _selection(form: BatchForm, **more: object) -> Selection:
    return Selection(
        items=frozenset(form.items),
        made=bool(form.marks),
        opened=tuple(form.opened),
        **more,  # type: ignore[arg-type]
    )


# What a press does beside committing.
def _select(request: HttpRequest, loaded: Loaded, form: BatchForm) -> HttpResponse:
    return _part(request, BatchPage(loaded, _selection(form)))


def _open(request: HttpRequest, loaded: Loaded, form: BatchForm) -> HttpResponse:
    page = BatchPage(loaded, _selection(form, open_now=(form.argument,)))
    return render(request, TEMPLATE, {"page": page})


def _split(request: HttpRequest, loaded: Loaded, form: BatchForm) -> HttpResponse:
    """Keep only the rows with one value of one column."""
    table = BatchPage(loaded).table
    kept = table.with_value(form.cleaned_data.get("split", "")) or form.items
    selection = _selection(form)
    chosen = Selection(frozenset(kept), made=True, opened=selection.opened, open_now=())
    return _whole(request, BatchPage(loaded, chosen, focus="#decide"))


def _arm(request: HttpRequest, loaded: Loaded, form: BatchForm) -> HttpResponse:
    page = BatchPage(loaded, _selection(form))
    verdict = Verdict.REJECT if form.argument == "reject" else Verdict.APPROVE
    error = _not_yet(page, verdict)
    if error is not None:
        return _told(request, page, error)
    page.armed = batch_panels.build(page, verdict, form)
    return _part(request, page)


def _not_yet(page: BatchPage, verdict: Verdict) -> DomainError | None:
    """What the page itself has against arming: nothing chosen, too much, or samples
    that nobody has opened."""
    if page.loaded.why_not:
        return TooFast(page.loaded.why_not)
    if not page.choice.ids:
        return TooFast("Nothing is chosen. Tick what you want to decide.")
    if verdict is Verdict.REJECT:
        return None
    if page.choice.too_much:
        return TooFast(f"{page.choice.too_much} Leave some out.")
    left = len(page.unopened)
    if left:
        rows = "row is" if left == 1 else "rows are"
        return TooFast(
            f"{left} sample {rows} still to be opened before these can be approved."
        )
    return None


STEPS: Mapping[Do, Callable[[HttpRequest, Loaded, BatchForm], HttpResponse]] = {
    Do.SELECT: _select,
    Do.OPEN: _open,
    Do.SPLIT: _split,
    Do.ARM: _arm,
}


# Committing.
def _commit(request: HttpRequest, loaded: Loaded, form: BatchForm) -> HttpResponse:
    error = htmx.attempt(lambda: operations.decide(_said(loaded, form)))
    if error is None:
        return _see(request, loaded.batch.pk)
    return _refused(request, form, error, loaded.batch.pk)


def _said(loaded: Loaded, form: BatchForm) -> SaidOfMany:
    """The verdict that was sent, with what the page itself has against it."""
    page = BatchPage(loaded, _selection(form)) if loaded.members else None
    verdict = form.meant
    asked = page and loaded.waits and form.items
    places = {member.id: at for at, member in enumerate(loaded.members)}
    items = sorted(form.items, key=lambda pk: places.get(pk, len(places)))
    return SaidOfMany(
        batch_id=loaded.batch.pk,
        person=loaded.person,
        verdict=verdict,
        digest=form.cleaned_data.get("digest", ""),
        items=items,
        left_out=[pk for pk in form.marks if pk not in set(items)],
        reason_code=form.cleaned_data.get("reason_code", ""),
        reason=form.cleaned_data.get("reason", "").replace("\r\n", "\n"),
        stop_at_failure=form.cleaned_data.get("stop", False),
        marks=form.marks,
        samples=samples.recorded(page.opened, loaded.now) if page else {},
        by="page",
        objection=_not_yet(page, verdict) if page and asked else None,
    )


def _refused(
    request: HttpRequest, form: BatchForm, error: DomainError, pk: str
) -> HttpResponse:
    """The refusal in place, on the batch as it is now; nothing typed is lost."""
    request.desk = None  # type: ignore[attr-defined]  # the clock has moved on
    loaded = _load(request, pk)
    if not loaded.waits or len(loaded.members) < 2:
        context = {"page": ResultPage(loaded), "problem": error}
        return _retargeted(
            request, render(request, RESULT, context, status=error.status)
        )
    changed = {one["path"]: one["message"] for one in error.errors}
    page = BatchPage(loaded, _selection(form, changed=changed), problem=error)
    if isinstance(error, TooFast):
        return _told(request, page, error)
    if not isinstance(error, BatchChanged) or not changed:
        page.armed = batch_panels.build(page, form.meant, form, error=error)
    return _whole(request, page, status=error.status)


# Answers.
def _told(request: HttpRequest, page: BatchPage, error: DomainError) -> HttpResponse:
    """Why nothing was armed, with the focus where the work goes on."""
    page.problem = error
    first = page.unopened[:1] if page.choice.ids else []
    page.focus = f"#open-{first[0].id}" if first else "#problem"
    return _part(request, page, status=error.status)


def _part(request: HttpRequest, page: BatchPage, *, status: int = 200) -> HttpResponse:
    template = htmx.part(request, TEMPLATE, "decide")
    return render(request, template, {"page": page}, status=status)


def _whole(request: HttpRequest, page: BatchPage, *, status: int = 200) -> HttpResponse:
    """The batch anew, also where only its foot was asked for."""
    template = htmx.part(request, TEMPLATE, "batch")
    answer = render(request, template, {"page": page}, status=status)
    return _retargeted(request, answer)


def _retargeted(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if htmx.wants_partial(request):
        response["HX-Retarget"], response["HX-Reswap"] = "#batch", "outerHTML"
    return response
