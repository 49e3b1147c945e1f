"""Declared incidents: freezing deadlines and letting them run again."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from journal.errors import DomainError
from policies.models import Queue
from reviews import permissions
from reviews.roles import Permission
from reviews.stops import incidents as operations

from ..components import banners, htmx, navigation
from ..components.frame import require_person
from ..forms import IncidentForm


@require_http_methods(["GET", "HEAD", "POST"])
def incidents(request: HttpRequest) -> HttpResponse:
    """The current and past freezes; POST declares an incident, for people who may."""
    who, form = require_person(request), IncidentForm(request.POST or None)
    problem = None
    if request.method == "POST":
        permissions.check_permission(who, Permission.DECLARE)
        if form.is_valid():
            try:
                return _declare_incident(request, form)
            except DomainError as error:
                problem = error
    page = banners.build_incidents_page(who)
    context = {
        "page": page,
        "form": form,
        "problem": problem,
        "upkeep": navigation.list_upkeep_tabs(who, "reviews:incidents"),
        **_build_form_state(page, form),
    }
    status = htmx.compute_form_status(problem, sent=request.method == "POST")
    return render(request, "desk/incidents/incidents.html", context, status=status)


def _build_form_state(
    page: banners.IncidentsPage, form: IncidentForm
) -> dict[str, object]:
    """The selected queue, and the text to keep.

    If that queue can no longer be frozen, nothing is selected: a second click would
    otherwise freeze all queues.
    """
    chosen = form.data.get("queue", "")
    gone = form.is_bound and not page.offers(chosen)
    unsent = form.data.get("reason", "") if not page.offered else ""
    return {"chosen": chosen, "gone": gone, "kept": unsent}


def _declare_incident(request: HttpRequest, form: IncidentForm) -> HttpResponse:
    queue: Queue | None = form.cleaned_data["queue"]
    operations.declare_incident(
        person=require_person(request), reason=form.cleaned_data["reason"], queue=queue
    )
    messages.success(request, "Deadlines are paused. People can still decide.")
    return redirect("reviews:incidents")


@require_POST
def incident_end(request: HttpRequest, pk: int) -> HttpResponse:
    """End an incident: deadlines run again."""
    operations.end_incident(incident_id=pk, person=require_person(request))
    messages.success(request, "Deadlines run again, each with the time that was left.")
    return redirect("reviews:incidents")
