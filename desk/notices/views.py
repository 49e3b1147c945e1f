"""The messages about one request."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ..components.frame import require_person
from . import page as queries


@require_safe
def notices(request: HttpRequest, pk: str) -> HttpResponse:
    """To whom messages about a request went, and which failed."""
    page = queries.load_notices_page(require_person(request), pk)
    return render(request, "desk/notices/notices.html", {"page": page})
