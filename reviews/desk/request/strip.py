"""On to the next request once one is decided, for who prefers it so (ux.md 3.8).

Which requests come after the one on the screen, in the reader's own queue.

The state strip of a request alone, with R8 beside it where that changed: what an
open page asks for again and again, and what its hold is answered with.
"""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from journal.clock import time_of_day
from policies.models import Person
from reviews.choices import RequestStatus, Verdict
from reviews.desk.components import htmx
from reviews.desk.queue import page as queue
from reviews.desk.queue.page import Filters
from reviews.holds import take
from reviews.models import ApprovalRequest
from reviews.people import preferences

from . import commit
from .load import Loaded
from .page import ReviewPage

MOST = 20  # looked at before giving up: others may hold the first


def after(person: Person, filters: Filters, pk: str, step: int) -> list[str]:
    """The requests from that one onward, or backward where `step` is negative, and
    then from the other end; all of them where it is not in the queue any more."""
    found = queue.ordered_ids(person, filters)
    if step < 0:
        found.reverse()
    at = found.index(pk) if pk in found else -1
    onward = found[at + 1 :] + (found[:at] if at > 0 else [])
    return onward[:MOST]


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
    ids = after(decided.person, filters, decided.request.pk, 1)
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


TEMPLATE = "reviews/request.html#live"
FOLLOWING = "reviews/_following.html"


def answer(request: HttpRequest, loaded: Loaded, told: str = "") -> HttpResponse:
    """The strip, or 204 while it is as the page has it. Content being read never
    moves. `told` is what a person's own act did."""
    tag = request.headers.get("If-None-Match", "").strip('"')
    key, _, _ = tag.partition(".")
    changed = bool(key) and key != loaded.key
    said = [told, loaded.said if changed else "", loaded.lost_since(tag) if key else ""]
    before = commit.on_screen(request, loaded)
    read = before.version if before else commit.version_of(key)
    page = ReviewPage(
        loaded,
        read=read or loaded.request.version,
        screen=None if before and loaded.able else read,
        said=" ".join(one for one in said if one),
    )
    commit.fit(request, page, partial=True)
    changed = changed or page.target_moved
    context = {"page": page, "changed": changed, "is_live": True}
    return htmx.fragment(
        request, TEMPLATE, context, etag=loaded.etag, settled=page.over
    )


def following(request: HttpRequest, loaded: Loaded) -> HttpResponse:
    """The link to what the agent did next; 204 while it may come, and then no more is
    asked for."""
    page = ReviewPage(loaded)
    if page.watches:
        return HttpResponse(status=204)
    return render(request, FOLLOWING, {"page": page}, status=htmx.STOP_POLLING)
