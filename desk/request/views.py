"""Views of one request: read it, look at it beside a list, open a panel, commit a
verdict, recall, retry."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)
from django_htmx.http import HttpResponseClientRedirect

from journal.errors import DomainError, NotFound, TooFast
from reviews.choices import Verdict
from reviews.decisions import drafts
from reviews.decisions import recall as recalls
from reviews.executions import settle

from ..components import htmx, ready_texts
from ..forms import (
    EXTENSION_PANEL,
    MESSAGE_PANELS,
    ArmForm,
    DecisionForm,
    DraftForm,
    MessageForm,
)
from . import commit, holding_views, panels, preview, responses
from . import messages as request_messages
from .decision import KeptText
from .load import LoadedRequest
from .page import PersonAct, build_page
from .reading_time import FAST
from .regions import Screen, parse_version
from .responses import load_requested, redirect_to_request, render_page


@require_safe
@htmx.vary_on_htmx
def request_detail(request: HttpRequest, pk: str) -> HttpResponse:
    """The review page; for htmx R8 with the strip beside it."""
    loaded = load_requested(request, pk)
    armed_before = request.GET.get("from", "")
    if armed_before in {*Verdict, *MESSAGE_PANELS}:
        return render_page(request, loaded, PersonAct(focus=f"verb-{armed_before}"))
    if armed_before == EXTENSION_PANEL:
        return render_page(request, loaded, PersonAct(focus="extend"))
    since = parse_version(request.GET.get("since", "")) or 0
    # What this person's own act just did; nothing if the page was merely opened.
    news = " ".join(map(str, messages.get_messages(request)))
    act = PersonAct(announcement=news or loaded.announcement)
    return render_page(request, loaded, act, Screen(since=since))


@require_safe
@htmx.vary_on_htmx
def live(request: HttpRequest, pk: str) -> HttpResponse:
    """The state strip, and R8 if it changed; the regions being read never move.

    `?part=following` returns the agent's next proposal after the end, once there is
    one.
    """
    loaded = load_requested(request, pk)
    if request.GET.get("part") == "following":
        return responses.render_next_proposal(request, loaded)
    return responses.render_strip(request, loaded)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password", "one_time_code", "passkey")
@htmx.vary_on_htmx
def decide(request: HttpRequest, pk: str) -> HttpResponse:
    """One address for the four verdicts: GET opens a panel, POST commits it, POST with
    `?check` previews an edit, with `?ready` inserts a ready text into its note."""
    loaded = load_requested(request, pk)
    if request.method != "POST":
        return _render_armed_panel(request, loaded)
    if "check" in request.GET:
        return _render_preview(request, loaded)
    form = DecisionForm(request.POST)
    if "ready" in request.GET:
        return _render_note(request, loaded, form)
    error = htmx.catch_refusal(lambda: commit.commit_verdict(request, loaded, form))
    if error is not None:
        return _render_refusal(request, form, error, pk)
    onward = responses.find_next_request(request, loaded, form.meant)
    if htmx.wants_partial(request) and (onward or form.meant is Verdict.MODIFY):
        to = redirect("reviews:request_detail", onward or pk).url
        return HttpResponseClientRedirect(to)
    return redirect_to_request(onward or pk)


@require_POST
@sensitive_post_parameters("password", "one_time_code")
def verdict_passkey(request: HttpRequest, pk: str) -> HttpResponse:
    """What a browser needs to confirm by a passkey the verdict that is sent here."""
    loaded = load_requested(request, pk)
    options = commit.build_passkey_options(loaded, DecisionForm(request.POST))
    return JsonResponse({"get": options})


@require_POST
@htmx.vary_on_htmx
def send_message(request: HttpRequest, pk: str) -> HttpResponse:
    """Send the agent a question, an answer, or the request for revision."""
    loaded = load_requested(request, pk)
    form = MessageForm(request.POST)
    error = htmx.catch_refusal(lambda: request_messages.commit_message(loaded, form))
    if error is None:
        news = request_messages.describe_sent(loaded, form.meant)
        messages.success(request, news)
        return redirect_to_request(pk)
    loaded = load_requested(request, pk, again=True)
    holding_views.save_draft(loaded, request.POST)
    if not request_messages.keeps_message_panel(loaded, error):
        return _render_problem(request, loaded, error, form.data.get("version", ""))
    panel = request_messages.build_message_panel(
        loaded, form.meant, data=request.POST, error=error
    )
    act = PersonAct(writing=panel, announcement=error.detail)
    return render_page(request, loaded, act, status=error.status)


@require_POST
@htmx.vary_on_htmx
def recall(request: HttpRequest, pk: str) -> HttpResponse:
    """Take an approval back while its recall window is open."""
    loaded = load_requested(request, pk)
    recalls.recall_approval(request_id=loaded.request.pk, person=loaded.person)
    messages.success(request, "Undone. You can decide it again.")
    return redirect_to_request(pk)


@require_POST
@htmx.vary_on_htmx
def retry(request: HttpRequest, pk: str) -> HttpResponse:
    """Try a failed execution again under the same grant, bytes and key."""
    loaded = load_requested(request, pk)
    if loaded.execution is None:
        raise NotFound
    settle.retry_execution(execution_id=loaded.execution.pk, person=loaded.person)
    return redirect_to_request(pk)


def _render_armed_panel(request: HttpRequest, loaded: LoadedRequest) -> HttpResponse:
    form = ArmForm(request.GET)
    if not form.is_valid() or not loaded.able:
        return render_page(request, loaded)
    arm = form.cleaned_data["arm"]
    if arm == EXTENSION_PANEL:
        return render_page(request, loaded, PersonAct(extending=True), beside=False)
    draft = drafts.find_draft(
        loaded.person, loaded.request.pk, request_messages.name_draft(loaded, arm)
    )
    if arm in MESSAGE_PANELS:
        panel = request_messages.build_message_panel(loaded, arm, draft=draft)
        return render_page(request, loaded, PersonAct(writing=panel), beside=False)
    verdict = Verdict(arm)
    if verdict not in loaded.choice.verdicts:
        return render_page(request, loaded)
    act = PersonAct(armed=panels.build_panel(loaded, verdict, draft=draft))
    return render_page(request, loaded, act, beside=False)


def _render_note(
    request: HttpRequest, loaded: LoadedRequest, form: DecisionForm
) -> HttpResponse:
    """The note of an open panel with the ready text that was just chosen."""
    if not loaded.able:
        return HttpResponse(status=204)
    note, key = (request.POST.get(name, "") for name in ("reason", "ready"))
    typed = {"reason": ready_texts.insert_ready_text(loaded.preset, note, key)}
    panel = panels.build_panel(loaded, form.meant, data=typed)
    context = {"panel": panel, "note_url": request.path, "inserted": True}
    return render(request, "desk/components/_note.html", context)


def _render_preview(request: HttpRequest, loaded: LoadedRequest) -> HttpResponse:
    if not loaded.able:
        return redirect_to_request(loaded.request.pk)
    panel = preview.build_preview_panel(
        loaded, request.POST, request.headers.get("HX-Trigger", "")
    )
    act = PersonAct(armed=panel)
    if not htmx.wants_partial(request):
        return render_page(request, loaded, act)
    page = responses.build_requested_page(
        request, loaded, act, partial=True, is_preview=True
    )
    redrawn = request.headers.get("HX-Target") == "fields"
    template = "desk/request/_fields.html" if redrawn else "desk/request/_check.html"
    context = {"page": page, "is_part": True, "redrawn": redrawn}
    return render(request, template, context)


def _render_refusal(
    request: HttpRequest, form: DecisionForm, error: DomainError, pk: str
) -> HttpResponse:
    """The refusal in place, on the request as it is now; everything typed is kept."""
    loaded = load_requested(request, pk, again=True)
    holding_views.save_draft(loaded, request.POST)
    if not panels.keeps_panel(loaded, error):
        return _render_problem(request, loaded, error, form.data.get("version", ""))
    panel = panels.build_panel(loaded, form.meant, data=request.POST, error=error)
    if form.meant is Verdict.MODIFY:
        panel = preview.preview_refused_edit(loaded, request.POST, panel)
    act = PersonAct(armed=panel, announcement=error.detail)
    screen = Screen(warned=FAST if isinstance(error, TooFast) else "")
    return render_page(request, loaded, act, screen, status=error.status)


def _render_problem(
    request: HttpRequest, loaded: LoadedRequest, error: DomainError, version: str
) -> HttpResponse:
    """The request as it is now, with the refusal above it and the typed text below.
    `version` is the one that was on the screen, as sent."""
    partial, read = htmx.wants_partial(request), parse_version(version)
    screen = Screen(
        read=read,
        version=read if partial else None,
        remade=partial and commit.REMADE in error.facts,
    )
    heading = request_messages.describe_draft(DraftForm(request.POST).target)
    act = PersonAct(
        problem=error,
        announcement=error.detail,
        unsent=KeptText.read(heading, request.POST.get("reason", "")),
    )
    return render_page(request, loaded, act, screen, status=error.status)


@require_safe
@htmx.vary_on_htmx
def peek(request: HttpRequest, pk: str) -> HttpResponse:
    """What a request would do, without verbs: beside the list, or as a page."""
    template = htmx.choose_template(request, "desk/request/peek.html", "peek")
    page = build_page(load_requested(request, pk))
    return render(request, template, {"page": page})
