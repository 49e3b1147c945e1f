"""The event stream of one page.

The view checks the person and builds the first event; the event loop holds the stream
(hitl/live/event_stream.py).
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from ..components.frame import require_person
from . import subscription


@require_GET
def events(request: HttpRequest) -> HttpResponse:
    """The current state as the first event. The Counterseal-Stream header is for our
    own ASGI front."""
    about = request.GET.getlist("about")
    viewer = subscription.build_viewer(require_person(request), request.GET, about)
    content = subscription.build_first_answer(viewer)
    response = HttpResponse(content, content_type="text/event-stream; charset=utf-8")
    response["Cache-Control"] = "no-store, no-transform"
    response["X-Accel-Buffering"] = "no"  # nginx would hold events back
    response["Counterseal-Stream"] = viewer.dump()
    return response
