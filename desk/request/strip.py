"""The state strip of a request for polling, and stepping to the next request of the
queue.

The strip comes with R8 where that changed. After a decision the person goes on to the
next request if their preferences say so.
"""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from journal.clock import format_time
from policies.models import Person
from reviews.choices import VERDICT_SPECS, RequestStatus, Verdict
from reviews.holds import rows
from reviews.models import ApprovalRequest
from reviews.people import preferences

from ..components import htmx
from ..queue import page as queue
from ..queue.page import QueueFilters
from . import commit
from .load import LoadedRequest
from .page import ReviewPage

MOST_CANDIDATES = 20  # tried before giving up, since others may hold the first ones


def list_next_requests(
    person: Person, filters: QueueFilters, pk: str, step: int
) -> list[str]:
    """The requests after `pk` in the person's queue, or before it for a negative
    `step`, continuing from the other end; the first ones if `pk` is no longer in the
    queue."""
    found = queue.list_decidable_ids(person, filters)
    if step < 0:
        found.reverse()
    at = found.index(pk) if pk in found else -1
    onward = found[at + 1 :] + (found[:at] if at > 0 else [])
    return onward[:MOST_CANDIDATES]


def find_next_request(
    request: HttpRequest, decided: LoadedRequest, verdict: Verdict
) -> str:
    """The id of the next request of the filtered queue that nobody else holds; empty if
    the person stays. The next page shows what was recorded."""
    if decided.request.canary:
        return ""  # its own page says what was planted
    wish = preferences.load_preferences(decided.person).display.advance
    if wish == "off" or (wish == "unless_rejected" and verdict is Verdict.REJECT):
        return ""
    filters = QueueFilters.read(htmx.parse_query(request.POST.get("filters", "")))
    ids = list_next_requests(decided.person, filters, decided.request.pk, 1)
    found = rows.find_first_free(request_ids=ids, person=decided.person)
    if found:
        messages.success(request, _describe_recorded(decided.request, verdict))
    return found


def _describe_recorded(request: ApprovalRequest, verdict: Verdict) -> str:
    """The sentence about what was recorded, with the end of the recall window."""
    recorded = VERDICT_SPECS[verdict].past_in_full.capitalize()
    said = f"{recorded}: request {request.pk}."
    row = ApprovalRequest.with_canaries.get(pk=request.pk)
    if row.status != RequestStatus.RECALLABLE:
        return said
    return (
        f"{said} You can undo the approval there until {format_time(row.recall_until)}."
    )


STRIP_TEMPLATE = "desk/request/request.html#live"
NEXT_PROPOSAL_TEMPLATE = "desk/request/_following.html"


def render_strip(
    request: HttpRequest, loaded: LoadedRequest, told: str = ""
) -> HttpResponse:
    """The strip, or 204 while the page shows it already. The regions being read never
    move. `told` says what the person's own action did."""
    tag = request.headers.get("If-None-Match", "").strip('"')
    key, _, _ = tag.partition(".")
    changed = bool(key) and key != loaded.key
    talked = bool(key) and loaded.has_new_messages(tag)
    said = [
        told,
        loaded.said if changed else "",
        "There is a new message." if talked else "",
        loaded.lost_since(tag) if key else "",
        loaded.answered_since(tag) if key else "",
    ]
    before = commit.find_page_on_screen(request, loaded)
    read = before.version if before else commit.parse_version(key)
    page = ReviewPage(
        loaded,
        read=read or loaded.request.version,
        screen=None if before and loaded.able else read,
        said=" ".join(one for one in said if one),
    )
    commit.adapt_page(request, page, partial=True)
    changed = changed or page.target_moved
    context = {"page": page, "changed": changed, "is_live": True, "talked": talked}
    return htmx.render_fragment(
        request, STRIP_TEMPLATE, context, etag=loaded.etag, settled=page.over
    )


def render_next_proposal(request: HttpRequest, loaded: LoadedRequest) -> HttpResponse:
    """The link to the agent's next proposal; 204 while it may still come, then 286."""
    page = ReviewPage(loaded)
    if page.watches:
        return HttpResponse(status=204)
    return render(
        request, NEXT_PROPOSAL_TEMPLATE, {"page": page}, status=htmx.STOP_POLLING
    )
