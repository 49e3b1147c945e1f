"""The pages to stop, to lift a stop, and to revoke a reviewer's approvals that have not
run."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from journal.errors import DomainError, NotYours
from reviews.choices import Scope, StopMode
from reviews.desk.components import htmx
from reviews.desk.components.frame import person
from reviews.desk.forms import ReasonForm, StopForm
from reviews.stops import stops

from . import page as stopping
from . import result as queries
from . import revoke as revoking
from .page import Asked


@require_http_methods(["GET", "HEAD", "POST"])
def stop(request: HttpRequest) -> HttpResponse:
    """What this person can stop from here, and the active switches."""
    agent, thread, tool = (
        request.GET.get(name, "") for name in ("agent", "thread", "tool")
    )
    return stop_page(request, Asked(agent, thread, tool))


def stop_page(request: HttpRequest, asked: Asked) -> HttpResponse:
    """Render the Stop page of a run, an agent, a tool or everything; a valid POST
    stops."""
    form = StopForm(request.POST or None)
    sent = request.POST or request.GET
    asked = replace(asked, target=sent.get("target", ""), mode=sent.get("mode", ""))
    problem = None
    if request.method == "POST" and form.is_valid():
        try:
            return _stop(request, form, asked)
        except DomainError as error:
            problem = error
    page = stopping.page(person(request), asked)
    kept = "" if page.scopes else form.data.get("reason", "")
    context = {"page": page, "form": form, "problem": problem, "kept": kept}
    status = htmx.status_of(problem, sent=request.method == "POST")
    return render(request, "reviews/stop.html", context, status=status)


def _stop(request: HttpRequest, form: StopForm, asked: Asked) -> HttpResponse:
    scope, key = form.cleaned_data["target"]
    who = person(request)
    stopping.check_seen(who, asked)
    if not stopping.offers(who, asked, (scope, key)):
        raise NotYours("This page does not stop that. Nothing was changed.")
    row = stops.stop(
        scope=scope,
        key=key,
        mode=StopMode(form.cleaned_data["mode"]),
        person=who,
        reason=form.said,
        reason_code=form.cleaned_data["reason_code"],
        owns=asked.owns,
    )
    return redirect("reviews:stopped", row.pk)


@require_safe
def stopped(request: HttpRequest, pk: int) -> HttpResponse:
    """The result of a stop, with the form to lift it."""
    return _stopped_page(request, pk)


def _stopped_page(
    request: HttpRequest,
    pk: int,
    form: ReasonForm | None = None,
    problem: DomainError | None = None,
) -> HttpResponse:
    page = queries.page(person(request), pk)
    lost = form is not None and not page.switch.may_lift
    kept = form.data.get("reason", "") if form is not None and lost else ""
    context = {"page": page, "lift_form": form, "problem": problem, "kept": kept}
    status = htmx.status_of(problem, sent=form is not None)
    return render(request, "reviews/stopped.html", context, status=status)


@require_safe
@htmx.varies
def stopped_live(request: HttpRequest, pk: int) -> HttpResponse:
    """The same, polled while it still changes."""
    page = queries.page(person(request), pk)
    template = "reviews/stopped.html#fates"
    context = {"page": page, "told": page.over}
    over = page.over and htmx.wants_partial(request)  # 286 is for htmx alone
    return htmx.fragment(request, template, context, etag=page.etag, settled=over)


@require_POST
def lift(request: HttpRequest, pk: int) -> HttpResponse:
    """Lift a stop or pause, with a reason."""
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _stopped_page(request, pk, form)
    reason = form.cleaned_data["reason"]
    try:
        row = stops.lift(stop_id=pk, person=person(request), reason=reason)
    except DomainError as error:
        return _stopped_page(request, pk, form, error)
    said = "On again." if row.lifted_at else "Asked. A second person must agree."
    messages.success(request, said)
    return redirect("reviews:stopped", pk)


@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, who: str) -> HttpResponse:
    """What a revocation would affect; POST revokes and redirects to the result."""
    form = ReasonForm(request.POST or None)
    page = revoking.page(person(request), who)
    problem = None
    if request.method == "POST" and form.is_valid():
        try:
            return _revoke(request, page.who, form.cleaned_data["reason"])
        except DomainError as error:
            problem, page = error, revoking.page(person(request), who)
    kept = form.data.get("reason", "") if page.mine or page.stopped else ""
    context = {"page": page, "form": form, "problem": problem, "kept": kept}
    status = htmx.status_of(problem, sent=request.method == "POST")
    return render(request, "reviews/revoke.html", context, status=status)


def _revoke(request: HttpRequest, who: str, reason: str) -> HttpResponse:
    row = stops.stop(
        scope=Scope.REVIEWER, key=who, person=person(request), reason=reason
    )
    return redirect("reviews:stopped", row.pk)
