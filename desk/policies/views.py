"""The pages of the policy versions: the list, one version, a form for a new one, and
the activation of a draft."""

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

from journal.errors import DomainError, NotPermitted
from policies.models import Person, PolicyVersion
from policies.people import is_administrator

from . import drafts, pages


@require_safe
def policies(request: HttpRequest) -> HttpResponse:
    """The list of all versions, newest first."""
    person = _read_person(request)
    context = {
        "versions": pages.list_versions(person),
        "writes": is_administrator(person),
    }
    return render(request, "desk/policies/policies.html", context)


@require_safe
def policy(request: HttpRequest, number: int) -> HttpResponse:
    """The page of one version: rules, tools, steps, queues and measures. An
    administrator also sees what a draft would change."""
    page = pages.build_policy_page(_read_person(request), number)
    return _render_policy(request, page)


@require_http_methods(["GET", "HEAD", "POST"])
def new_policy(request: HttpRequest) -> HttpResponse:
    """A form with the text of a version; POST saves it as a draft."""
    person = _read_person(request)
    base = _read_base(request)
    if request.method != "POST":
        form = drafts.build_version_form(person, base)
        return render(request, "desk/policies/new_policy.html", {"form": form})
    saved = drafts.save_draft(person, request.POST.get("document", ""), base)
    if isinstance(saved, drafts.VersionForm):
        context = {"form": saved}
        return render(request, "desk/policies/new_policy.html", context, status=422)
    messages.success(request, "Saved as a draft. Another administrator activates it.")
    return redirect("policies:policy", number=saved.number)


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


def _render_policy(
    request: HttpRequest, page: pages.PolicyPage, refusal: DomainError | None = None
) -> HttpResponse:
    person = _read_person(request)
    writes, activation = is_administrator(person), None
    if writes and page.version.status == PolicyVersion.Status.DRAFT:
        sent = {name: str(request.POST.get(name, "")) for name in ("base", "reason")}
        activation = drafts.build_activation(person, page.version, refusal, sent)
    context = {"page": page, "writes": writes, "activation": activation}
    status = refusal.status if refusal else 200
    return render(request, "desk/policies/policy.html", context, status=status)


def _read_base(request: HttpRequest) -> int | None:
    number = request.GET.get("from", "")
    return (
        int(number)
        if number.isascii() and number.isdigit() and len(number) < 10
        else None
    )


def _read_person(request: HttpRequest) -> Person:
    assert isinstance(request.user, Person)  # LoginRequiredMiddleware
    return request.user
