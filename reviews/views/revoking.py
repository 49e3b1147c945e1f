"""Revoking what a reviewer approved and has not run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from reviews import stops
from reviews.choices import Scope
from reviews.forms import ReasonForm
from reviews.queries import revoking

from .who import person


@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, who: str) -> HttpResponse:
    """How much it concerns; POST does it, and leads to what came of it."""
    form = ReasonForm(request.POST or None)
    page = revoking.page(person(request), who)
    if request.method == "POST" and form.is_valid():
        row = stops.stop(
            scope=Scope.REVIEWER,
            key=page.who,
            person=person(request),
            reason=form.cleaned_data["reason"],
        )
        return redirect("reviews:stopped", row.pk)
    status = 422 if request.method == "POST" else 200
    context = {"page": page, "form": form}
    return render(request, "reviews/revoke.html", context, status=status)
