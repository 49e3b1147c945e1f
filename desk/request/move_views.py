"""The page on which a supervisor moves a request to another queue."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from journal.errors import DomainError, NotPermitted
from policies.models import Queue
from reviews.decisions import moves

from ..components import holding, htmx
from ..forms import MoveForm
from .load import LoadedRequest
from .page import build_page
from .responses import load_requested, redirect_to_request


@require_http_methods(["GET", "HEAD", "POST"])
def move(request: HttpRequest, pk: str) -> HttpResponse:
    """Move the request to another queue, with a reason; a refusal keeps what was
    typed."""
    loaded = load_requested(request, pk)
    if not holding.may_supervise(loaded.person, loaded.request):
        raise NotPermitted(
            "Only a supervisor of its queue can move a request. Nothing was moved."
        )
    form = MoveForm(request.POST or None, queues=_list_other_queues(loaded))
    if request.method != "POST" or not form.is_valid():
        return _render_page(request, loaded, form)
    to: Queue = form.cleaned_data["queue"]
    error = htmx.catch_refusal(
        lambda: moves.move_request(
            request_id=pk,
            person=loaded.person,
            to=to,
            reason=form.cleaned_data["reason"].replace("\r\n", "\n"),
        )
    )
    if error is not None:
        loaded = load_requested(request, pk, again=True)
        return _render_page(request, loaded, form, error)
    messages.success(request, f"Moved to {to.title}. Its people are notified.")
    return redirect_to_request(pk)


def _list_other_queues(loaded: LoadedRequest) -> list[Queue]:
    others = Queue.objects.exclude(pk=loaded.request.queue_id)
    return list(others.order_by("title", "name"))


def _render_page(
    request: HttpRequest,
    loaded: LoadedRequest,
    form: MoveForm,
    error: DomainError | None = None,
) -> HttpResponse:
    """The form, with the refusal at the field that it names, else above the form."""
    for problem in error.errors if error else ():
        words = problem["message"]
        form.add_error(problem["path"], f"{words[:1].upper()}{words[1:]}.")
    context = {
        "page": build_page(loaded),
        "form": form,
        "problem": "" if error is None or error.errors else error.detail,
    }
    status = htmx.compute_form_status(error, sent=request.method == "POST")
    return render(request, "desk/request/move.html", context, status=status)
