"""The settings of an agent, for administrators: what tightens takes effect at once, and
what loosens is answered by a second one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from agents import registry, setting_changes
from agents.choices import SettingsStatus
from agents.models import Agent, SettingsChange
from agents.registry import AgentChange
from journal.errors import TextMissing
from policies import budgets
from policies.choices import Risk
from reviews import permissions
from reviews.roles import Permission

from ..components.frame import require_person
from ..people.forms import AuthorityAnswerForm
from . import setting_changes as pages
from . import visibility
from .registration import ChangeForm

WAITS = (
    "What lets the agent do more waits for a second administrator. Everything else is"
    " changed, and applies to the next proposal."
)
VOID = (
    "Nothing was changed: the agent's settings were changed since this was asked for,"
    " so it is void. Ask for it again on the settings as they are now."
)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password", "one_time_code")
def agent_settings(request: HttpRequest, slug: str) -> HttpResponse:
    """The agent's owner, tools, risk ceiling and limits."""
    by = require_person(request)
    agent = visibility.load_agent(by, slug)
    permissions.check_permission(by, Permission.MANAGE_AGENTS)
    if request.method == "POST":
        form = ChangeForm(request.POST, held=agent.tools)
    else:
        form = ChangeForm(initial=_build_initial(agent))
    if form.is_valid():
        change, proposed = _build_change(form, agent), list[SettingsChange | None]()
        reason = form.cleaned_data["reason"]

        def operation() -> None:
            proposed.append(
                registry.change_agent(agent=agent, change=change, by=by, reason=reason)
            )

        if form.act(request, operation):
            done = "Changed. It applies to the next proposal."
            messages.success(request, WAITS if proposed[0] else done)
            if form.refused_calls:
                messages.warning(request, form.refused_calls)
            return redirect("agents:agent", slug)
    context = {"agent": agent, "form": form}
    status = 422 if form.is_bound else 200
    return render(request, "desk/agents/settings.html", context, status=status)


def _build_change(form: ChangeForm, agent: Agent) -> AgentChange:
    sent = form.cleaned_data
    return AgentChange(
        tools=form.chosen_tools,
        risk_ceiling=Risk(sent["risk_ceiling"]),
        owner=None if sent["owner"] == agent.owner else sent["owner"],
        daily_proposals=sent["daily_proposals"] or 0,
        daily_money=sent["daily_money"],
    )


def _build_initial(agent: Agent) -> dict[str, Any]:
    return {
        "owner": agent.owner.public_id,
        "every_tool": agent.has_every_tool,
        "tools": "" if agent.has_every_tool else "\n".join(sorted(agent.tools)),
        "risk_ceiling": agent.risk_ceiling,
        "daily_proposals": agent.daily_proposals,
        "daily_money": budgets.write_budget(agent.daily_money),
    }


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password", "one_time_code")
def settings_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """One change that loosens the agent's settings; POST confirms it, refuses it with a
    reason, or withdraws one's own."""
    by = require_person(request)
    agent = visibility.load_agent(by, slug)
    permissions.check_permission(by, Permission.MANAGE_AGENTS)
    line = pages.load_change(agent, pk, by)
    form = AuthorityAnswerForm(request.POST or None)
    if request.method == "POST":
        answer, sent = request.POST.get("answer", ""), request.POST
        settled: list[SettingsChange] = []
        answers: dict[str, Callable[[], SettingsChange]] = {
            "confirm": lambda: setting_changes.confirm_change(
                change_id=pk, digest=sent.get("digest", ""), by=by
            ),
            "refuse": lambda: setting_changes.refuse_change(
                change_id=pk, by=by, reason=sent.get("reason", "")
            ),
            "withdraw": lambda: setting_changes.withdraw_change(change_id=pk, by=by),
        }
        if answer not in answers:
            raise TextMissing("Choose to confirm or to refuse. Nothing was recorded.")
        if form.is_valid() and form.act(
            request, lambda: settled.append(answers[answer]())
        ):
            _tell_result(request, settled[0])
            return redirect("agents:agent", slug)
    context = {"agent": agent, "change": line, "form": form}
    status = 422 if form.is_bound else 200
    return render(request, "desk/agents/settings_change.html", context, status=status)


def _tell_result(request: HttpRequest, change: SettingsChange) -> None:
    if change.status == SettingsStatus.VOID:
        messages.warning(request, VOID)
    elif change.status == SettingsStatus.CONFIRMED:
        messages.success(request, "Confirmed. It applies to the next proposal.")
    else:
        messages.success(request, "Recorded. Nothing was changed.")
