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
from reviews.desk.components import frame, holding, htmx
from reviews.desk.components.frame import person
from reviews.desk.forms import ArbitrationForm, GuidanceForm, HandOverForm
from reviews.desk.request import commit, load
from reviews.desk.request.load import Loaded
from reviews.desk.request.page import ReviewPage

from . import page as queries


@require_safe
def escalations(request: HttpRequest) -> HttpResponse:
    """The requests that need a supervisor, by deadline."""
    return _list(request)


def _list(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    page = queries.page(person(request), now=frame.of(request).now)
    context = {"page": page, **more}
    return render(request, "reviews/escalations.html", context, status=status)


@require_safe
@htmx.varies
def escalation(request: HttpRequest, pk: str) -> HttpResponse:
    """The review page with the other escalations beside it."""
    return _one(request, _load(request, pk))


def _load(request: HttpRequest, pk: str) -> Loaded:
    return load.load(person(request), pk, frame.of(request).now)


def _one(
    request: HttpRequest,
    loaded: Loaded,
    status: int = 200,
    error: DomainError | None = None,
    **more: Any,
) -> HttpResponse:
    """Render one escalation. Typed text stays in its form, or is offered for copying if
    the form is gone."""
    kept = request.POST.get("guidance", "")
    page = ReviewPage(loaded, said=loaded.said, problem=error, note_kept=kept)
    frame.of(request).stop_url = page.stop_any_url
    commit.fit(request, page, partial=False)
    rows = queries.waiting(loaded.person, loaded.now)
    context = {"page": page, "rows": rows, **more}
    return render(request, "reviews/escalation.html", context, status=status)


@require_POST
def give_back(request: HttpRequest, pk: str) -> HttpResponse:
    """Return the request to the reviewers, with guidance."""
    loaded, form = _load(request, pk), GuidanceForm(request.POST)
    if form.is_valid():
        guidance = form.cleaned_data["guidance"].replace("\r\n", "\n")
        error = htmx.attempt(
            lambda: returns.return_with_guidance(
                request_id=pk, person=loaded.person, guidance=guidance
            )
        )
        if error is not None:
            return _one(request, _load(request, pk), error.status, error)
        messages.success(request, "Returned. The reviewers see your guidance.")
        return redirect("reviews:escalations")
    return _one(request, loaded, 422, return_form=form)


@require_POST
def assign(request: HttpRequest, pk: str) -> HttpResponse:
    """Assign it to one person; others may still answer it."""
    loaded = _load(request, pk)
    people = holding.eligible(loaded.request, loaded.sealed)
    form = HandOverForm(request.POST, people=people)
    if not form.is_valid():
        return _one(request, loaded, 422, assign_form=form)
    to = form.cleaned_data["to"]
    returns.assign(request_id=pk, person=loaded.person, to=to)
    messages.success(request, f"Given to {to}, who gets a mail. Others may answer it.")
    return redirect("reviews:escalation", pk)


@require_POST
def show_view(request: HttpRequest, pk: str) -> HttpResponse:
    """Show how the person who escalated it would decide; the log records that a
    supervisor looked."""
    loaded = _load(request, pk)
    returns.show_view(request_id=pk, person=loaded.person)
    return redirect("reviews:escalation", pk)


@require_POST
def arbitrate(request: HttpRequest, pk: str) -> HttpResponse:
    """Close a disagreement with the lesson from it."""
    loaded, form = _load(request, pk), ArbitrationForm(request.POST)
    if not form.is_valid():
        return _list(request, 422, closing=pk, split_form=form)
    text = form.cleaned_data["text"].replace("\r\n", "\n")
    problem = htmx.attempt(
        lambda: returns.arbitrate(request_id=pk, person=loaded.person, text=text)
    )
    if problem is not None:
        return _list(request, problem.status, problem=problem, kept=text)
    messages.success(request, "Closed. The rejection stands.")
    return redirect("reviews:escalations")
