"""The on-call page with its two forms, and the page that a drill's message links to."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from journal.errors import Conflict, InvalidArgs, StaleVersion
from notifications.on_call import drills, shifts
from policies.choices import Risk
from reviews import permissions
from reviews.models import DrillSighting
from reviews.roles import Permission

from ..components import frame
from ..components.frame import require_person
from ..components.htmx import choose_template, vary_on_htmx, wants_partial
from .forms import DrillForm, ShiftForm
from .page import OnCallPage, build_on_call_page
from .results import build_results


@require_http_methods(["GET", "HEAD", "POST"])
def on_call(request: HttpRequest) -> HttpResponse:
    """The rota of each queue and the drills; POST plans a shift."""
    person = require_person(request)
    if request.method == "POST":
        permissions.check_permission(person, Permission.PLAN_ON_CALL)
    page = _build_page(request)
    form = ShiftForm(request.POST or None, queues=page.plans, people=page.people)
    status = 422
    if request.method == "POST" and form.is_valid():
        queue = form.cleaned_data["queue"]
        shown = request.POST.get(f"shown-{queue.name}", "")
        try:
            shift = shifts.plan_shift(by=person, shown=shown, **form.cleaned_data)
        except (InvalidArgs, StaleVersion) as error:
            form.add_refusal(error)
            status = error.status
        else:
            messages.success(request, f"{shift.person} is on call during this shift.")
            return redirect("reviews:on_call")
    return _render_page(request, page, form, DrillForm(queues=page.plans), status)


@require_POST
def shift_end(request: HttpRequest, pk: int) -> HttpResponse:
    """End a shift now, or remove a later one from the rota."""
    shown = request.POST.get("shown", "")
    shift = shifts.end_shift(shift_id=pk, by=require_person(request), shown=shown)
    messages.success(request, f"{shift.person} is no longer on call for this shift.")
    return redirect("reviews:on_call")


@require_POST
def drill_start(request: HttpRequest) -> HttpResponse:
    """Start a drill in one of the supervisor's queues."""
    person = require_person(request)
    permissions.check_permission(person, Permission.PLAN_ON_CALL)
    page = _build_page(request)
    form = DrillForm(request.POST, queues=page.plans)
    if form.is_valid():
        queue, risk = form.cleaned_data["queue"], Risk(form.cleaned_data["risk"])
        try:
            drill = drills.start_drill(person=person, queue=queue, risk=risk)
        except Conflict as error:
            form.add_refusal(error)
        else:
            return redirect("reviews:drill", drill.pk)
    shift = ShiftForm(queues=page.plans, people=page.people)
    return _render_page(request, page, shift, form)


@vary_on_htmx
@require_http_methods(["GET", "HEAD", "POST"])
def drill(request: HttpRequest, pk: int) -> HttpResponse:
    """The page that a drill's message links to. Its script records at once that the
    reader saw it, and a button does without a script (POST)."""
    person = require_person(request)
    row = drills.load_drill(pk, person)
    channel = request.GET.get("by", "")[:32].replace("\0", "")
    if request.method == "POST":
        drills.record_sighting(drill_id=pk, person=person, channel=channel)
        if not wants_partial(request):
            return redirect("reviews:drill", pk)
    now = frame.get_frame(request).now
    (result,) = build_results([row], now)
    seen = DrillSighting.objects.filter(drill=row, person=person).first()
    context = {
        "result": result,
        "seen": seen,
        "asked": person.public_id in row.people,
        "records": seen is None and result.runs and bool(channel),
    }
    template = choose_template(request, "desk/on_call/drill.html", "drill-state")
    return render(request, template, context)


def _build_page(request: HttpRequest) -> OnCallPage:
    return build_on_call_page(require_person(request), frame.get_frame(request).now)


def _render_page(
    request: HttpRequest,
    page: OnCallPage,
    shift: ShiftForm,
    drill: DrillForm,
    refused: int = 422,
) -> HttpResponse:
    context = {"page": page, "shift": shift, "drill": drill}
    status = refused if shift.errors or drill.errors else 200
    return render(request, "desk/on_call/on_call.html", context, status=status)
