"""The pages of the policy versions: the list, one version, a form for a new one, and
the activation of a draft."""

from __future__ import annotations

import re

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from journal.errors import DomainError, NotFound, NotPermitted
from policies import versions
from policies.models import Person, PolicyVersion
from policies.people import check_administrator, is_administrator
from reviews.choices import Scope

from ..components import frame, htmx
from . import drafts, editing, pages, undeclared, waiting
from .tools import build_tools_page

MOST_REASON = 2000
_NUMBER = re.compile(r"[0-9]{1,9}")
_KEPT = ("base", "reason")  # of the form of an activation that was refused


@require_safe
def policies(request: HttpRequest) -> HttpResponse:
    """The list of all versions, newest first."""
    person = _read_person(request)
    context = {
        "versions": pages.list_versions(person),
        "writes": is_administrator(person),
        "undeclared": undeclared.list_undeclared(person),
    }
    return render(request, "desk/policies/policies.html", context)


@require_safe
def tools(request: HttpRequest) -> HttpResponse:
    """The active policy's tools: how their calls are decided, and how often each is
    called."""
    person = _read_person(request)
    switches = frame.get_frame(request).moment.list_switches(person)
    over = {each.key: each for each in switches if each.scope == Scope.TOOL}
    context = {
        "page": build_tools_page(person, over),
        "undeclared": undeclared.list_undeclared(person),
    }
    return render(request, "desk/policies/tools.html", context)


@require_safe
def policy(request: HttpRequest, number: int) -> HttpResponse:
    """The page of one version: rules, tools, steps, queues and measures. An
    administrator also sees what a draft would change."""
    page = pages.build_policy_page(_read_person(request), number)
    return _render_policy(request, page)


@require_safe
def waiting_requests(request: HttpRequest, number: int) -> HttpResponse:
    """What a draft means for further requests that wait. For administrators."""
    person = _read_person(request)
    page = pages.build_policy_page(person, number)
    check_administrator(person)
    if page.version.status != PolicyVersion.Status.DRAFT:
        raise NotFound
    first = _read_number(request, "first") or 0
    context = {"page": page, "waiting": waiting.build_waiting_rows(page.version, first)}
    return render(request, "desk/policies/waiting.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new_policy(request: HttpRequest) -> HttpResponse:
    """A form with the text of a version, and with a new entry for the undeclared tool
    that `declare` names; POST saves it as a draft."""
    person = _read_person(request)
    base = _read_base(request)
    if request.method != "POST":
        tool = request.GET.get("declare", "")
        form = editing.build_version_form(person, base, tool)
        return render(request, "desk/policies/new_policy.html", {"form": form})
    text, file = request.POST.get("document", ""), request.FILES.get("file")
    saved = editing.save_draft(person, text, base, file)
    if isinstance(saved, editing.VersionForm):
        context = {"form": saved}
        return render(request, "desk/policies/new_policy.html", context, status=422)
    who = "Activate it below" if saved.solo else "Another administrator activates it"
    messages.success(request, f"Saved as a draft. {who}.")
    return redirect("policies:policy", number=saved.number)


@require_POST
@htmx.vary_on_htmx
def check_draft(request: HttpRequest) -> HttpResponse:
    """Check a text, or a file's, and save nothing: htmx gets the result alone."""
    form = editing.check_text(
        _read_person(request),
        request.POST.get("document", ""),
        _read_base(request),
        request.FILES.get("file"),
    )
    part = htmx.wants_partial(request)
    template = "_check.html" if part else "new_policy.html"
    context, status = {"form": form}, 422 if form.file_problem else 200
    return render(request, f"desk/policies/{template}", context, status=status)


@require_POST
@sensitive_post_parameters("password")
def activate(request: HttpRequest, number: int) -> HttpResponse:
    """Let a draft of another administrator be the policy from now on."""
    person = _read_person(request)
    page = pages.build_policy_page(person, number)
    try:
        drafts.activate(request, person, page.version)
    except NotPermitted:
        raise
    except DomainError as error:
        return _render_policy(request, page, error)
    messages.success(request, f"Version {number} is active now.")
    return redirect("policies:policy", number=number)


@require_POST
def refuse(request: HttpRequest, number: int) -> HttpResponse:
    """Refuse a draft with a reason, or withdraw one's own."""
    person = _read_person(request)
    page = pages.build_policy_page(person, number)
    reason = request.POST.get("reason", "")[:MOST_REASON]
    try:
        versions.refuse_draft(version_id=page.version.pk, by=person, reason=reason)
    except NotPermitted:
        raise
    except DomainError as error:
        return _render_policy(request, page, unrefused=error)
    messages.success(request, f"Version {number} is refused.")
    return redirect("policies:policy", number=number)


@require_POST
def restore(request: HttpRequest, number: int) -> HttpResponse:
    """Save the document of a former version as a new draft."""
    person = _read_person(request)
    page = pages.build_policy_page(person, number)
    try:
        draft = versions.restore_version(version=page.version, by=person)
    except NotPermitted:
        raise
    except DomainError as error:
        return _render_policy(request, page, unrestored=error)
    messages.success(request, f"A draft of version {number}. It is not active yet.")
    return redirect("policies:policy", number=draft.number)


def _render_policy(
    request: HttpRequest,
    page: pages.PolicyPage,
    refusal: DomainError | None = None,
    *,
    unrefused: DomainError | None = None,
    unrestored: DomainError | None = None,
) -> HttpResponse:
    person = _read_person(request)
    writes, activation = is_administrator(person), None
    if writes and page.version.status == PolicyVersion.Status.DRAFT:
        sent = {name: request.POST[name] for name in _KEPT if name in request.POST}
        activation = drafts.build_activation(
            person,
            page.version,
            refusal,
            {} if unrefused else sent,
            request.POST.getlist("allow"),
        )
        if unrefused:
            activation = drafts.add_refusal(activation, unrefused, sent)
    context = {
        "page": page,
        "writes": writes,
        "activation": activation,
        "unrestored": unrestored or (unrefused if activation is None else None),
    }
    error = refusal or unrefused or unrestored
    status = error.status if error else 200
    return render(request, "desk/policies/policy.html", context, status=status)


def _read_base(request: HttpRequest) -> int | None:
    return _read_number(request, "from")


def _read_number(request: HttpRequest, name: str) -> int | None:
    number = request.GET.get(name, "")
    return int(number) if _NUMBER.fullmatch(number) else None


def _read_person(request: HttpRequest) -> Person:
    assert isinstance(request.user, Person)  # LoginRequiredMiddleware
    return request.user
