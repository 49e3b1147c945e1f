"""The responses of the request's views: its page, its state strip for polling, and the
next request of the queue."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from journal.clock import format_time
from policies.models import Person
from reviews.choices import VERDICT_SPECS, RequestStatus, Verdict
from reviews.holds import rows
from reviews.models import ApprovalRequest
from reviews.people import preferences

from ..components import frame, htmx
from ..components.frame import require_person
from ..queue import page as queue
from ..queue.page import QueueFilters
from . import load
from .attention import SentAnswers
from .load import LoadedRequest
from .page import NO_ACT, NO_SCREEN, PersonAct, ReviewPage, build_page
from .regions import Screen, find_page_on_screen, parse_version

TEMPLATE = "desk/request/request.html"
STRIP_TEMPLATE = f"{TEMPLATE}#live"
NEXT_PROPOSAL_TEMPLATE = "desk/request/_next_proposal.html"
MOST_CANDIDATES = 20  # tried before giving up, since others may hold the first ones


def load_requested(
    request: HttpRequest, pk: str, *, again: bool = False
) -> LoadedRequest:
    """Load the request for this person; `again` after an act, since the clock has moved
    on."""
    if again:
        request.desk = None  # type: ignore[attr-defined]
    return load.load_request(require_person(request), pk, frame.get_frame(request).now)


def redirect_to_request(pk: str) -> HttpResponse:
    """POST, redirect, GET: htmx follows the redirect and gets the fragment."""
    response = redirect("reviews:request_detail", pk)
    response.status_code = 303
    return response


def build_requested_page(
    request: HttpRequest,
    loaded: LoadedRequest,
    act: PersonAct = NO_ACT,
    screen: Screen = NO_SCREEN,
    *,
    partial: bool = False,
    is_preview: bool = False,
) -> ReviewPage:
    """Build the page for what the browser shows already."""
    before = find_page_on_screen(request, loaded)
    screen = replace(screen, before=before, partial=partial)
    answers = SentAnswers(request.POST, request.session)
    page = build_page(loaded, screen, act, answers, is_preview=is_preview)
    tool = urlencode({"tool": loaded.request.proposal.tool_name})
    frame.get_frame(request).stop_url = f"{page.stop_url}?{tool}"
    return page


def render_page(
    request: HttpRequest,
    loaded: LoadedRequest,
    act: PersonAct = NO_ACT,
    screen: Screen = NO_SCREEN,
    *,
    beside: bool = True,
    status: int = 200,
) -> HttpResponse:
    """The page, or `#decide` with the strip, banner and badges beside it."""
    partial = htmx.wants_partial(request)
    page = build_requested_page(request, loaded, act, screen, partial=partial)
    if not partial:
        page.load()
        frame.get_frame(request).ready()
    template = htmx.choose_template(request, TEMPLATE, "decide")
    context = {"page": page, "beside": partial and beside}
    response = render(request, template, context, status=status)
    if partial and beside:
        response["HX-Push-Url"] = page.url
    return response


def render_strip(
    request: HttpRequest, loaded: LoadedRequest, message: str = ""
) -> HttpResponse:
    """The strip, or 204 while the page shows it already, with R8 where that changed.
    The regions being read never move. `message` says what the person's own act did."""
    tag = request.headers.get("If-None-Match", "").strip('"')
    key, _, _ = tag.partition(".")
    changed = bool(key) and key != loaded.key
    talked = bool(key) and loaded.has_new_messages(tag)
    news = [
        message,
        loaded.announcement if changed else "",
        "There is a new message." if talked else "",
        loaded.lost_since(tag) if key else "",
        loaded.answered_since(tag) if key else "",
    ]
    before = find_page_on_screen(request, loaded)
    read = before.version if before else parse_version(key)
    screen = Screen(
        read=read or loaded.request.version,
        version=None if before and loaded.able else read,
    )
    act = PersonAct(announcement=" ".join(sentence for sentence in news if sentence))
    page = build_requested_page(request, loaded, act, screen, partial=True)
    changed = changed or page.regions.target_moved
    context = {"page": page, "changed": changed, "is_live": True, "talked": talked}
    return htmx.render_fragment(
        request, STRIP_TEMPLATE, context, etag=loaded.etag, settled=loaded.finished
    )


def render_next_proposal(request: HttpRequest, loaded: LoadedRequest) -> HttpResponse:
    """The link to the agent's next proposal; 204 while it may still come, then 286."""
    page = build_page(loaded)
    if page.outcome.watches:
        return HttpResponse(status=204)
    return render(
        request, NEXT_PROPOSAL_TEMPLATE, {"page": page}, status=htmx.STOP_POLLING
    )


def list_next_requests(
    person: Person, filters: QueueFilters, pk: str, step: int
) -> list[str]:
    """The requests after `pk` in the person's queue, or before it for a negative
    `step`, continuing from the other end; the first ones if `pk` is no longer in the
    queue."""
    waiting = queue.list_decidable_ids(person, filters)
    if step < 0:
        waiting.reverse()
    at = waiting.index(pk) if pk in waiting else -1
    onward = waiting[at + 1 :] + (waiting[:at] if at > 0 else [])
    return onward[:MOST_CANDIDATES]


def find_next_request(
    request: HttpRequest, decided: LoadedRequest, verdict: Verdict
) -> str:
    """The id of the next request of the filtered queue that nobody else holds, if the
    person's preferences say to go on; empty if they stay. The next page shows what was
    recorded."""
    if decided.request.canary:
        return ""  # its own page says what was planted
    wish = preferences.load_preferences(decided.person).display.advance
    if wish == "off" or (wish == "unless_rejected" and verdict is Verdict.REJECT):
        return ""
    filters = QueueFilters.read(htmx.parse_query(request.POST.get("filters", "")))
    ids = list_next_requests(decided.person, filters, decided.request.pk, 1)
    onward = rows.find_first_free(request_ids=ids, person=decided.person)
    if onward:
        messages.success(request, _describe_recorded(decided.request, verdict))
    return onward


def _describe_recorded(request: ApprovalRequest, verdict: Verdict) -> str:
    recorded = VERDICT_SPECS[verdict].past_in_full.capitalize()
    sentence = f"{recorded}: request {request.pk}."
    row = ApprovalRequest.with_canaries.get(pk=request.pk)
    if row.status != RequestStatus.RECALLABLE:
        return sentence
    until = format_time(row.recall_until)
    return f"{sentence} You can undo the approval there until {until}."
