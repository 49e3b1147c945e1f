"""A view of one request beside a list: what it would do, without verbs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reviews.desk.components import frame, htmx
from reviews.desk.components.frame import require_person

from . import load
from .page import ReviewPage


@require_safe
@htmx.vary_on_htmx
def peek(request: HttpRequest, pk: str) -> HttpResponse:
    """What a request would do, without verbs: beside the list, or as a page."""
    loaded = load.load_request(
        require_person(request), pk, frame.get_frame(request).now
    )
    template = htmx.choose_template(request, "reviews/peek.html", "peek")
    return render(request, template, {"page": ReviewPage(loaded)})
