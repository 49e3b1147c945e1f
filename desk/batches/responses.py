"""The responses to every POST on a batch page: its foot, the whole page or a
redirect."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django_htmx.http import HttpResponseClientRedirect

from journal.errors import DomainError

from ..components import frame, htmx
from ..components.frame import require_person
from . import load
from .forms import BatchForm
from .load import LoadedBatch
from .page import BatchPage, build_page
from .selection import build_batch_changes, build_fresh_selection, build_selection

TEMPLATE, RESULT = "desk/batches/batch.html", "desk/batches/batch_result.html"


def load_requested_batch(request: HttpRequest, pk: str) -> LoadedBatch:
    return load.load_batch(require_person(request), pk, frame.get_frame(request).now)


def build_foot_page(
    request: HttpRequest, loaded: LoadedBatch, form: BatchForm
) -> BatchPage:
    """Build the page of which only the foot is rendered.

    The foot reports changes that the rows on the screen do not show yet. Without htmx
    the whole page is rendered, so the rows are rebuilt too.
    """
    if not htmx.wants_partial(request):
        return build_page(loaded, build_fresh_selection(loaded, form))
    news = build_batch_changes(loaded, form.marks)
    return build_page(loaded, build_selection(loaded, form), news=news)


def redirect_to_batch(request: HttpRequest, pk: str) -> HttpResponse:
    """Redirect to the batch after a POST. htmx gets a full client-side redirect,
    because the whole page changes."""
    response = redirect("reviews:batch", pk)
    if htmx.wants_partial(request):
        return HttpResponseClientRedirect(response.url)
    response.status_code = 303
    return response


def render_foot(
    request: HttpRequest, page: BatchPage, *, status: int = 200
) -> HttpResponse:
    """Render the sum, the verdict buttons and the panel, without the rows."""
    template = htmx.choose_template(request, TEMPLATE, "decide")
    return render(request, template, {"page": page}, status=status)


def render_refusal(
    request: HttpRequest, page: BatchPage, error: DomainError
) -> HttpResponse:
    """Render why no verdict was armed, with the focus on the next thing to do: the
    first unopened sample, or the error."""
    first = page.unopened[:1] if page.ticked.ids else []
    focus = f"#open-{first[0].id}" if first else "#problem"
    page = replace(page, problem=error, focus=focus)
    return render_foot(request, page, status=error.status)


def render_whole_batch(
    request: HttpRequest, page: BatchPage, *, status: int = 200
) -> HttpResponse:
    """Render the whole batch, even if htmx asked only for its foot."""
    template = htmx.choose_template(request, TEMPLATE, "batch")
    return retarget_to_batch(
        request, render(request, template, {"page": page}, status=status)
    )


def retarget_to_batch(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if htmx.wants_partial(request):
        response["HX-Retarget"], response["HX-Reswap"] = "#batch", "outerHTML"
    return response
