"""Agents and their threads, the policies, and webhooks to agents: where they go, what
did not arrive, and what one of them says."""

from __future__ import annotations

from typing import Any

from agents import keys, registry, setting_changes
from agents.models import Delivery, SettingsChange
from agents.registry import AgentChange
from agents.webhooks import delivery, endpoints, enqueue, lanes
from agents.webhooks.delivery import AttemptResult
from journal import clock
from journal.models import OutboxMessage
from journal.state_machine import PROPOSAL_TOLD
from policies.documents import EVERY_TOOL
from reviews.choices import StopMode
from reviews.models import Alarm
from tests import factories
from tests.factories import PASSWORD, decide
from tests.gallery.scene import SceneGroup, Submission
from tests.gallery.scenes.outcomes import stop_thread
from tests.gallery.store import LABEL, StoreGate

AGENTS = SceneGroup(
    "agents",
    shows=(
        "agents:agent",
        "agents:runs",
        "agents:thread",
        "agents:register_agent",
        "agents:agent_settings",
        "agents:agent_keys",
        "agents:revoke_key",
        "agents:settings_change",
        "agents:own_statistics",
    ),
)


@AGENTS.preparation
def fill_day(gate: StoreGate) -> None:
    """An agent with a day behind it, and one without."""
    factories.agent(gate.owen, "robin", tools=["add_label"])
    gate.refunded()
    gate.refunded("declined")
    gate.refund(thread="ticket-7")
    gate.label(thread="ticket-7")
    decide(gate.refund("24.00"), gate.rita, "reject", reason_code="unsafe")
    gate.propose("no_such_tool", {}, thread="ticket-7")
    gate.approve(gate.refund(thread="ticket-7"))
    edited = gate.refund("89.00")
    args = {**edited.proposal.current.args, "amount": "44.50"}
    decide(edited, gate.rita, "modify", args=args, reason="Half came back.")


AGENTS.add("list", "Robin", "/agents/", "sue")
AGENTS.add("list-owner", "Your agents, last 7 days", "/agents/", "owen")
AGENTS.add("one", "Riley", "/agents/riley/", "sue")
AGENTS.add("one-owner", "Riley", "/agents/riley/", "owen")
AGENTS.add("one-idle", "Robin", "/agents/robin/", "owen")
AGENTS.add("own-statistics", "What reviewers changed", "/own-statistics/", "owen")
AGENTS.add("own-statistics-none", "You own no agent.", "/own-statistics/", "rita")
AGENTS.add("runs", "ticket-7", "/runs/", "sue")
AGENTS.add("runs-none", "None fits the filter", "/runs/?agent=robin", "owen")
AGENTS.add("run", "ticket-7", "/threads/riley/ticket-7/")
AGENTS.add("run-auditor", "ticket-7", "/threads/riley/ticket-7/", "otto")


@AGENTS.scene("run-failed", "Retry")
def run_failed(gate: StoreGate) -> str:
    """What asked nobody, and is known not to have happened."""
    proposal = gate.propose("add_label", LABEL)
    gate.perform(proposal.executions.get(), "declined")
    return f"/threads/riley/{proposal.thread}/"


@AGENTS.scene("run-stopped", "Stopped", "sue")
def run_stopped(gate: StoreGate) -> str:
    request = stop_thread(gate, StopMode.STOPPED)
    return f"/threads/riley/{request.proposal.thread}/"


@AGENTS.scene("run-rejections", "By Counterseal", "sue")
def run_rejections(gate: StoreGate) -> str:
    """Paused by the gate, after four rejections and a repeat of the last one."""
    thread = "ticket-of-rejections"
    args: dict[str, Any] = {}
    for _ in range(4):
        request = gate.refund("12.00", thread=thread)
        args = request.proposal.current.args
        decide(request, gate.rita, "reject", reason_code="unsafe")
    gate.propose("process_refund", args, thread=thread)
    return f"/threads/riley/{thread}/"


AGENTS.add(
    "run-retried",
    "attempt 2 of 5",
    lambda gate: f"/threads/riley/{gate.refunded('busy').proposal.thread}/",
)

POST = SceneGroup(
    "post", shows=("agents:deliveries", "agents:endpoints", "agents:delivery")
)
NOWHERE = SceneGroup("post-empty")
ENDPOINTS = "/agents/riley/endpoints/"
TAKEN, FAILS = AttemptResult(204), AttemptResult(500, "status 500", seconds=0.2)
GONE = AttemptResult(410, "status 410")


@POST.preparation
def deliver(gate: StoreGate) -> None:
    """An endpoint that accepts its deliveries, one that fails, and one that is gone."""
    for path in ("hooks/counterseal", "events?key=k3y", "old"):
        url = f"https://riley.example/{path}"
        endpoints.register_endpoint(agent=gate.agent, url=url, by=gate.owen)
    for _ in range(3):
        decide(gate.refund(), gate.rita, "reject", reason_code="duplicate")
    for message in OutboxMessage.objects.filter(topic=PROPOSAL_TOLD).order_by("pk"):
        enqueue.enqueue_deliveries(message=message)
    while due := lanes.list_due_deliveries():
        for pk in due:
            attempt(Delivery.objects.get(pk=pk))
    dead = Delivery.objects.filter(status="waiting", url__contains="events").first()
    assert dead is not None
    Delivery.objects.filter(pk=dead.pk).update(
        next_at=clock.now(), give_up_at=clock.now()
    )
    attempt(dead)


def attempt(row: Delivery) -> None:
    """As the endpoint answers."""
    taken = delivery.claim_delivery(delivery_id=row.pk)
    if taken is not None:
        answer = TAKEN if "hooks" in row.url else FAILS
        answer = GONE if row.url.endswith("old") else answer
        delivery.record_attempt(
            delivery_id=taken.pk, attempt=taken.attempts, answer=answer
        )


def find_delivery(status: str) -> str:
    delivery = Delivery.objects.filter(status=status).order_by("-attempts").first()
    assert delivery is not None
    return f"/deliveries/{delivery.pk}/"


POST.add("list", "Resend", "/deliveries/", "owen")
POST.add("list-auditor", "Not retried", "/deliveries/", "otto")
POST.add("list-administrator", "Enable", "/deliveries/", "adam")
POST.add("places", "New secret", ENDPOINTS, "owen")
POST.add("given-up", "Resend", lambda gate: find_delivery("dead"), "owen")
POST.add(
    "given-up-alarm",
    "Delivery",
    lambda gate: Alarm.objects.filter(kind="delivery_dead").latest("pk"),
    "sue",
)
POST.add("waiting", "Next attempt", lambda gate: find_delivery("waiting"), "otto")
POST.add("delivered", "Delivered, 204", lambda gate: find_delivery("delivered"), "otto")
POST.add(
    "place-refused",
    "This address is not public and is not in",
    Submission(ENDPOINTS, {"url": "http://10.0.0.1/hook"}),
    "owen",
)


@POST.scene("secret", "Copy the signing secret now.", "owen")
def secret(gate: StoreGate) -> Submission:
    count = gate.agent.endpoints.count()
    return Submission(ENDPOINTS, {"url": f"https://riley.example/more-{count}"})


@POST.scene("tested", "No answer to the test event.", "owen")
def tested(gate: StoreGate) -> Submission:
    """An address that this machine does not reach."""
    endpoint = gate.agent.endpoints.order_by("created_at").first()
    assert endpoint is not None
    return Submission(f"/endpoints/{endpoint.pk}/test/", {})


NOWHERE.add("list", "No pending deliveries.", "/deliveries/", "owen")
NOWHERE.add("places", "No endpoints.", ENDPOINTS, "owen")
AGENTS.add("register", "The next page shows its key", "/register-agent/", "adam")
AGENTS.add("settings", "Maximum risk", "/agents/riley/settings/", "adam")


def ask_for_more(gate: StoreGate) -> SettingsChange:
    """More money for Riley, once: each look of a scene asks for it."""
    waiting = setting_changes.list_waiting().first()
    if waiting is not None:
        return waiting
    less = AgentChange(daily_money={"USD": "200.00", "EUR": "50.00"})
    registry.change_agent(agent=gate.agent, change=less, by=gate.alma)
    more = AgentChange(
        daily_money={"USD": "2000.00", "EUR": "50.00"}, tools=[EVERY_TOOL]
    )
    change = registry.change_agent(
        agent=gate.agent, change=more, by=gate.alma, reason="It serves two shops now."
    )
    assert change is not None
    return change


@AGENTS.scene("budget", "Money, 24 hours", "adam")
def budget(gate: StoreGate) -> str:
    ask_for_more(gate)
    return "/agents/riley/"


@AGENTS.scene("change", "Waits for a second administrator", "adam")
def change_waiting(gate: StoreGate) -> str:
    return f"/agents/riley/changes/{ask_for_more(gate).pk}/"


@AGENTS.scene("change-overview", "Waits for a second administrator", "adam")
def change_on_overview(gate: StoreGate) -> str:
    ask_for_more(gate)
    return "/overview/"


@AGENTS.scene("change-own", "Another administrator must answer", "alma")
def change_own(gate: StoreGate) -> str:
    return f"/agents/riley/changes/{ask_for_more(gate).pk}/"


@AGENTS.scene("change-refused", "Say why", "adam")
def change_refused(gate: StoreGate) -> Submission:
    path = f"/agents/riley/changes/{ask_for_more(gate).pk}/"
    return Submission(path, {"answer": "refuse", "password": PASSWORD})


@AGENTS.scene("settings-wrong", "Correct the marked fields.", "adam")
def settings_wrong(gate: StoreGate) -> Submission:
    sent = {
        "owner": gate.owen.public_id,
        "every_tool": "on",
        "risk_ceiling": "critical",
        "daily_money": "1,500.00 USD",
        "password": PASSWORD,
    }
    return Submission("/agents/riley/settings/", sent)


AGENTS.add("keys", "To rotate", "/agents/riley/keys/", "owen")


@AGENTS.scene("revoke-key", "It cannot be undone", "owen")
def revoke_key(gate: StoreGate) -> str:
    """The question before a key ends."""
    keys.issue_key(agent=gate.agent, by=gate.owen)
    return f"/agents/riley/keys/{gate.agent.keys.latest('pk').pk}/revoke/"


@AGENTS.scene("register-misspelt", "Did you mean", "adam")
def register_misspelt(gate: StoreGate) -> Submission:
    """A tool that the policy does not have."""
    fields = {
        "slug": "ada",
        "name": "Ada",
        "tools": "add_labell",
        "risk_ceiling": "low",
    }
    return Submission(
        "/register-agent/",
        {**fields, "owner": gate.owen.public_id, "password": PASSWORD},
    )
