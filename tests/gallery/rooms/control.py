"""Escalations, Stop, the agents and their runs."""

from __future__ import annotations

from journal import log
from reviews.choices import Scope, StopMode
from reviews.decisions import returns
from reviews.decisions.submission import PageEvidence
from reviews.executions import claims, run
from reviews.models import ApprovalRequest, Stop
from reviews.stops import stops
from tests import factories
from tests.factories import decide
from tests.gallery import shop
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import Stage, path

from .over import approved, enforced, ran

UP, CONTROL, AGENTS = Room("up"), Room("stop"), Room("agents")
ESCALATION, STOP = "reviews:escalation", "reviews:stop"
NOTE = "The photograph shows another door."


def escalated(stage: Stage, *flags: str) -> ApprovalRequest:
    page = PageEvidence(flags=flags)
    said = {"reason_code": "unclear", "reason": NOTE, "page": page}
    return decide(stage.refund(), stage.rita, "escalate", **said)


@UP.furnished
def furnish(stage: Stage) -> None:
    """What was handed up, a disagreement, and what expired."""
    escalated(stage)
    escalated(stage)
    stage.address()
    split = stage.refund("610.00", "78291")
    decide(split, stage.sue, reason_code="verified", reason="I rang them.")
    decide(split, stage.sam, "reject", reason_code="unsafe", reason="Wrong account.")
    late = stage.refund()
    factories.overdue(late)


UP.page("list", "reviews:escalations", "/escalations/", "Escalations", who="sue")
UP.page("list-reviewer", "reviews:escalations", "/escalations/", "Escalations")


@UP.scene("panel", ESCALATION, "Return with guidance…", who="sue")
def panel(stage: Stage) -> str:
    return f"/escalations/{escalated(stage, 'leans_reject').pk}/"


@UP.scene("shown", "reviews:show_view", "They would reject it.", who="sue")
def shown(stage: Stage) -> Sent:
    request = escalated(stage, "leans_reject")
    return Sent(path(request, "view"), {})


@UP.scene("return-refused", "reviews:give_back", "Write what they", who="sue")
def return_refused(stage: Stage) -> Sent:
    return Sent(path(escalated(stage), "return"), {"guidance": " "})


@UP.scene("assign-refused", "reviews:assign", "Choose who takes it over.", who="sue")
def assign_refused(stage: Stage) -> Sent:
    return Sent(path(escalated(stage), "assign"), {"to": ""})


@UP.scene("assigned", ESCALATION, "Given to", who="sam")
def assigned(stage: Stage) -> str:
    request = escalated(stage)
    returns.assign_request(request_id=request.pk, person=stage.sue, to=stage.sam)
    return f"/escalations/{request.pk}/"


@UP.scene("close-refused", "reviews:arbitrate", "Write what this taught.", who="sue")
def close_refused(stage: Stage) -> Sent:
    split = ApprovalRequest.objects.filter(status="rejected").latest("opened_at")
    return Sent(path(split, "arbitrate"), {"text": ""})


@CONTROL.furnished
def at_work(stage: Stage) -> None:
    """Two runs, of which one has begun an effect and has another queued."""
    stage.refund(thread="ticket-7")
    approved(stage.refund(thread="ticket-7"), stage)
    begun = approved(stage.refund(thread="ticket-7"), stage)
    claims.claim_execution(execution_id=begun.pk, actor=log.SYSTEM)
    stage.label(thread="ticket-8")


RUN = "/threads/riley/ticket-7/stop/"
CONTROL.page("run", "agents:stop_thread", RUN, "Stop now", who="sue")
CONTROL.page(
    "run-pause", "agents:stop_thread", f"{RUN}?mode=paused", "Pause", who="sue"
)
CONTROL.page("run-reviewer", "agents:stop_thread", RUN, "Pause now")
CONTROL.page("agent", "agents:stop_agent", "/agents/riley/stop/", "Stop", who="owen")
CONTROL.page("all", STOP, "/stop/?target=everything:", "all agents", who="adam")
CONTROL.page("tool", STOP, "/stop/?tool=process_refund", "Stop", who="adam")
CONTROL.page("at-work", STOP, "/stop/", "What is at work")
CONTROL.page("nothing-to-stop", STOP, "/stop/", "Switched off now", who="otto")


@CONTROL.scene("refused", STOP, "Nothing was stopped.", who="sue")
def refused(stage: Stage) -> Sent:
    return Sent("/stop/", {"target": "agent:riley", "mode": "stopped", "reason": ""})


def stop(
    stage: Stage, scope: Scope, key: str, mode: StopMode = StopMode.STOPPED
) -> Stop:
    who = stage.adam if scope is Scope.EVERYTHING else stage.sue
    reason = "It refunds what was delivered."
    return stops.create_stop(scope=scope, key=key, mode=mode, person=who, reason=reason)


@CONTROL.scene("halting", "reviews:stopped", "Halting", who="sue")
def halting(stage: Stage) -> str:
    return f"/stop/{stop(stage, Scope.THREAD, 'riley/ticket-7').pk}/"


@CONTROL.scene("stopped-twice", "agents:stop_thread", "off already", who="sam")
def stopped_twice(stage: Stage) -> Sent:
    said = {"target": "thread:riley/ticket-7", "mode": "stopped"}
    return Sent(RUN, {**said, "reason": "It refunds each parcel twice."})


@CONTROL.scene("halted", "reviews:stopped", "Halted", who="sam")
def halted(stage: Stage) -> str:
    off = stop(stage, Scope.THREAD, "riley/ticket-8")
    return f"/stop/{enforced(off).pk}/"


@CONTROL.scene("lift-refused", "reviews:lift", "Say why.", who="sam")
def lift_refused(stage: Stage) -> Sent:
    off = Stop.objects.latest("pk")
    return Sent(f"/stop/{off.pk}/lift/", {"reason": ""})


@CONTROL.scene("lifted-twice", "reviews:lift", "on again already", who="sam")
def lifted_twice(stage: Stage) -> Sent:
    off = stop(stage, Scope.TOOL, "add_label")
    stops.lift_stop(stop_id=off.pk, person=stage.sue, reason="It was a drill.")
    return Sent(f"/stop/{off.pk}/lift/", {"reason": "The label was right after all."})


@CONTROL.scene("switches", STOP, "Switched off now", who="sue")
def switches(stage: Stage) -> str:
    stop(stage, Scope.TOOL, "send_email", mode=StopMode.PAUSED)
    return "/stop/"


@CONTROL.scene("half-lifted", "reviews:stopped", "A second must agree", who="sue")
def half_lifted(stage: Stage) -> str:
    off = stop(stage, Scope.EVERYTHING, "")
    stops.lift_stop(stop_id=off.pk, person=stage.sam, reason="It was a drill.")
    return f"/stop/{off.pk}/"


@AGENTS.furnished
def a_day(stage: Stage) -> None:
    """An agent with a day behind it, and one without."""
    factories.agent(stage.owen, "robin", tools=["add_label"])
    ran(stage)
    ran(stage, "declined")
    stage.refund(thread="ticket-7")
    stage.label(thread="ticket-7")
    decide(stage.refund("24.00"), stage.rita, "reject", reason_code="unsafe")
    stage.asked("no_such_tool", {}, thread="ticket-7")
    approved(stage.refund(thread="ticket-7"), stage)


AGENT, THREAD = "agents:agent", "agents:thread"
AGENTS.page("list", "agents:agents", "/agents/", "Robin", who="sue")
AGENTS.page("one", AGENT, "/agents/riley/", "Riley", who="sue")
AGENTS.page("one-owner", AGENT, "/agents/riley/", "Riley", who="owen")
AGENTS.page("one-idle", AGENT, "/agents/robin/", "Robin", who="owen")
AGENTS.page("run", THREAD, "/threads/riley/ticket-7/", "ticket-7")
AGENTS.page("run-auditor", THREAD, "/threads/riley/ticket-7/", "ticket-7", who="otto")
AGENTS.page("policies", "policies:policies", "/policies/", "Version", who="adam")
AGENTS.page("policy", "policies:policy", "/policies/2/", "Refund", who="adam")


@AGENTS.scene("run-failed", THREAD, "Try again")
def run_failed(stage: Stage) -> str:
    """What asked nobody, and is known not to have happened."""
    args = {"order_id": "78291", "label": "carrier claim"}
    made = stage.asked("add_label", args)
    shop.NOW["effects"] = "declined"
    run.run_execution(made.executions.get().pk)
    shop.NOW["effects"] = "done"
    return f"/threads/riley/{made.thread}/"


@AGENTS.scene("run-stopped", THREAD, "Stopped", who="sue")
def run_stopped(stage: Stage) -> str:
    request = stage.refund()
    key = stops.build_thread_key(stage.agent.slug, request.proposal.thread)
    stop(stage, Scope.THREAD, key)
    return f"/threads/riley/{request.proposal.thread}/"


@AGENTS.scene("run-retried", THREAD, "attempt 2 of 5")
def run_retried(stage: Stage) -> str:
    path = ran(stage, "busy")
    request = ApprovalRequest.objects.get(pk=path.split("/")[2])
    return f"/threads/riley/{request.proposal.thread}/"
