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
from reviews.desk.components import frame, htmx
from reviews.desk.components.frame import person
from reviews.desk.forms import SettleForm
from reviews.executions import reconcile, settle

from . import detail as details
from . import lists as queries


@require_safe
def unknown(request: HttpRequest) -> HttpResponse:
    """The unknown outcomes, and those settled lately."""
    page = queries.page(person(request))
    context = {"page": page, "upkeep": page.upkeep}
    return render(request, "reviews/unknown.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def unknown_one(request: HttpRequest, pk: str) -> HttpResponse:
    """One unknown outcome; POST settles it: it happened, or it did not."""
    details.item(person(request), pk, frame.of(request).now)
    if request.method != "POST":
        return _page(request, pk)
    form = SettleForm(request.POST)
    if not form.is_valid():
        return _page(request, pk, form)
    error = htmx.attempt(lambda: _settle(request, pk, form))
    if error is not None:
        return _page(request, pk, form, error)
    messages.success(request, "Recorded. The agent is told what you said.")
    return redirect("reviews:unknown")


def _settle(request: HttpRequest, pk: str, form: SettleForm) -> None:
    settle.settle_unknown(execution_id=pk, person=person(request), **form.cleaned_data)


def _page(
    request: HttpRequest,
    pk: str,
    form: SettleForm | None = None,
    error: DomainError | None = None,
) -> HttpResponse:
    """Render the outcome as it is now, with what the person typed."""
    page = details.item(person(request), pk, frame.of(request).now)
    context = {"page": page, "upkeep": page.upkeep, "form": form, "problem": error}
    status = htmx.status_of(error, sent=form is not None)
    return render(request, "reviews/unknown_one.html", context, status=status)


@require_POST
def unknown_look_up(request: HttpRequest, pk: str) -> HttpResponse:
    """Ask the tool's service now for the outcome."""
    who = person(request)
    details.item(who, pk, frame.of(request).now)
    execution = reconcile.look_up_now(pk, who)
    known = execution.status != ExecutionStatus.UNKNOWN
    said = "Settled by what the service says." if known else "Asked. Still not known."
    messages.success(request, said)
    return redirect("reviews:unknown_one", pk)
