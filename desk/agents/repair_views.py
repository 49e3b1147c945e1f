"""Views of reversals and repairs."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from agents import repairs as operations
from agents import reversals
from reviews.executions import repairs as gate

from ..components import frame, htmx, navigation
from ..components.frame import require_person
from . import repairs as queries
from . import visibility
from .forms import RepairAnswerForm, RepairForm, ReversalForm


@require_http_methods(["GET", "HEAD", "POST"])
def reversal(request: HttpRequest, pk: str) -> HttpResponse:
    """The page of a reversal: its preview, and the form that proposes it."""
    person, now = require_person(request), frame.get_frame(request).now
    form, error = ReversalForm(request.POST or None), None
    page = queries.build_reversal_page(person, pk, now)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        error = htmx.catch_refusal(
            lambda: reversals.propose_reversal(
                execution_id=pk, person=person, reason=reason
            )
        )
        page = queries.build_reversal_page(person, pk, now)
        if error is None:
            messages.success(request, f"{page.undo.word}. Another person must decide.")
            return redirect(page.undo.url)
    context = {"page": page, "form": form, "problem": error}
    status = htmx.compute_form_status(error, sent=request.method == "POST")
    return render(request, "desk/agents/reversal.html", context, status=status)


@require_safe
def repairs(request: HttpRequest) -> HttpResponse:
    """The list of proposed and settled repairs."""
    person = require_person(request)
    context = {
        "page": queries.build_list_page(person),
        "upkeep": navigation.list_upkeep_tabs(person, navigation.REPAIRS),
    }
    return render(request, "desk/agents/repairs.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def repair_run(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """The repairs that a run allows, and the form that proposes one."""
    person, now = require_person(request), frame.get_frame(request).now
    form, error = RepairForm(request.POST or None), None
    page = queries.build_run_repair_page(person, slug, name, now)
    if form.is_valid():
        error = htmx.catch_refusal(lambda: _propose_repair(request, slug, name, form))
        if error is None:
            messages.success(
                request, "Repair proposed. An administrator must confirm it."
            )
            return redirect("agents:repairs")
        page = queries.build_run_repair_page(person, slug, name, now)
    unsent = "" if page.offers else request.POST.get("reason", "")
    context = {"page": page, "form": form, "problem": error, "kept": unsent}
    status = htmx.compute_form_status(error, sent=request.method == "POST")
    return render(request, "desk/agents/repair_run.html", context, status=status)


def _propose_repair(
    request: HttpRequest, slug: str, name: str, form: RepairForm
) -> None:
    who, values = require_person(request), form.cleaned_data
    change, execution = values["change"]
    shown = form.data.get(f"shown-{form.data['change']}", "")
    if execution:
        queries.check_execution_of_run(execution, slug, name)
        gate.propose_repair(
            execution_id=execution,
            change=change,
            person=who,
            reason=values["reason"],
            shown=shown,
        )
        return
    operations.propose_repair(
        agent=visibility.load_agent(who, slug),
        name=name,
        change=change,
        person=who,
        reason=values["reason"],
        resume_at=values["resume_at"],
        state=values["state"],
        shown=shown,
    )


@require_http_methods(["GET", "HEAD", "POST"])
def repair(request: HttpRequest, pk: str) -> HttpResponse:
    """The page of one repair, before and after, with the second person's form."""
    person = require_person(request)
    form, error = RepairAnswerForm(request.POST or None), None
    page = queries.build_repair_page(person, pk)
    if form.is_valid():
        error = htmx.catch_refusal(lambda: _answer_repair(request, pk, form))
        if error is None:
            messages.success(request, _SUCCESS_MESSAGES[form.cleaned_data["do"]])
            return redirect("agents:repair", pk)
        page = queries.build_repair_page(person, pk)
    unsent = "" if page.open else form.data.get("answer", "")
    context = {"page": page, "form": form, "problem": error, "kept": unsent}
    context["upkeep"] = navigation.list_upkeep_tabs(person, navigation.REPAIRS)
    status = htmx.compute_form_status(error, sent=request.method == "POST")
    return render(request, "desk/agents/repair.html", context, status=status)


_SUCCESS_MESSAGES = {
    "confirm": "Repair applied. The audit log has the values before and after.",
    "refuse": "Repair refused. Nothing was changed.",
}


def _answer_repair(request: HttpRequest, pk: str, form: RepairAnswerForm) -> None:
    who, values = require_person(request), form.cleaned_data
    if values["do"] == "refuse":
        gate.refuse_repair(repair_id=pk, person=who, answer=values["answer"])
        return
    confirm = operations.confirm_repair
    if queries.is_execution_repair(pk):
        confirm = gate.confirm_repair
    confirm(repair_id=pk, person=who, shown=form.data.get("shown", ""))
