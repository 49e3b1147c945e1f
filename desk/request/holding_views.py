"""Views of a hold on a request: take, release, extend, hand over, break; drafts and
notes.

Opening a page changes nothing and takes no hold. Its script posts here once somebody
opens a panel; Claim does the same.
"""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from journal.clock import format_time
from journal.errors import NotPermitted
from reviews import canary_verdicts, deadlines, permissions
from reviews.decisions import drafts
from reviews.effects.wording import format_duration
from reviews.governance import readings
from reviews.holds import rows, take

from ..components import holding, htmx
from ..components.frame import require_person
from ..forms import DraftForm, HandOverForm, NoteForm, ReasonForm
from ..queue.page import QueueFilters
from . import responses
from .history import may_add_note
from .load import LoadedRequest
from .page import build_page
from .responses import load_requested, redirect_to_request


@require_POST
@htmx.vary_on_htmx
def hold(request: HttpRequest, pk: str) -> HttpResponse:
    """Take the hold and read the business state again; `beat` only renews it."""
    loaded = load_requested(request, pk)
    beat = request.POST.get("beat")
    if loaded.able and not beat:
        readings.reread_state(loaded.revision)
    act: Callable[..., object] = take.renew_hold if beat else take.take_hold
    error = htmx.catch_refusal(lambda: act(request_id=pk, person=loaded.person))
    if error is not None and error.status == NotPermitted.status:
        raise error
    return _render_strip(request, pk)


@require_POST
@htmx.vary_on_htmx
def release(request: HttpRequest, pk: str) -> HttpResponse:
    """Release the hold; `leaving` when the page itself is being closed."""
    loaded = _load_for_decider(request, pk)
    token, leaving = request.POST.get("hold", ""), bool(request.POST.get("leaving"))
    rows.release_hold(request_id=pk, person=loaded.person, token=token, leaving=leaving)
    if leaving:
        return HttpResponse(status=204)
    return _render_strip(request, pk)


@require_POST
@htmx.vary_on_htmx
def extend(request: HttpRequest, pk: str) -> HttpResponse:
    loaded = load_requested(request, pk)
    before = loaded.request.expires_at
    until = deadlines.extend_deadline(request_id=pk, person=loaded.person).expires_at
    messages.success(
        request,
        f"Extended by {format_duration(until - before)}: "
        f"it expires at {format_time(until)}.",
    )
    return redirect_to_request(pk)


@require_POST
@htmx.vary_on_htmx
def ask_hold(request: HttpRequest, pk: str) -> HttpResponse:
    """Ask for a mail when the hold is free."""
    loaded = load_requested(request, pk)
    _check_can_decide(loaded)
    take.record_waiting_person(request_id=pk, person=loaded.person)
    return redirect_to_request(pk)


@require_POST
@htmx.vary_on_htmx
def accept_hold(request: HttpRequest, pk: str) -> HttpResponse:
    """Take over a hold that its holder offered."""
    loaded = load_requested(request, pk)
    take.take_hold(request_id=pk, person=loaded.person, accept=True)
    return redirect_to_request(pk)


@require_POST
@htmx.vary_on_htmx
def decline_offer(request: HttpRequest, pk: str) -> HttpResponse:
    """Decline a hold that its holder offered, from its page or from its row."""
    loaded = _load_for_decider(request, pk)
    take.decline_offer(request_id=pk, person=loaded.person)
    if not request.POST.get("row"):
        return redirect_to_request(pk)
    messages.success(request, f"Declined. {loaded.holding.by} keeps the claim.")
    return redirect(f"{reverse('reviews:queue')}?tab=mine")


@require_POST
@htmx.vary_on_htmx
def withdraw_offer(request: HttpRequest, pk: str) -> HttpResponse:
    """Take back the offer of one's hold."""
    loaded = _load_for_decider(request, pk)
    take.withdraw_offer(request_id=pk, person=loaded.person)
    return _render_strip(request, pk, "The offer is withdrawn. You keep your claim.")


@require_http_methods(["GET", "HEAD", "POST"])
def break_hold(request: HttpRequest, pk: str) -> HttpResponse:
    """A supervisor ends another's hold, with a reason."""
    loaded = load_requested(request, pk)
    if not holding.may_break_hold(loaded.person, loaded.request):
        raise NotPermitted(
            "Only a supervisor can end another person's claim. Nothing was changed."
        )
    form = ReasonForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return _render_form(request, "desk/request/break_hold.html", loaded, form)
    reason = form.cleaned_data["reason"]
    take.break_hold(request_id=pk, person=loaded.person, reason=reason)
    return redirect_to_request(pk)


@require_http_methods(["GET", "HEAD", "POST"])
def hand_over(request: HttpRequest, pk: str) -> HttpResponse:
    loaded = load_requested(request, pk)
    _check_can_decide(loaded)
    people = holding.select_eligible_people(loaded.request, loaded.sealed)
    form = HandOverForm(
        request.POST or None, people=people.exclude(pk=loaded.person.pk)
    )
    if request.method != "POST" or not form.is_valid():
        return _render_form(request, "desk/request/hand_over.html", loaded, form)
    to = form.cleaned_data["to"]
    if canary_verdicts.pass_on_canary(request_id=pk, person=loaded.person):
        return redirect_to_request(pk)
    take.offer_hold(request_id=pk, person=loaded.person, to=to)
    return redirect_to_request(pk)


@require_POST
def draft(request: HttpRequest, pk: str) -> HttpResponse:
    """Store the typed panel as a draft."""
    save_draft(_load_for_decider(request, pk), request.POST)
    return HttpResponse(status=204)


def save_draft(loaded: LoadedRequest, sent: QueryDict) -> None:
    """Store the sent panel as a draft, unless it is invalid, the person has already
    voted on this version, or they decide nothing in its queue."""
    voted = loaded.own is not None and loaded.own.version == loaded.request.version
    form = DraftForm(sent)
    panel = form.target
    if not panel or voted or not may_add_note(loaded):
        return
    drafts.save_draft(
        person=loaded.person,
        request_id=loaded.request.pk,
        version=form.cleaned_data["version"] or loaded.request.version,
        panel=panel,
        reason_code=form.cleaned_data["reason_code"],
        reason=form.cleaned_data["reason"],
        edits=form.edits,
    )


@require_POST
@htmx.vary_on_htmx
def note(request: HttpRequest, pk: str) -> HttpResponse:
    """Add a note to the record."""
    loaded = load_requested(request, pk)
    form = NoteForm(request.POST)
    text = form.cleaned_data["text"] if form.is_valid() else ""
    drafts.add_note(request_id=pk, person=loaded.person, text=text)
    drafts.discard_drafts(person=loaded.person, request_id=pk)
    messages.success(request, "Note added.")
    return redirect_to_request(pk)


@require_POST
def queue_next(request: HttpRequest) -> HttpResponse:
    """Open the next request of the person's queue that nobody else holds, and release
    the one they leave. Asks first if they leave something typed and not sent."""
    who, left = require_person(request), request.POST.get("from", "")
    step = -1 if request.POST.get("step") == "previous" else 1
    filters = QueueFilters.read(htmx.parse_query(request.POST.get("filters", "")))
    leaving = _load_unsent_request(request, left)
    if leaving is not None and not request.POST.get("sure"):
        context = {
            "page": build_page(leaving),
            "sent": request.POST,
            "kept_for": drafts.DRAFT_LIFETIME,
        }
        return render(request, "desk/request/leave.html", context)
    if leaving is not None or left:
        rows.release_hold(request_id=left, person=who, leaving=True)
    next_id = rows.find_first_free(
        request_ids=responses.list_next_requests(who, filters, left, step), person=who
    )
    if next_id:
        return redirect_to_request(next_id)
    messages.info(request, "No other request in this queue is available to you.")
    return redirect(f"{reverse('reviews:queue')}?empty=1")


def _load_unsent_request(request: HttpRequest, pk: str) -> LoadedRequest | None:
    who = require_person(request)
    if not pk or not drafts.list_drafts(who, pk):
        return None
    return load_requested(request, pk)


def _check_can_decide(loaded: LoadedRequest) -> None:
    """Raise NotPermitted with the reason why this person cannot decide the request."""
    if loaded.why_not:
        why = loaded.why_not.rstrip(".,")  # the word of a state, or a sentence
        raise NotPermitted(f"{why}. Nothing was changed.")


def _load_for_decider(request: HttpRequest, pk: str) -> LoadedRequest:
    """Load the request for a person who decides in its queue. Raises NotPermitted."""
    loaded = load_requested(request, pk)
    permissions.check_admitted_to_queue(loaded.person, loaded.request.queue_id)
    return loaded


def _render_strip(request: HttpRequest, pk: str, message: str = "") -> HttpResponse:
    """The current strip for an open page; without htmx a redirect to the page."""
    if not htmx.wants_partial(request):
        return redirect_to_request(pk)
    return responses.render_strip(
        request, load_requested(request, pk, again=True), message
    )


def _render_form(
    request: HttpRequest, template: str, loaded: LoadedRequest, form: object
) -> HttpResponse:
    context = {"page": build_page(loaded), "form": form, "hold_time": take.HOLD_TIME}
    status = 422 if request.method == "POST" else 200
    return render(request, template, context, status=status)
