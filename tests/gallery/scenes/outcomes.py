"""The review page of a request that is over; outcomes that nobody knows, alarms, and
what is undone or repaired."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import Page

from agents import repairs as threads
from agents import reversals
from agents.models import Thread
from journal import clock, errors, log
from reviews import deadlines
from reviews.alarms import standing
from reviews.choices import RepairChange, Scope, StopMode
from reviews.executions import claims, reconcile, record, redeem, repairs, settle
from reviews.grants import tokens
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Execution,
    Grant,
    Proposal,
    Repair,
    Stop,
)
from reviews.requests import proposals
from reviews.stops import scope, stops
from reviews.tool_services.executors import EffectOutcome, build_success
from tests import factories
from tests.browser.conftest import look
from tests.factories import decide
from tests.gallery.scene import SceneGroup, Submission, url
from tests.gallery.scenes.review import after, await_claim_button, newest, withdraw
from tests.gallery.store import HERE, StoreGate, change_order, policy
from tests.reviews import states
from tests.reviews.executions import attempts

OVER = SceneGroup("over")
ALARMS = SceneGroup(
    "alarms", shows=("reviews:alarms", "reviews:alarm", "reviews:alarm_close")
)
REPAIRS = SceneGroup(
    "mending",
    shows=("agents:reversal", "agents:repair_run", "agents:repair", "agents:repairs"),
)
PUBLISHED = build_success({"page": "https://example.org/sale"})


def never_told(gate: StoreGate) -> ApprovalRequest:
    """An effect that the agent began, and of which it cannot say what came."""
    request = gate.example("publish_page")
    token = tokens.load_token(gate.approve(request).grant_id)
    redeem.redeem_grant(token=token, agent=gate.agent.slug)
    begun = Execution.objects.get(proposal=request.proposal_id)
    record.record_outcome(
        execution_id=begun.pk,
        fence=begun.fence,
        outcome=EffectOutcome("unknown", code="lost", detail="No answer within 30 s."),
        actor=claims.EXECUTOR_ACTOR,
    )
    return request


def report_late(execution: Execution, fence: int) -> None:
    """The agent says that it is done, when that counts no more."""
    with pytest.raises(errors.StaleFence):
        attempts.reported(execution, fence, PUBLISHED)


def claim(execution: Execution) -> Execution:
    claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    return execution


def expire_grant(gate: StoreGate, execution: Execution) -> Execution:
    """The permission lapses before the worker takes the execution."""
    past = clock.now() - timedelta(seconds=1)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
    return gate.perform(execution)


approved = after(StoreGate.approve)
OVER.add(
    "recallable",
    "Undo approval",
    lambda gate: decide(gate.refund(), gate.rita, reason_code="verified"),
)
OVER.add("queued", "Authorized, starting", approved)


@OVER.scene("for-the-agent", "Authorized, waiting for the agent")
def for_the_agent(gate: StoreGate) -> ApprovalRequest:
    request = gate.example("publish_page")
    gate.approve(request)
    return request


OVER.add(
    "running",
    "Running since",
    after(lambda gate, request: claim(gate.approve(request))),
)
OVER.add("executed", "Completed", StoreGate.refunded)


@OVER.scene("followed", "then proposed")
def followed(gate: StoreGate) -> ApprovalRequest:
    request = decide(gate.refund("89.00"), gate.rita, "reject")
    gate.refund("44.50", thread=request.proposal.thread)
    return request


OVER.add("failed", "Nothing was changed.", lambda gate: gate.refunded("declined"))
OVER.add("lost", "Result unknown", never_told, "sue")


def run_moved(gate: StoreGate, request: ApprovalRequest) -> None:
    execution = gate.approve(request)
    change_order(request, "Returned to the depot")
    gate.perform(execution)


def run_late(gate: StoreGate, request: ApprovalRequest) -> None:
    expire_grant(gate, gate.approve(request))


def expire(gate: StoreGate, request: ApprovalRequest) -> None:
    factories.overdue(request)
    deadlines.expire_chunk()


OVER.add("refused", "Refused", after(run_moved))
OVER.add("too-late-to-run", "Refused", after(run_late))


@OVER.scene("rejected", "Rejected by Tom Example")
def rejected(gate: StoreGate) -> ApprovalRequest:
    reason = {
        "reason_code": "wrong_amount",
        "reason": "Only one of the two is missing.",
    }
    return decide(gate.refund(), gate.tom, "reject", **reason)


@OVER.scene("rejected-again", "Proposed 2 more times")
def rejected_again(gate: StoreGate) -> ApprovalRequest:
    request = rejected(gate)
    args, thread = request.proposal.current.args, request.proposal.thread
    for _ in range(2):
        gate.propose("process_refund", args, thread=thread)
    return request


OVER.add("withdrawn", "Withdrawn", after(withdraw))
OVER.add(
    "superseded",
    "Replaced by a later proposal",
    after(lambda gate, request: gate.label(supersedes=request.proposal_id)),
)
OVER.add("expired", "Nobody decided in time.", after(expire))


def expire_open(gate: StoreGate, page: Page) -> None:
    await_claim_button(page)
    factories.overdue(newest())
    look(page)


def decide_open(gate: StoreGate, page: Page) -> None:
    await_claim_button(page)
    decide(newest(), gate.tom, "reject", reason_code="unsafe")
    look(page)


OVER.add(
    "expired-open",
    "Your unsent note",
    after(StoreGate.save_draft),
    act=expire_open,
)
OVER.add("decided-open", "Rejected by Tom Example", StoreGate.refund, act=decide_open)


def withdraw_stopped(stop: Stop) -> Stop:
    """What the worker does about a stop."""
    for proposal_id in scope.list_proposals_to_withdraw(stop):
        proposals.withdraw_stopped_proposal(proposal_id=proposal_id, code="stopped")
    return stop


def stop_thread(gate: StoreGate, mode: StopMode) -> ApprovalRequest:
    request = gate.refund()
    key = stops.build_thread_key(gate.agent.slug, request.proposal.thread)
    stop = stops.create_stop(
        scope=Scope.THREAD,
        key=key,
        mode=mode,
        person=gate.sue,
        reason="It refunds what was delivered.",
    )
    withdraw_stopped(stop)
    return request


OVER.add(
    "stopped", "Withdrawn", lambda gate: stop_thread(gate, StopMode.STOPPED), "sue"
)
OVER.add("paused", "Pending", lambda gate: stop_thread(gate, StopMode.PAUSED), "sue")

FOUND = "The carrier had lost it; the customer was called. It was asked for again."


@ALARMS.preparation
def cause_alarms(gate: StoreGate) -> None:
    """One that went by, one that ran without a permission, one told too late."""
    expire_grant(gate, gate.approve(gate.refund("64.00")))
    report_late(gate.approve(gate.example("publish_page")), 1)
    lost = Execution.objects.get(proposal=never_told(gate).proposal_id)
    report_late(lost, lost.fence)


def alarm(kind: str) -> Alarm:
    return Alarm.objects.get(kind=kind)


def close(note: str) -> Submission:
    return Submission(url(alarm("never_executed"), "close"), {"note": note})


ALARMS.add("list", "Unassigned", "/alarms/", "sue")
ALARMS.add("list-none", "No matching alarms.", "/alarms/?kind=twice", "otto")
ALARMS.add("one", "Acknowledge", lambda gate: alarm("without_grant"), "sue")
ALARMS.add("late", "evidence only", lambda gate: alarm("late_report"), "sue")
ALARMS.add("close-refused", "Describe what you found.", lambda gate: close(" "), "sue")


@ALARMS.scene("closed", "by Sue Example: ", "otto")
def closed(gate: StoreGate) -> Alarm:
    standing_alarm = alarm("never_executed")
    if standing_alarm.status == "open":
        standing.acknowledge_alarm(alarm_id=standing_alarm.pk, person=gate.sue)
        standing.close_alarm(alarm_id=standing_alarm.pk, person=gate.sue, note=FOUND)
    return standing_alarm


ALARMS.add("closed-twice", "Your text", lambda gate: close(FOUND), "sam")


@REPAIRS.preparation
def look_up_pages(gate: StoreGate) -> None:
    """The store, in which what was published can be looked up."""
    document = policy()
    tool = document["tools"]["publish_page"]
    tool |= {"execution_class": "queryable", "look_up": {"path": f"{HERE}.find"}}
    gate.adopt(document)


def unknown(gate: StoreGate, looked: int = 0) -> Execution:
    execution = Execution.objects.get(proposal=never_told(gate).proposal_id)
    for _ in range(looked):
        past = clock.now() - timedelta(seconds=1)
        Execution.objects.filter(pk=execution.pk).update(ask_at=past)
        reconcile.look_up_if_due(execution.pk)
    return execution


def unknown_page(execution: Execution) -> str:
    return f"/unknown/{execution.pk}/"


REPAIRS.add(
    "unknown",
    "Look up now",
    lambda gate: unknown_page(unknown(gate, looked=2)),
    "sue",
)
REPAIRS.add("unknown-reader", "You cannot:", lambda gate: unknown_page(unknown(gate)))


@REPAIRS.scene("unknown-late", "Your answer was not recorded.", "sue")
def unknown_late(gate: StoreGate) -> Submission:
    execution = unknown(gate)
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sam, happened=True, reason="I see it."
    )
    sent = {"happened": "no", "reason": "It is not on the site."}
    return Submission(unknown_page(execution), sent)


@REPAIRS.scene("unknown-reported", "Evidence only", "sue")
def unknown_reported(gate: StoreGate) -> str:
    execution = unknown(gate)
    report_late(execution, execution.fence)
    return unknown_page(execution)


@REPAIRS.scene("unknown-list", "Resolved", "sue")
def unknown_list(gate: StoreGate) -> str:
    unknown(gate, looked=1)
    return "/unknown/"


def undo(gate: StoreGate, execution: Execution) -> Proposal:
    why = "The label names another parcel."
    return reversals.propose_reversal(
        execution_id=execution.pk, person=gate.tom, reason=why
    )


def reversal_page(execution: Execution) -> str:
    return f"/reversals/{execution.pk}/"


REPAIRS.add("reversal", "Proposed action", lambda gate: reversal_page(gate.labelled()))
REPAIRS.add(
    "reversal-refused",
    "Enter a reason.",
    lambda gate: Submission(reversal_page(gate.labelled()), {"reason": " "}),
)


@REPAIRS.scene("reversal-twice", "This effect is already being undone.")
def reversal_twice(gate: StoreGate) -> str:
    execution = gate.labelled()
    undo(gate, execution)
    return reversal_page(execution)


@REPAIRS.scene("reversal-asked", "Reverses:")
def reversal_asked(gate: StoreGate) -> ApprovalRequest:
    return ApprovalRequest.objects.get(proposal=undo(gate, gate.labelled()))


@REPAIRS.scene("announced-undone", "Reversal executed")
def announced_undone(gate: StoreGate) -> str:
    gate.labelled()
    undo(gate, gate.labelled())
    gate.perform(gate.approve(reversal_asked(gate)))
    return "/announced/"


def stuck(gate: StoreGate) -> Execution:
    """Taken by a worker that never came back, in a thread with a checkpoint."""
    return states.abandon(claim(gate.approve(gate.refund())))


def repair_page(gate: StoreGate) -> str:
    return f"/threads/riley/{stuck(gate).proposal.thread}/repair/"


def proposed(gate: StoreGate) -> Repair:
    return states.repair_of(stuck(gate), gate)


REPAIRS.add("repair-run", "What should be repaired?", repair_page, "sue")


@REPAIRS.scene("repair-run-refused", "Nothing was proposed.", "sue")
def repair_run_refused(gate: StoreGate) -> Submission:
    sent = {"change": "checkpoint", "resume_at": "reply", "state": "{", "reason": ""}
    return Submission(repair_page(gate), sent)


REPAIRS.add("repair", "Confirm the repair", proposed, "adam")


@REPAIRS.scene("repair-checkpoint", "state.intent", "sue")
def repair_checkpoint(gate: StoreGate) -> Repair:
    thread = Thread.objects.get(name=stuck(gate).proposal.thread)
    return threads.propose_repair(
        agent=thread.agent,
        name=thread.name,
        change=RepairChange.CHECKPOINT,
        person=gate.sue,
        reason="It goes on at a refund that was made by hand.",
        resume_at="reply",
        state='{"intent": "reply", "steps": 5, "agenda": ["reply"]}',
    )


@REPAIRS.scene("repair-refused", "Enter a reason. The audit log keeps it.", "adam")
def repair_refused(gate: StoreGate) -> Submission:
    return Submission(url(proposed(gate)), {"do": "refuse", "answer": ""})


@REPAIRS.scene("repairs", "Awaiting confirmation", "otto")
def repairs_list(gate: StoreGate) -> str:
    repairs.confirm_repair(repair_id=proposed(gate).pk, person=gate.adam)
    return "/repairs/"
