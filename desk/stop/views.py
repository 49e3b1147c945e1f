"""The pages to stop, to lift a stop, and to revoke a reviewer's approvals that have not
run."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from journal.errors import DomainError, NotFound, NotPermitted
from reviews.choices import Scope, StopMode
from reviews.stops import stops

from ..components import htmx
from ..components.frame import require_person
from ..forms import ReasonForm, StopForm
from . import result
from .page import StopRequest, build_stop_page, check_visible, is_offered
from .revoke import build_revoke_page

RUN_NEEDS_AGENT = (
    "The address names a run without its agent. Nothing was stopped. Write both, as in"
    " thread=agent/run."
)


@require_http_methods(["GET", "HEAD", "POST"])
def stop(request: HttpRequest) -> HttpResponse:
    """What this person can stop from here, and the active switches."""
    agent, thread, tool = (
        request.GET.get(name, "") for name in ("agent", "thread", "tool")
    )
    if thread and not agent:  # the key by which lists and the log name a run
        agent, slash, thread = thread.partition("/")
        if not (slash and thread):
            raise NotFound(RUN_NEEDS_AGENT)
    return render_stop_page(request, StopRequest(agent, thread, tool))


def render_stop_page(request: HttpRequest, asked: StopRequest) -> HttpResponse:
    """Render the Stop page of a run, an agent, a tool or everything; a valid POST
    stops."""
    form = StopForm(request.POST or None)
    sent = request.POST or request.GET
    asked = replace(
        asked,
        target=sent.get("target", ""),
        mode=sent.get("mode", ""),
        whole="all" in request.GET,
    )
    problem = None
    if request.method == "POST" and form.is_valid():
        try:
            return _stop_target(request, form, asked)
        except DomainError as error:
            problem = error
    page = build_stop_page(require_person(request), asked)
    unsent = "" if page.scopes else form.data.get("reason", "")
    context = {"page": page, "form": form, "problem": problem, "kept": unsent}
    context["back"] = _find_way_back(request)
    status = htmx.compute_form_status(problem, sent=request.method == "POST")
    return render(request, "desk/stop/stop.html", context, status=status)


def _find_way_back(request: HttpRequest) -> str:
    """The path of the page from which this one was opened; the first page for an
    address of another site, or none."""
    came = request.POST.get("back") or request.headers.get("Referer", "")
    where = urlsplit(came)
    path = urlunsplit(("", "", where.path, where.query, ""))
    own = url_has_allowed_host_and_scheme(came, {request.get_host()})
    safe = own and url_has_allowed_host_and_scheme(path, None)
    return path if safe and where.path != request.path else "/"


def _stop_target(
    request: HttpRequest, form: StopForm, asked: StopRequest
) -> HttpResponse:
    scope, key = form.cleaned_data["target"]
    who = require_person(request)
    check_visible(who, asked)
    if not is_offered(who, asked, (scope, key)):
        raise NotPermitted("This page cannot stop that. Nothing was changed.")
    row = stops.create_stop(
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
    return _render_stopped_page(request, pk)


def _render_stopped_page(
    request: HttpRequest,
    pk: int,
    form: ReasonForm | None = None,
    problem: DomainError | None = None,
) -> HttpResponse:
    page = result.build_stopped_page(require_person(request), pk)
    lost = form is not None and not page.switch.may_lift
    unsent = form.data.get("reason", "") if form is not None and lost else ""
    context = {"page": page, "lift_form": form, "problem": problem, "kept": unsent}
    status = htmx.compute_form_status(problem, sent=form is not None)
    return render(request, "desk/stop/stopped.html", context, status=status)


@require_safe
@htmx.vary_on_htmx
def stopped_live(request: HttpRequest, pk: int) -> HttpResponse:
    """The same, polled while it still changes."""
    page = result.build_stopped_page(require_person(request), pk)
    template = "desk/stop/stopped.html#fates"
    context = {"page": page, "told": page.over}
    over = page.over and htmx.wants_partial(request)  # 286 is for htmx alone
    return htmx.render_fragment(
        request, template, context, etag=page.etag, settled=over
    )


@require_POST
def lift(request: HttpRequest, pk: int) -> HttpResponse:
    """Lift a stop or pause, with a reason."""
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _render_stopped_page(request, pk, form)
    reason = form.cleaned_data["reason"]
    try:
        row = stops.lift_stop(
            stop_id=pk,
            person=require_person(request),
            reason=reason,
            shown_asked=htmx.read_shown_asked(request),
        )
    except DomainError as error:
        return _render_stopped_page(request, pk, form, error)
    message = (
        "Resumed." if row.lifted_at else "Requested. A second person must confirm."
    )
    messages.success(request, message)
    return redirect("reviews:stopped", pk)


@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, who: str) -> HttpResponse:
    """What a revocation would affect; POST revokes and redirects to the result."""
    form = ReasonForm(request.POST or None)
    page = build_revoke_page(require_person(request), who)
    problem = None
    if request.method == "POST" and form.is_valid():
        try:
            return _revoke_approvals(request, page.who, form.cleaned_data["reason"])
        except DomainError as error:
            problem, page = (
                error,
                build_revoke_page(require_person(request), who),
            )
    unsent = form.data.get("reason", "") if page.own or page.stopped else ""
    context = {"page": page, "form": form, "problem": problem, "kept": unsent}
    status = htmx.compute_form_status(problem, sent=request.method == "POST")
    return render(request, "desk/stop/revoke.html", context, status=status)


def _revoke_approvals(request: HttpRequest, who: str, reason: str) -> HttpResponse:
    row = stops.create_stop(
        scope=Scope.REVIEWER, key=who, person=require_person(request), reason=reason
    )
    return redirect("reviews:stopped", row.pk)
