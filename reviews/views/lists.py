"""Where each role begins, and how the desk works."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from reviews import permissions
from reviews.desk.components import frame, htmx
from reviews.people import shortcuts

from .who import person


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Each role's first page."""
    decides = permissions.deciding_role(person(request)) is not None
    return redirect("reviews:queue" if decides else "reviews:log")


@login_not_required
@require_safe
@htmx.varies
def help(request: HttpRequest) -> HttpResponse:
    """Keys and states, in words; for the dialog the keys alone."""
    places = shortcuts.by_place(frame.of(request).prefs.keys.mine)
    template = htmx.part(request, "reviews/help.html", "keys")
    return render(request, template, {"places": places})
