"""Agents and their runs, as people see them."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from reviews.queries.stopping import Asked
from reviews.views import control, frame
from reviews.views.who import person

from . import queries


@require_safe
def agents(request: HttpRequest) -> HttpResponse:
    """Every agent this person may see."""
    lines = queries.agents(person(request))
    return render(request, "agents/agents.html", {"lines": lines})


@require_safe
def agent(request: HttpRequest, slug: str) -> HttpResponse:
    """One agent: owner, tools, today's outcomes, runs, Stop."""
    page = queries.agent_page(person(request), slug, frame.of(request).now)
    frame.of(request).stop_url = page.stop_url
    return render(request, "agents/agent.html", {"page": page})


@require_safe
def thread(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """One run: its state, its checkpoint and every step it proposed."""
    page = queries.thread_page(person(request), slug, name, frame.of(request).now)
    frame.of(request).stop_url = page.stop_url
    return render(request, "agents/thread.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
def stop_agent(request: HttpRequest, slug: str) -> HttpResponse:
    """The Stop page of an agent; its owner may use it too."""
    found = queries.load(person(request), slug)
    owns = found.owner_id == request.user.pk
    return control.stop_page(request, Asked(agent=slug, owns=owns))


@require_http_methods(["GET", "HEAD", "POST"])
def stop_thread(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """The Stop page of a run; the agent's owner may use it too."""
    found = queries.load(person(request), slug)
    owns = found.owner_id == request.user.pk
    return control.stop_page(request, Asked(agent=slug, thread=name, owns=owns))
