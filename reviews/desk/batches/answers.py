"""What every press on a batch answers with: its foot, the whole of it, or the way to
where it is."""

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
    """Raises NotFound."""
    return queries.load(person(request), pk, frame.of(request).now)


def selection(loaded: Loaded, form: BatchForm) -> Selection:
    """What is ticked and open, and what was said of rows, as the page sent it."""
    whose = (loaded.batch.pk, loaded.person.public_id)
    return Selection(
        items=frozenset(form.items),
        made=bool(form.rows),
        opened=tuple(form.opened),
        changed=changes.read(form.noted, whose, loaded.marks),
        page=form.seen,
    )


def shown(request: HttpRequest, loaded: Loaded, form: BatchForm) -> BatchPage:
    """The page for its foot alone, which says what its rows do not show yet; without
    htmx the rows are made anew as well."""
    if not htmx.wants_partial(request):
        return anew(loaded, form)
    page = BatchPage(loaded, selection(loaded, form))
    page.news = changes.since(loaded, form.marks)
    return page


def anew(loaded: Loaded, form: BatchForm) -> BatchPage:
    """The page with its rows as they are now; what changed under the reader is said of
    each, and stays said."""
    chosen = selection(loaded, form)
    news = changes.since(loaded, form.marks) if form.rows else None
    changed = {**chosen.changed, **(news.by_request if news else {})}
    return BatchPage(loaded, replace(chosen, changed=changed))


def see(request: HttpRequest, pk: str) -> HttpResponse:
    """POST, redirect, GET; htmx goes to the whole page, for all of it is another."""
    response = redirect("reviews:batch", pk)
    if htmx.wants_partial(request):
        return HttpResponseClientRedirect(response.url)
    response.status_code = 303
    return response


def foot(request: HttpRequest, page: BatchPage, *, status: int = 200) -> HttpResponse:
    """The sum, the verbs and the panel; what is read stays as it is."""
    template = htmx.part(request, TEMPLATE, "decide")
    return render(request, template, {"page": page}, status=status)


def told(request: HttpRequest, page: BatchPage, error: DomainError) -> HttpResponse:
    """Why nothing was armed, with the focus where the work goes on."""
    page.problem = error
    first = page.unopened[:1] if page.choice.ids else []
    page.focus = f"#open-{first[0].id}" if first else "#problem"
    return foot(request, page, status=error.status)


def whole(request: HttpRequest, page: BatchPage, *, status: int = 200) -> HttpResponse:
    """The batch anew, also where only its foot was asked for."""
    template = htmx.part(request, TEMPLATE, "batch")
    return retargeted(request, render(request, template, {"page": page}, status=status))


def retargeted(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """For htmx: this answer replaces the whole batch."""
    if htmx.wants_partial(request):
        response["HX-Retarget"], response["HX-Reswap"] = "#batch", "outerHTML"
    return response
