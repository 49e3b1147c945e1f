"""Unknown outcomes: the list, one of them, a person's answer and a look-up."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from journal.errors import DomainError
from reviews.choices import ExecutionStatus
from reviews.executions import reconcile, settle

from ..components import frame, htmx
from ..components.frame import require_person
from ..forms import SettleForm
from . import detail as details
from . import lists as queries


@require_safe
def unknown(request: HttpRequest) -> HttpResponse:
    """The unknown outcomes, and those settled lately."""
    page = queries.build_unknown_page(require_person(request))
    context = {"page": page, "upkeep": page.upkeep}
    return render(request, "desk/unknown/unknown.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def unknown_one(request: HttpRequest, pk: str) -> HttpResponse:
    """One unknown outcome; POST settles it: it happened, or it did not."""
    details.load_unknown_outcome(
        require_person(request), pk, frame.get_frame(request).now
    )
    if request.method != "POST":
        return _render_outcome(request, pk)
    form = SettleForm(request.POST)
    if not form.is_valid():
        return _render_outcome(request, pk, form)
    error = htmx.catch_refusal(lambda: _settle_outcome(request, pk, form))
    if error is not None:
        return _render_outcome(request, pk, form, error)
    messages.success(request, "Recorded. The agent is told the result.")
    return redirect("reviews:unknown")


def _settle_outcome(request: HttpRequest, pk: str, form: SettleForm) -> None:
    settle.settle_unknown(
        execution_id=pk, person=require_person(request), **form.cleaned_data
    )


def _render_outcome(
    request: HttpRequest,
    pk: str,
    form: SettleForm | None = None,
    error: DomainError | None = None,
) -> HttpResponse:
    """Render the outcome as it is now, with what the person typed."""
    page = details.load_unknown_outcome(
        require_person(request), pk, frame.get_frame(request).now
    )
    context = {"page": page, "upkeep": page.upkeep, "form": form, "problem": error}
    status = htmx.compute_form_status(error, sent=form is not None)
    return render(request, "desk/unknown/detail.html", context, status=status)


@require_POST
def unknown_look_up(request: HttpRequest, pk: str) -> HttpResponse:
    """Ask the tool's service now for the outcome."""
    who = require_person(request)
    details.load_unknown_outcome(who, pk, frame.get_frame(request).now)
    execution = reconcile.look_up_for_person(pk, who)
    known = execution.status != ExecutionStatus.UNKNOWN
    message = "Resolved by the look-up." if known else "Looked up. Still unknown."
    messages.success(request, message)
    return redirect("reviews:unknown_one", pk)
