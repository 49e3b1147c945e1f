"""Declared incidents: freezing deadlines and letting them run again."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from journal.errors import DomainError
from policies.models import Queue
from reviews import permissions
from reviews.desk.components import banners, htmx, navigation
from reviews.desk.components.frame import person
from reviews.desk.forms import IncidentForm
from reviews.permissions import Permission
from reviews.stops import incidents as operations


@require_http_methods(["GET", "HEAD", "POST"])
def incidents(request: HttpRequest) -> HttpResponse:
    """The current and past freezes; POST declares an incident, for people who may."""
    who, form = person(request), IncidentForm(request.POST or None)
    problem = None
    if request.method == "POST":
        permissions.check(who, Permission.DECLARE)
        if form.is_valid():
            try:
                return _declare(request, form)
            except DomainError as error:
                problem = error
    page = banners.page(who)
    context = {
        "page": page,
        "form": form,
        "problem": problem,
        "upkeep": navigation.tabs(who, "reviews:incidents"),
        **_chosen(page, form),
    }
    status = htmx.status_of(problem, sent=request.method == "POST")
    return render(request, "reviews/incidents.html", context, status=status)


def _chosen(page: banners.Page, form: IncidentForm) -> dict[str, object]:
    """The selected queue, and the text to keep.

    If that queue can no longer be frozen, nothing is selected: a second click would
    otherwise freeze all queues.
    """
    chosen = form.data.get("queue", "")
    gone = form.is_bound and not page.offers(chosen)
    kept = form.data.get("reason", "") if not page.offered else ""
    return {"chosen": chosen, "gone": gone, "kept": kept}


def _declare(request: HttpRequest, form: IncidentForm) -> HttpResponse:
    queue: Queue | None = form.cleaned_data["queue"]
    operations.declare(
        person=person(request), reason=form.cleaned_data["reason"], queue=queue
    )
    messages.success(request, "Deadlines are frozen. People can go on deciding.")
    return redirect("reviews:incidents")


@require_POST
def incident_end(request: HttpRequest, pk: int) -> HttpResponse:
    """End an incident: deadlines run again."""
    operations.end(incident_id=pk, person=person(request))
    messages.success(request, "Deadlines run again, with what each had left.")
    return redirect("reviews:incidents")
