"""The search of every page, as a page of its own and as a list below its field."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ..components import frame, htmx
from ..components.frame import require_person
from .page import build_search_page


@require_safe
@htmx.vary_on_htmx
def search(request: HttpRequest) -> HttpResponse:
    """Pages, requests, people, agents and runs that fit `q`."""
    page = build_search_page(
        require_person(request),
        request.GET.get("q", ""),
        frame.get_frame(request).now,
    )
    template = htmx.choose_template(request, "desk/search/search.html", "hits")
    return render(request, template, {"page": page})
