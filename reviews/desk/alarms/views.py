"""Alarms: the list, one of them, and what a supervisor does with it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from journal.errors import DomainError, NotFound
from reviews import permissions
from reviews.alarms import standing
from reviews.desk.components import badges, htmx
from reviews.desk.components.frame import person
from reviews.desk.forms import CloseAlarmForm
from reviews.permissions import Permission

from . import detail, lists


@require_safe
@htmx.varies
def alarms(request: HttpRequest) -> HttpResponse:
    """The alarms that stand until a supervisor closes them."""
    who = person(request)
    permissions.check(who, Permission.SEE_ALARMS)
    page = lists.page(who, lists.Filters.read(request.GET))
    template = htmx.part(request, "reviews/alarms.html", "alarm-table")
    return render(request, template, {"page": page, "upkeep": page.tabs})


@require_safe
def alarm(request: HttpRequest, pk: int) -> HttpResponse:
    """One alarm with its facts."""
    return _page(request, pk)


def _page(
    request: HttpRequest,
    pk: int,
    form: CloseAlarmForm | None = None,
    problem: DomainError | None = None,
) -> HttpResponse:
    page = detail.one(person(request), pk)
    kept = "" if form is None or page.may_close else form.data.get("note", "")
    context = {"page": page, "upkeep": page.tabs, "form": form}
    context |= {"problem": problem, "kept": kept}
    status = htmx.status_of(problem, sent=form is not None)
    return render(request, "reviews/alarm.html", context, status=status)


@require_POST
def alarm_acknowledge(request: HttpRequest, pk: int) -> HttpResponse:
    """A supervisor states that they are looking into it."""
    who = person(request)
    _seen(request, pk)
    standing.acknowledge(alarm_id=pk, person=who)
    messages.success(request, "You look at it. The others see that.")
    return redirect("reviews:alarm", pk)


@require_POST
def alarm_close(request: HttpRequest, pk: int) -> HttpResponse:
    """A supervisor closes it and states the cause and what was done."""
    _seen(request, pk)
    form = CloseAlarmForm(request.POST)
    if not form.is_valid():
        return _page(request, pk, form)
    said = form.cleaned_data
    problem = htmx.attempt(
        lambda: standing.close(alarm_id=pk, person=person(request), **said)
    )
    if problem is not None:
        return _page(request, pk, form, problem)
    messages.success(request, "Closed. Your note is in the log.")
    return redirect("reviews:alarm", pk)


def _seen(request: HttpRequest, pk: int) -> None:
    """Raises NotFound for an alarm that this person may not see."""
    if not badges.visible(person(request)).filter(pk=pk).exists():
        raise NotFound
