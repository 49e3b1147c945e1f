"""`/livez` for who restarts this process, `/readyz` for who sends it requests, and the
health page for administrators."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from desk.components import frame, htmx

from . import probes
from .channels import build_channels_page
from .page import build_health_page


@login_not_required
@require_safe
@never_cache
def livez(request: HttpRequest) -> HttpResponse:
    """Whether this process answers. Asks neither the database nor the broker, so that
    an outage of either does not get every web process restarted."""
    return JsonResponse({"status": probes.OK})


@login_not_required
@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Whether this process can serve: 200, or 503 with the reason."""
    readiness = probes.find_readiness()
    body = {"status": readiness.status, **readiness.checks}
    return JsonResponse(body, status=200 if readiness.is_ready else 503)


@require_safe
@never_cache
@htmx.vary_on_htmx
def health(request: HttpRequest) -> HttpResponse:
    """The health page; renewed while it is open."""
    now = frame.get_frame(request).now
    page = build_health_page(frame.require_person(request), now)
    template = htmx.choose_template(request, "health.html", "parts")
    return render(request, template, {"page": page, "now": now})


@require_safe
@never_cache
def channels(request: HttpRequest) -> HttpResponse:
    """The notification channels: what is set up, whom it reaches and how it goes."""
    page = build_channels_page(frame.require_person(request))
    return render(request, "channels.html", {"page": page})
