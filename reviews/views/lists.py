"""The lists beside the queue, and where each role begins."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from reviews import htmx, permissions, shortcuts
from reviews.queries import announced as announced_queries

from . import frame
from .who import person


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Each role's first page."""
    decides = permissions.deciding_role(person(request)) is not None
    return redirect("reviews:queue" if decides else "reviews:log")


@require_safe
def announced(request: HttpRequest) -> HttpResponse:
    """What ran under NOTIFY."""
    lines = announced_queries.page(person(request))
    return render(request, "reviews/announced.html", {"lines": lines})


@login_not_required
@require_safe
@htmx.varies
def help(request: HttpRequest) -> HttpResponse:
    """Keys and states, in words; for the dialog the keys alone."""
    places = shortcuts.by_place(frame.of(request).prefs.keys.mine)
    template = htmx.part(request, "reviews/help.html", "keys")
    return render(request, template, {"places": places})
