"""Stop and its lifting, and the settling of what could not be known."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from journal.errors import NotFound, NotYours
from reviews import settlements, stops
from reviews.choices import StopMode
from reviews.forms import ReasonForm, SettleForm, StopForm
from reviews.queries import switches
from reviews.queries import unknown as unknown_queries

from .who import person


@require_http_methods(["GET", "HEAD", "POST"])
def stop(request: HttpRequest) -> HttpResponse:
    """What can be switched off from here, and what is."""
    agent, thread = request.GET.get("agent", ""), request.GET.get("thread", "")
    return stop_page(request, agent=agent, thread=thread, owns=False)


def stop_page(
    request: HttpRequest, *, agent: str, thread: str, owns: bool
) -> HttpResponse:
    """The Stop page for a run, an agent or all. `owns`: the agent is this person's."""
    form = StopForm(request.POST or None)
    page = switches.page(
        person(request),
        agent=agent,
        thread=thread,
        tool=request.GET.get("tool", ""),
        owns=owns,
        target=request.POST.get("target", ""),
        mode=request.POST.get("mode", ""),
    )
    if request.method == "POST" and form.is_valid():
        return _stop(request, form, page, owns)
    context = {"page": page, "form": form}
    status = 422 if request.method == "POST" else 200
    return render(request, "reviews/stop.html", context, status=status)


def _stop(
    request: HttpRequest, form: StopForm, page: switches.StopPage, owns: bool
) -> HttpResponse:
    scope, key = form.cleaned_data["target"]
    mode = StopMode(form.cleaned_data["mode"])
    if not switches.offers(page, scope, key):
        raise NotYours("This page does not stop that. Nothing was changed.")
    stops.stop(
        scope=scope,
        key=key,
        mode=mode,
        person=person(request),
        reason=form.cleaned_data["reason"],
        owns=owns,
    )
    done = "Paused." if mode is StopMode.PAUSED else "Halting."
    messages.success(request, f"{done} Nothing new starts.")
    return redirect("reviews:stop")


@require_POST
def lift(request: HttpRequest, pk: int) -> HttpResponse:
    """Switch back on, with a reason."""
    form = ReasonForm(request.POST)
    if not form.is_valid():
        page = switches.page(person(request))
        context = {"page": page, "form": StopForm(), "lifting": pk, "lift_form": form}
        return render(request, "reviews/stop.html", context, status=422)
    row = stops.lift(
        stop_id=pk, person=person(request), reason=form.cleaned_data["reason"]
    )
    said = "On again." if row.lifted_at else "Asked. A second person must agree."
    messages.success(request, said)
    return redirect("reviews:stop")


@require_safe
def unknown(request: HttpRequest) -> HttpResponse:
    """Effects that may or may not have happened."""
    return _unknown(request)


def _unknown(
    request: HttpRequest, form: SettleForm | None = None, pk: str = ""
) -> HttpResponse:
    lines = unknown_queries.page(person(request))
    context = {"lines": lines, "form": form, "settling": pk}
    status = 422 if form else 200
    return render(request, "reviews/unknown.html", context, status=status)


@require_POST
def settle(request: HttpRequest, pk: str) -> HttpResponse:
    """A person's answer: it happened, or it did not."""
    who = person(request)
    if not unknown_queries.settleable(who).filter(pk=pk).exists():
        raise NotFound
    form = SettleForm(request.POST)
    if not form.is_valid():
        return _unknown(request, form, pk)
    settlements.settle_unknown(execution_id=pk, person=who, **form.cleaned_data)
    messages.success(request, "Recorded. The agent is told what you said.")
    return redirect("reviews:unknown")
