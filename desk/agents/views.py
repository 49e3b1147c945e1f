"""Views of agents, their runs, their endpoints and the webhook deliveries."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from agents.models import Agent
from agents.webhooks import endpoints as webhook_endpoints
from agents.webhooks import redelivery, trial
from reviews import permissions
from reviews.roles import Permission

from ..components import frame
from ..components.frame import require_person
from ..stop import views
from ..stop.page import StopRequest
from . import agents as queries
from . import deliveries as desk_deliveries
from . import figures, threads, visibility
from .deliveries import EndpointTest
from .forms import EndpointForm
from .own import build_own_agents
from .own_statistics import build_own_statistics
from .runs import build_runs_page


@require_safe
def agents(request: HttpRequest) -> HttpResponse:
    """The list of agents that this person may see."""
    person = require_person(request)
    now = frame.get_frame(request).now
    lines = visibility.list_agents(person, now)
    proposed = sum(line.day.proposed for line in lines)
    context = {
        "lines": lines,
        "newest": proposed if proposed >= figures.MAX_COUNTED else 0,
        "own": build_own_agents(person, now),
        "may_register": permissions.has_permission(person, Permission.MANAGE_AGENTS),
        "sees_all": permissions.has_permission(person, Permission.SEE_ALL),
    }
    return render(request, "desk/agents/agents.html", context)


@require_safe
def own_statistics(request: HttpRequest) -> HttpResponse:
    """Thirty days of the agents that this person owns."""
    now = frame.get_frame(request).now
    page = build_own_statistics(require_person(request), now)
    return render(request, "desk/agents/own_statistics.html", {"page": page})


@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """The runs of all agents that this person may read, a page at a time."""
    sent = request.GET
    before = sent.get("before", "")
    page = build_runs_page(
        require_person(request),
        sent.get("agent", ""),
        int(before) if before.isdecimal() and len(before) < 19 else 0,
        frame.get_frame(request).now,
        unfinished=sent.get("state") == "unfinished",
    )
    return render(request, "desk/agents/runs.html", {"page": page})


@require_safe
def agent(request: HttpRequest, slug: str) -> HttpResponse:
    """The page of one agent: owner, tools, today's outcomes, runs, Stop."""
    page = queries.build_agent_page(
        require_person(request), slug, frame.get_frame(request).now
    )
    frame.get_frame(request).stop_url = page.stop_url
    return render(request, "desk/agents/agent.html", {"page": page})


@require_safe
def thread(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """The page of one run: its state, its checkpoint and its proposals."""
    page = threads.build_thread_page(
        require_person(request), slug, name, frame.get_frame(request).now
    )
    frame.get_frame(request).stop_url = page.stop_url
    return render(request, "desk/agents/thread.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
def stop_agent(request: HttpRequest, slug: str) -> HttpResponse:
    """The Stop page of an agent, which its owner may use too."""
    agent = visibility.load_agent(require_person(request), slug)
    owns = agent.owner_id == request.user.pk
    return views.render_stop_page(
        request, StopRequest(agent=slug, tool=_read_tool(request), owns=owns)
    )


@require_http_methods(["GET", "HEAD", "POST"])
def stop_thread(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """The Stop page of a run, which the agent's owner may use too."""
    agent = visibility.load_agent(require_person(request), slug)
    owns = agent.owner_id == request.user.pk
    asked = StopRequest(agent=slug, thread=name, tool=_read_tool(request), owns=owns)
    return views.render_stop_page(request, asked)


def _read_tool(request: HttpRequest) -> str:
    return request.GET.get("tool", "")


@require_safe
def deliveries(request: HttpRequest) -> HttpResponse:
    """The page of webhook deliveries: failed, waiting and recently delivered ones."""
    person = require_person(request)
    context = {
        "page": desk_deliveries.build_list_page(person),
        "upkeep": desk_deliveries.build_tabs(person),
    }
    return render(request, "desk/agents/deliveries.html", context)


@require_safe
def delivery(request: HttpRequest, pk: str) -> HttpResponse:
    """The page of one delivery: its payload and its attempts."""
    who = require_person(request)
    delivery = desk_deliveries.load_delivery(who, pk)
    context = desk_deliveries.build_delivery_context(who, delivery)
    return render(request, "desk/agents/delivery.html", context)


@require_POST
def delivery_again(request: HttpRequest, pk: str) -> HttpResponse:
    """Send a dead or held delivery again."""
    who = require_person(request)
    desk_deliveries.check_may_manage_delivery(who, pk)
    redelivery.send_again(delivery_id=pk, by=who)
    messages.success(request, "Resending. A failed attempt is retried for three days.")
    return redirect("agents:delivery", pk)


@require_POST
def endpoint_again(request: HttpRequest, pk: str) -> HttpResponse:
    """Send all dead deliveries of an endpoint again."""
    who = require_person(request)
    desk_deliveries.load_managed_endpoint(who, pk)
    count = redelivery.send_all_again(endpoint_id=pk, by=who)
    noun = "delivery" if count == 1 else "deliveries"
    messages.success(
        request,
        f"Resending {count} {noun}. Failed attempts are retried for three days.",
    )
    return redirect("agents:deliveries")


@require_POST
def endpoint_switch(request: HttpRequest, pk: str) -> HttpResponse:
    """Switch an endpoint off or on."""
    who = require_person(request)
    desk_deliveries.load_managed_endpoint(who, pk)
    if request.POST.get("to") == "on":
        webhook_endpoints.switch_on(endpoint_id=pk, by=who)
        messages.success(request, "Endpoint enabled. Pending deliveries are sent now.")
    else:
        webhook_endpoints.switch_off(endpoint_id=pk, by=who)
        messages.success(request, "Endpoint disabled. Its deliveries stay pending.")
    return redirect("agents:deliveries")


@require_http_methods(["GET", "HEAD", "POST"])
def endpoints(request: HttpRequest, slug: str) -> HttpResponse:
    """The page of an agent's endpoints. The response to its form is the only one that
    shows the new secret."""
    who = require_person(request)
    agent = visibility.load_agent(who, slug)
    desk_deliveries.check_may_read(who, agent)
    form, secret = EndpointForm(request.POST or None, agent=agent), ""
    if request.method == "POST":
        desk_deliveries.check_may_manage(who, agent)
    if form.is_valid():
        secret = webhook_endpoints.register_endpoint(
            agent=agent, url=form.cleaned_data["url"], by=who
        )[1]
        form = EndpointForm(agent=agent)
    return _render_endpoints(request, agent, form, secret)


@require_POST
def endpoint_secret(request: HttpRequest, pk: str) -> HttpResponse:
    """Renew an endpoint's secret. Only this response shows it; the former secret also
    signs for one more day."""
    endpoint = desk_deliveries.load_managed_endpoint(require_person(request), pk)
    secret = webhook_endpoints.renew_secret(endpoint_id=pk, by=require_person(request))
    return _render_endpoints(
        request, endpoint.agent, EndpointForm(agent=endpoint.agent), secret
    )


@require_POST
def endpoint_test(request: HttpRequest, pk: str) -> HttpResponse:
    """Send a test event to an endpoint, and show what it answered."""
    who = require_person(request)
    endpoint = desk_deliveries.load_managed_endpoint(who, pk)
    result = trial.send_test_event(endpoint=endpoint, by=who)
    form = EndpointForm(agent=endpoint.agent)
    return _render_endpoints(
        request, endpoint.agent, form, test=EndpointTest(endpoint, result)
    )


def _render_endpoints(
    request: HttpRequest,
    agent: Agent,
    form: EndpointForm,
    secret: str = "",
    test: EndpointTest | None = None,
) -> HttpResponse:
    who = require_person(request)
    context = {
        "agent": agent,
        "places": desk_deliveries.list_endpoints(who, agent.endpoints.all()),
        "may_manage": desk_deliveries.may_manage(who, agent),
        "form": form,
        "secret": secret,
        "test": test,
    }
    status = 422 if form.errors else 200
    response = render(request, "desk/agents/endpoints.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
