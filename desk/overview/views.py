"""The overview of those who answer for queues, people or records."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ..components import frame, htmx
from ..components.frame import require_person
from ..workload.page import DUTY_RULE
from .page import build_overview


@require_safe
@htmx.vary_on_htmx
def overview(request: HttpRequest) -> HttpResponse:
    """What waits, who is on, and what went wrong; renewed while it is open."""
    now = frame.get_frame(request).now
    page = build_overview(require_person(request), now)
    template = htmx.choose_template(request, "desk/overview/overview.html", "parts")
    context = {"page": page, "now": now, "duty_rule": DUTY_RULE}
    return render(request, template, context)
