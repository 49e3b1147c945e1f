"""Registering an agent and its keys, for administrators; its keys for its owner as
well. A new key is shown once, in the answer that made it."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from agents import keys, registry
from agents.models import Agent
from agents.registry import NewAgent
from journal.errors import NotFound, NotPermitted
from policies.choices import Risk
from reviews import permissions
from reviews.roles import Permission

from ..components import frame
from ..components.frame import require_person
from ..people.forms import PasswordCheckedForm
from . import agents, registration, visibility
from .registration import KeyForm, RegistrationForm

WAITS = (
    "The agent may propose nothing until a second administrator confirms its tools and"
    " its risk. Its key works from now on."
)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password")
def register_agent(request: HttpRequest) -> HttpResponse:
    """Register an agent, ask a second administrator for what it may propose, and show
    its first key."""
    by = require_person(request)
    permissions.check_permission(by, Permission.MANAGE_AGENTS)
    form = RegistrationForm(request.POST or None)
    if form.is_valid():
        sent, made = form.cleaned_data, list[Agent]()

        new = NewAgent(
            slug=sent["slug"],
            name=sent["name"],
            owner=sent["owner"],
            tools=form.chosen_tools,
            risk_ceiling=Risk(sent["risk_ceiling"]),
            unattended=sent["unattended"],
            daily_proposals=sent["daily_proposals"],
            daily_money=sent["daily_money"],
        )

        def register() -> None:
            made.append(registry.propose_agent(new=new, by=by, reason=sent["reason"]))

        if form.act(request, register):
            if set(made[0].tools) != set(new.tools):
                messages.warning(request, WAITS)
            key = keys.issue_key(agent=made[0], by=by)
            if form.refused_calls:
                messages.warning(request, form.refused_calls)
            return _render_keys(request, made[0], KeyForm(), key)
    status = 422 if form.is_bound else 200
    return render(request, "desk/agents/register.html", {"form": form}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password")
def agent_keys(request: HttpRequest, slug: str) -> HttpResponse:
    """The agent's keys; POST issues another one, which its answer shows."""
    by, agent = require_person(request), _load_managed(request, slug)
    form = KeyForm(request.POST or None)
    if form.is_valid():
        days, made = form.cleaned_data["days"], list[str]()
        now = frame.get_frame(request).now
        until = None if days is None else now + timedelta(days=days)

        def issue() -> None:
            made.append(keys.issue_key(agent=agent, by=by, expires_at=until))

        if form.act(request, issue):
            return _render_keys(request, agent, KeyForm(), made[0])
    return _render_keys(request, agent, form)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("password", "one_time_code")
def revoke_key(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Ask whether one key ends, with when it was last used; POST revokes it at once."""
    by, agent = require_person(request), _load_managed(request, slug)
    key = agent.keys.select_related("agent__owner").filter(pk=pk).first()
    if key is None:
        raise NotFound
    form = PasswordCheckedForm(request.POST or None)
    if form.is_valid() and form.act(request, lambda: keys.revoke_key(key=key, by=by)):
        text = f"Revoked cs_{key.prefix}. Calls with it are refused."
        messages.success(request, text)
        return redirect("agents:agent_keys", slug)
    lines = registration.list_keys(agent, frame.get_frame(request).now)
    others = sum(line.valid and line.key.pk != key.pk for line in lines)
    context = {"agent": agent, "key": key, "form": form, "others": others}
    status = 422 if request.method == "POST" else 200
    return render(request, "desk/agents/revoke_key.html", context, status=status)


def _load_managed(request: HttpRequest, slug: str) -> Agent:
    person = require_person(request)
    agent = visibility.load_agent(person, slug)
    if not agents.may_manage_keys(person, agent):
        raise NotPermitted("Only administrators and the agent's owner see its keys.")
    return agent


def _render_keys(
    request: HttpRequest, agent: Agent, form: KeyForm, key: str = ""
) -> HttpResponse:
    context = {
        "agent": agent,
        "lines": registration.list_keys(agent, frame.get_frame(request).now),
        "form": form,
        "key": key,
    }
    status = 422 if form.is_bound else 200
    response = render(request, "desk/agents/keys.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
