"""Declared incidents: freezing deadlines, and letting them run again."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from journal.errors import DomainError
from policies.models import Queue
from reviews import htmx, permissions
from reviews import incidents as operations
from reviews.forms import IncidentForm
from reviews.permissions import Permission
from reviews.queries import frozen, upkeep

from .who import person


@require_http_methods(["GET", "HEAD", "POST"])
def incidents(request: HttpRequest) -> HttpResponse:
    """What is frozen now and what was; and to freeze, for who may."""
    who, form = person(request), IncidentForm(request.POST or None)
    problem = None
    if request.method == "POST":
        permissions.check(who, Permission.DECLARE)
        if form.is_valid():
            try:
                return _declare(request, form)
            except DomainError as error:
                problem = error
    tabs = upkeep.tabs(who, "reviews:incidents")
    context = {"page": frozen.page(who), "form": form, "upkeep": tabs}
    context["problem"] = problem
    status = htmx.status_of(problem, sent=request.method == "POST")
    return render(request, "reviews/incidents.html", context, status=status)


def _declare(request: HttpRequest, form: IncidentForm) -> HttpResponse:
    queue: Queue | None = form.cleaned_data["queue"]
    operations.declare(
        person=person(request), reason=form.cleaned_data["reason"], queue=queue
    )
    messages.success(request, "Deadlines are frozen. People can go on deciding.")
    return redirect("reviews:incidents")


@require_POST
def incident_end(request: HttpRequest, pk: int) -> HttpResponse:
    """Deadlines run again."""
    operations.end(incident_id=pk, person=person(request))
    messages.success(request, "Deadlines run again, with what each had left.")
    return redirect("reviews:incidents")
