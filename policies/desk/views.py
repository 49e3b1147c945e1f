"""The policy, read only: what is in force, and what was."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from policies.models import Person

from . import pages


@require_safe
def policies(request: HttpRequest) -> HttpResponse:
    """Every version, newest first."""
    versions = pages.versions(_person(request))
    return render(request, "policies/policies.html", {"versions": versions})


@require_safe
def policy(request: HttpRequest, number: int) -> HttpResponse:
    """One version: rules, tools, people asked, queues and measures."""
    page = pages.page(_person(request), number)
    return render(request, "policies/policy.html", {"page": page})


def _person(request: HttpRequest) -> Person:
    assert isinstance(request.user, Person)  # LoginRequiredMiddleware
    return request.user
