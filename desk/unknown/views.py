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

from reviews.choices import ExecutionStatus
from reviews.executions import reconcile, settle

from ..components import frame, htmx, navigation
from ..components.frame import require_person
from ..forms import SettleForm
from . import detail as details
from . import lists as queries


@require_safe
def unknown(request: HttpRequest) -> HttpResponse:
    """The unknown outcomes, and those settled lately."""
    person = require_person(request)
    context = {
        "page": queries.build_unknown_page(person),
        "upkeep": navigation.list_upkeep_tabs(person, navigation.UNKNOWN),
    }
    return render(request, "desk/unknown/unknown.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def unknown_one(request: HttpRequest, pk: str) -> HttpResponse:
    """One unknown outcome; POST settles it: it happened, or it did not."""
    person, now = require_person(request), frame.get_frame(request).now
    form = SettleForm(request.POST) if request.method == "POST" else None
    error = None
    page = details.load_unknown_outcome(person, pk, now)
    if form is not None and form.is_valid():
        answer = form.cleaned_data
        error = htmx.catch_refusal(
            lambda: settle.settle_unknown(execution_id=pk, person=person, **answer)
        )
        if error is None:
            messages.success(request, "Recorded. The agent is told the result.")
            return redirect("reviews:unknown")
        page = details.load_unknown_outcome(person, pk, now)
    tabs = navigation.list_upkeep_tabs(person, navigation.UNKNOWN)
    context = {"page": page, "upkeep": tabs, "form": form, "problem": error}
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
