"""Alarms: the list, one of them, and what a supervisor does with it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from journal.errors import DomainError, NotFound
from reviews import permissions
from reviews.alarms import standing
from reviews.roles import Permission

from ..components import badges, htmx, navigation
from ..components.frame import require_person
from ..forms import CloseAlarmForm
from . import detail, lists


@require_safe
@htmx.vary_on_htmx
def alarms(request: HttpRequest) -> HttpResponse:
    """The alarms that stand until a supervisor closes them."""
    who = require_person(request)
    permissions.check_permission(who, Permission.SEE_ALARMS)
    page = lists.build_alarms_page(who, lists.AlarmFilters.read(request.GET))
    template = htmx.choose_template(request, "desk/alarms/alarms.html", "alarm-table")
    context = {
        "page": page,
        "upkeep": navigation.list_upkeep_tabs(who, navigation.ALARMS),
    }
    return render(request, template, context)


@require_safe
def alarm(request: HttpRequest, pk: int) -> HttpResponse:
    """One alarm with its facts."""
    return _render_alarm(request, pk)


def _render_alarm(
    request: HttpRequest,
    pk: int,
    form: CloseAlarmForm | None = None,
    problem: DomainError | None = None,
) -> HttpResponse:
    who = require_person(request)
    page = detail.load_alarm_page(who, pk)
    unsent = "" if form is None or page.may_close else form.data.get("note", "")
    context = {"page": page, "form": form, "problem": problem, "kept": unsent}
    context["upkeep"] = navigation.list_upkeep_tabs(who, navigation.ALARMS)
    status = htmx.compute_form_status(problem, sent=form is not None)
    return render(request, "desk/alarms/alarm.html", context, status=status)


@require_POST
def alarm_acknowledge(request: HttpRequest, pk: int) -> HttpResponse:
    """A supervisor states that they are looking into it."""
    who = require_person(request)
    _check_visible(request, pk)
    standing.acknowledge_alarm(alarm_id=pk, person=who)
    messages.success(request, "Acknowledged. Others see that you are working on it.")
    return redirect("reviews:alarm", pk)


@require_POST
def alarm_close(request: HttpRequest, pk: int) -> HttpResponse:
    """A supervisor closes it and states the cause and what was done."""
    _check_visible(request, pk)
    form = CloseAlarmForm(request.POST)
    if not form.is_valid():
        return _render_alarm(request, pk, form)
    values = form.cleaned_data
    problem = htmx.catch_refusal(
        lambda: standing.close_alarm(
            alarm_id=pk,
            person=require_person(request),
            shown=request.POST.get("shown", ""),
            **values,
        )
    )
    if problem is not None:
        return _render_alarm(request, pk, form, problem)
    messages.success(request, "Resolved. Your note is in the audit log.")
    return redirect("reviews:alarm", pk)


def _check_visible(request: HttpRequest, pk: int) -> None:
    """Raises NotFound for an alarm that this person may not see."""
    if not badges.select_visible_alarms(require_person(request)).filter(pk=pk).exists():
        raise NotFound
