"""Escalations: the list, one with its panel, and a supervisor's actions other than the
verdicts."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from journal.errors import DomainError
from reviews.decisions import returns

from ..components import frame, holding, htmx
from ..components.frame import require_person
from ..forms import ArbitrationForm, GuidanceForm, HandOverForm
from ..request import responses
from ..request.decision import KeptText
from ..request.load import LoadedRequest
from ..request.page import PersonAct
from ..request.responses import load_requested
from . import page as queries


@require_safe
def escalations(request: HttpRequest) -> HttpResponse:
    """The requests that need a supervisor, by deadline."""
    return _render_list(request)


def _render_list(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    page = queries.build_escalations_page(
        require_person(request), now=frame.get_frame(request).now
    )
    context = {"page": page, **more}
    return render(request, "desk/escalations/escalations.html", context, status=status)


@require_safe
@htmx.vary_on_htmx
def escalation(request: HttpRequest, pk: str) -> HttpResponse:
    """The review page with the other escalations beside it."""
    return _render_escalation(request, load_requested(request, pk))


def _render_escalation(
    request: HttpRequest,
    loaded: LoadedRequest,
    status: int = 200,
    error: DomainError | None = None,
    **more: Any,
) -> HttpResponse:
    """Render one escalation. Typed text stays in its form, or is offered for copying if
    the form is gone."""
    act = PersonAct(
        announcement=loaded.announcement,
        problem=error,
        unsent=KeptText.read("Return with guidance", request.POST.get("guidance", "")),
    )
    page = responses.build_requested_page(request, loaded, act)
    rows = queries.list_waiting_rows(loaded.person, loaded.now)
    context = {"page": page, "rows": rows, **more}
    return render(request, "desk/escalations/escalation.html", context, status=status)


@require_POST
def give_back(request: HttpRequest, pk: str) -> HttpResponse:
    """Return the request to the reviewers, with guidance."""
    loaded, form = load_requested(request, pk), GuidanceForm(request.POST)
    if form.is_valid():
        guidance = form.cleaned_data["guidance"].replace("\r\n", "\n")
        error = htmx.catch_refusal(
            lambda: returns.return_with_guidance(
                request_id=pk, person=loaded.person, guidance=guidance
            )
        )
        if error is not None:
            return _render_escalation(
                request, load_requested(request, pk), error.status, error
            )
        messages.success(request, "Returned. Reviewers see your guidance.")
        return redirect("reviews:escalations")
    return _render_escalation(request, loaded, 422, return_form=form)


@require_POST
def assign(request: HttpRequest, pk: str) -> HttpResponse:
    """Assign it to one person; others may still answer it."""
    loaded = load_requested(request, pk)
    people = holding.select_eligible_people(loaded.request, loaded.sealed)
    form = HandOverForm(request.POST, people=people)
    if not form.is_valid():
        return _render_escalation(request, loaded, 422, assign_form=form)
    to = form.cleaned_data["to"]
    returns.assign_request(request_id=pk, person=loaded.person, to=to)
    messages.success(
        request, f"Assigned to {to}, who is notified by email. Others can decide too."
    )
    return redirect("reviews:escalation", pk)


@require_POST
def show_view(request: HttpRequest, pk: str) -> HttpResponse:
    """Show how the person who escalated it would decide; the log records that a
    supervisor looked."""
    loaded = load_requested(request, pk)
    returns.record_view_shown(request_id=pk, person=loaded.person)
    return redirect("reviews:escalation", pk)


@require_POST
def arbitrate(request: HttpRequest, pk: str) -> HttpResponse:
    """Close a disagreement with the lesson from it."""
    loaded, form = load_requested(request, pk), ArbitrationForm(request.POST)
    if not form.is_valid():
        return _render_list(request, 422, closing=pk, split_form=form)
    text = form.cleaned_data["text"].replace("\r\n", "\n")
    problem = htmx.catch_refusal(
        lambda: returns.record_arbitration(
            request_id=pk, person=loaded.person, text=text
        )
    )
    if problem is not None:
        return _render_list(request, problem.status, problem=problem, kept=text)
    messages.success(request, "Closed. The request remains rejected.")
    return redirect("reviews:escalations")
