"""The responses to every POST on a batch page: its foot, the whole page or a
redirect."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django_htmx.http import HttpResponseClientRedirect

from journal.errors import DomainError
from reviews.desk.components import frame, htmx
from reviews.desk.components.frame import person

from . import load as queries
from . import page as changes
from .forms import BatchForm
from .load import Loaded
from .page import BatchPage, Selection

TEMPLATE, RESULT = "reviews/batch.html", "reviews/batch_result.html"


def load(request: HttpRequest, pk: str) -> Loaded:
    """Load the batch of this URL for the signed-in person. Raises NotFound."""
    return queries.load(person(request), pk, frame.of(request).now)


def selection(loaded: Loaded, form: BatchForm) -> Selection:
    """Build the selection from the submitted form: ticked rows, opened rows and the
    changes that the page already reported."""
    whose = (loaded.batch.pk, loaded.person.public_id)
    return Selection(
        items=frozenset(form.items),
        made=bool(form.rows),
        opened=tuple(form.opened),
        changed=changes.read(form.noted, whose, loaded.marks),
        page=form.seen,
    )


def shown(request: HttpRequest, loaded: Loaded, form: BatchForm) -> BatchPage:
    """Build the page of which only the foot is rendered.

    The foot reports changes that the rows on the screen do not show yet. Without htmx
    the whole page is rendered, so the rows are rebuilt too.
    """
    if not htmx.wants_partial(request):
        return anew(loaded, form)
    page = BatchPage(loaded, selection(loaded, form))
    page.news = changes.since(loaded, form.marks)
    return page


def anew(loaded: Loaded, form: BatchForm) -> BatchPage:
    """Build the page with its rows as they are now.

    Each row that changed since the reader's page was made carries a note, and keeps the
    notes of earlier rebuilds.
    """
    chosen = selection(loaded, form)
    news = changes.since(loaded, form.marks) if form.rows else None
    changed = {**chosen.changed, **(news.by_request if news else {})}
    return BatchPage(loaded, replace(chosen, changed=changed))


def see(request: HttpRequest, pk: str) -> HttpResponse:
    """Redirect to the batch after a POST. htmx gets a full client-side redirect,
    because the whole page changes."""
    response = redirect("reviews:batch", pk)
    if htmx.wants_partial(request):
        return HttpResponseClientRedirect(response.url)
    response.status_code = 303
    return response


def foot(request: HttpRequest, page: BatchPage, *, status: int = 200) -> HttpResponse:
    """Render the sum, the verdict buttons and the panel; the rows on the screen
    stay."""
    template = htmx.part(request, TEMPLATE, "decide")
    return render(request, template, {"page": page}, status=status)


def told(request: HttpRequest, page: BatchPage, error: DomainError) -> HttpResponse:
    """Render why no verdict was armed, with the focus on the next thing to do: the
    first unopened sample, or the error."""
    page.problem = error
    first = page.unopened[:1] if page.choice.ids else []
    page.focus = f"#open-{first[0].id}" if first else "#problem"
    return foot(request, page, status=error.status)


def whole(request: HttpRequest, page: BatchPage, *, status: int = 200) -> HttpResponse:
    """Render the whole batch, even if htmx asked only for its foot."""
    template = htmx.part(request, TEMPLATE, "batch")
    return retargeted(request, render(request, template, {"page": page}, status=status))


def retargeted(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Make htmx replace the whole batch with this response."""
    if htmx.wants_partial(request):
        response["HX-Retarget"], response["HX-Reswap"] = "#batch", "outerHTML"
    return response
