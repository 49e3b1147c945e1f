"""Read-only pages of the policy versions."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from policies.models import Person

from . import pages


@require_safe
def policies(request: HttpRequest) -> HttpResponse:
    """The list of all versions, newest first."""
    versions = pages.list_versions(_read_person(request))
    return render(request, "policies/policies.html", {"versions": versions})


@require_safe
def policy(request: HttpRequest, number: int) -> HttpResponse:
    """The page of one version: rules, tools, steps, queues and measures."""
    page = pages.build_policy_page(_read_person(request), number)
    return render(request, "policies/policy.html", {"page": page})


def _read_person(request: HttpRequest) -> Person:
    assert isinstance(request.user, Person)  # LoginRequiredMiddleware
    return request.user
