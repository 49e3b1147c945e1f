"""On to the next request once one is decided, for who prefers it so (ux.md 3.8)."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest

from journal.clock import time_of_day
from reviews.choices import RequestStatus, Verdict
from reviews.desk.components import htmx
from reviews.desk.queue.page import Filters
from reviews.holds import take
from reviews.models import ApprovalRequest
from reviews.people import preferences
from reviews.queries import upnext

from .load import Loaded

SAID = {
    Verdict.APPROVE: "Approved",
    Verdict.REJECT: "Rejected",
    Verdict.MODIFY: "Changed and approved",
    Verdict.ESCALATE: "Escalated",
}


def onward(request: HttpRequest, decided: Loaded, verdict: Verdict) -> str:
    """The next free request of the queue as it was filtered, held for this person; or
    nothing, and they stay. What was recorded is said on the next page."""
    wish = preferences.of(decided.person).display.advance
    if wish == "off" or (wish == "unless_rejected" and verdict is Verdict.REJECT):
        return ""
    filters = Filters.read(htmx.query(request.POST.get("filters", "")))
    ids = upnext.after(decided.person, filters, decided.request.pk, 1)
    found = take.take_first(request_ids=ids, person=decided.person)
    if found:
        messages.success(request, _recorded(decided.request, verdict))
    return found


def _recorded(request: ApprovalRequest, verdict: Verdict) -> str:
    """With how long it can still be taken back, which is on its own page."""
    said = f"{SAID[verdict]}: request {request.pk}."
    row = ApprovalRequest.objects.get(pk=request.pk)
    if row.status != RequestStatus.RECALLABLE:
        return said
    return f"{said} It can be recalled there until {time_of_day(row.recall_until)}."
