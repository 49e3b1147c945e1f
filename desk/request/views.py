"""Views of one request: read it, look at it beside a list, open a panel, commit a
verdict, recall, retry."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
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

from ..components import frame, htmx
from ..components.frame import require_person
from ..forms import (
    EXTENSION_PANEL,
    MESSAGE_PANELS,
    ArmForm,
    DecisionForm,
    DraftForm,
    MessageForm,
)
from . import commit, holding_views, load, panels, preview, strip
from .load import LoadedRequest
from .page import ReviewPage

TEMPLATE = "desk/request/request.html"


@require_safe
@htmx.vary_on_htmx
def request_detail(request: HttpRequest, pk: str) -> HttpResponse:
    """The review page; for htmx R8 with the strip beside it."""
    loaded = _load_request(request, pk)
    armed_before = request.GET.get("from", "")
    if armed_before in {*Verdict, *MESSAGE_PANELS}:
        return _render_page(request, ReviewPage(loaded, focus=f"verb-{armed_before}"))
    if armed_before == EXTENSION_PANEL:
        return _render_page(request, ReviewPage(loaded, focus="extend"))
    since = commit.parse_version(request.GET.get("since", "")) or 0
    said = holding_views.join_news(request) or loaded.said
    return _render_page(request, ReviewPage(loaded, said=said, since=since))


@require_safe
@htmx.vary_on_htmx
def live(request: HttpRequest, pk: str) -> HttpResponse:
    """The state strip, and R8 if it changed; the regions being read never move.

    `?part=following` returns the agent's next proposal after the end, once there is
    one.
    """
    loaded = _load_request(request, pk)
    if request.GET.get("part") == "following":
        return strip.render_next_proposal(request, loaded)
    return strip.render_strip(request, loaded)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password")
@htmx.vary_on_htmx
def decide(request: HttpRequest, pk: str) -> HttpResponse:
    """One address for the four verdicts: GET opens a panel, POST commits it, POST with
    `?check` previews an edit."""
    loaded = _load_request(request, pk)
    if request.method != "POST":
        return _render_armed_panel(request, loaded)
    if "check" in request.GET:
        return _render_preview(request, loaded)
    form = DecisionForm(request.POST)
    error = htmx.catch_refusal(lambda: commit.commit_verdict(request, loaded, form))
    if error is not None:
        return _render_refusal(request, form, error, pk)
    onward = strip.find_next_request(request, loaded, form.meant)
    if htmx.wants_partial(request) and (onward or form.meant is Verdict.MODIFY):
        to = redirect("reviews:request_detail", onward or pk).url
        return HttpResponseClientRedirect(to)
    if onward:
        return _redirect_to_request(onward)
    return _redirect_to_request(pk)


@require_POST
@htmx.vary_on_htmx
def send_message(request: HttpRequest, pk: str) -> HttpResponse:
    """Send the agent a question, an answer, or the request for revision."""
    loaded = _load_request(request, pk)
    form = MessageForm(request.POST)
    error = htmx.catch_refusal(lambda: commit.commit_message(loaded, form))
    if error is None:
        messages.success(request, panels.describe_sent(loaded, form.meant))
        return _redirect_to_request(pk)
    request.desk = None  # type: ignore[attr-defined]  # the clock has moved on
    loaded = _load_request(request, pk)
    holding_views.save_draft(loaded, request.POST)
    if not panels.keeps_message_panel(loaded, error):
        return _render_problem(request, loaded, error, form.data.get("version", ""))
    written = panels.build_message_panel(
        loaded, form.meant, data=request.POST, error=error
    )
    page = ReviewPage(loaded, writing=written, said=error.detail)
    return _render_page(request, page, status=error.status)


@require_POST
@htmx.vary_on_htmx
def recall(request: HttpRequest, pk: str) -> HttpResponse:
    """Take an approval back while its recall window is open."""
    loaded = _load_request(request, pk)
    recalls.recall_approval(request_id=loaded.request.pk, person=loaded.person)
    messages.success(request, "Undone. You can decide it again.")
    return _redirect_to_request(pk)


@require_POST
@htmx.vary_on_htmx
def retry(request: HttpRequest, pk: str) -> HttpResponse:
    """Try a failed execution again under the same grant, bytes and key."""
    loaded = _load_request(request, pk)
    if loaded.execution is None:
        raise NotFound
    settle.retry_execution(execution_id=loaded.execution.pk, person=loaded.person)
    return _redirect_to_request(pk)


def _load_request(request: HttpRequest, pk: str) -> LoadedRequest:
    return load.load_request(require_person(request), pk, frame.get_frame(request).now)


def _redirect_to_request(pk: str) -> HttpResponse:
    """POST, redirect, GET: htmx follows the redirect and gets the fragment."""
    response = redirect("reviews:request_detail", pk)
    response.status_code = 303
    return response


def _render_armed_panel(request: HttpRequest, loaded: LoadedRequest) -> HttpResponse:
    form = ArmForm(request.GET)
    if not form.is_valid() or not loaded.able:
        return _render_page(request, ReviewPage(loaded))
    if form.cleaned_data["arm"] == EXTENSION_PANEL:
        page = ReviewPage(loaded, extending=True)
        return _render_page(request, page, beside=False)
    arm = form.cleaned_data["arm"]
    draft = drafts.find_draft(
        loaded.person, loaded.request.pk, panels.name_draft(loaded, arm)
    )
    if arm in MESSAGE_PANELS:
        written = panels.build_message_panel(loaded, arm, draft=draft)
        return _render_page(request, ReviewPage(loaded, writing=written), beside=False)
    verdict = Verdict(arm)
    if verdict not in loaded.choice.verdicts:
        return _render_page(request, ReviewPage(loaded))
    armed = panels.build_panel(loaded, verdict, draft=draft)
    return _render_page(request, ReviewPage(loaded, armed=armed), beside=False)


def _render_preview(request: HttpRequest, loaded: LoadedRequest) -> HttpResponse:
    """The preview of an edit, beside its fields."""
    if not loaded.able:
        return _redirect_to_request(loaded.request.pk)
    armed = preview.build_preview_panel(
        loaded, request.POST, request.headers.get("HX-Trigger", "")
    )
    page = ReviewPage(loaded, armed=armed)
    if not htmx.wants_partial(request):
        return _render_page(request, page)
    page.partial, page.on_screen = True, commit.find_page_on_screen(request, loaded)
    commit.ask_about_edit(request, page)
    redrawn = request.headers.get("HX-Target") == "fields"
    template = "desk/request/_fields.html" if redrawn else "desk/request/_check.html"
    context = {"page": page, "is_part": True, "redrawn": redrawn}
    return render(request, template, context)


def _render_refusal(
    request: HttpRequest, form: DecisionForm, error: DomainError, pk: str
) -> HttpResponse:
    """The refusal in place, on the request as it is now; everything typed is kept."""
    request.desk = None  # type: ignore[attr-defined]  # the clock has moved on
    loaded = _load_request(request, pk)
    holding_views.save_draft(loaded, request.POST)
    if panels.keeps_panel(loaded, error):
        armed = panels.build_panel(loaded, form.meant, data=request.POST, error=error)
        if form.meant is Verdict.MODIFY:
            armed = preview.preview_refused_edit(loaded, request.POST, armed)
        warned = commit.FAST if isinstance(error, TooFast) else ""
        page = ReviewPage(loaded, armed=armed, said=error.detail, warned=warned)
        return _render_page(request, page, status=error.status)
    return _render_problem(request, loaded, error, form.data.get("version", ""))


def _render_problem(
    request: HttpRequest, loaded: LoadedRequest, error: DomainError, version: str
) -> HttpResponse:
    """The request as it is now, with the refusal above it and the typed text below.
    `version` is the one that was on the screen, as sent."""
    partial, read = htmx.wants_partial(request), commit.parse_version(version)
    page = ReviewPage(
        loaded,
        read=read,
        screen=read if partial else None,
        problem=error,
        remade=partial and commit.REMADE in error.facts,
        said=error.detail,
        note_kept=request.POST.get("reason", ""),
        kept_for=panels.describe_draft(DraftForm(request.POST).target),
    )
    return _render_page(request, page, status=error.status)


def _render_page(
    request: HttpRequest, page: ReviewPage, *, beside: bool = True, status: int = 200
) -> HttpResponse:
    """The page, or `#decide` with the strip, banner and badges beside it."""
    frame.get_frame(request).stop_url = page.stop_any_url
    partial = htmx.wants_partial(request)
    commit.adapt_page(request, page, partial=partial)
    template = htmx.choose_template(request, TEMPLATE, "decide")
    if not partial:
        page.ready()
        if page.verbs:
            page.notice.ready()
        frame.get_frame(request).ready()
    context = {"page": page, "beside": partial and beside}
    response = render(request, template, context, status=status)
    if partial and beside:
        response["HX-Push-Url"] = page.url
    return response


@require_safe
@htmx.vary_on_htmx
def peek(request: HttpRequest, pk: str) -> HttpResponse:
    """What a request would do, without verbs: beside the list, or as a page."""
    loaded = load.load_request(
        require_person(request), pk, frame.get_frame(request).now
    )
    template = htmx.choose_template(request, "desk/request/peek.html", "peek")
    return render(request, template, {"page": ReviewPage(loaded)})
