"""Revoking what a reviewer approved and has not run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from journal.errors import DomainError
from reviews.choices import Scope
from reviews.desk.components import htmx
from reviews.desk.forms import ReasonForm
from reviews.desk.stop import revoke as revoking
from reviews.stops import stops

from .who import person


@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, who: str) -> HttpResponse:
    """How much it concerns; POST does it, and leads to what came of it."""
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
