"""What nobody knows, what is undone, and what is mended by two people."""

from __future__ import annotations

from datetime import timedelta

from agents import repairs as runs
from agents import reversals
from agents.models import Thread
from journal import clock, log
from reviews.choices import RepairChange
from reviews.executions import claims, reconcile, repairs, run, settle
from reviews.models import ApprovalRequest, Execution, Proposal, Repair
from tests import factories
from tests.factories import decide
from tests.gallery import shop
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import Stage, path

from .alarms import reported
from .over import approved, never_told

ROOM = Room("mending")
ONE, REVERSAL = "reviews:unknown_one", "agents:reversal"
RUN, REPAIR = "agents:repair_run", "agents:repair"
WHY = "The label names another parcel."


@ROOM.furnished
def asked(stage: Stage) -> None:
    """The store, in which what was published can be looked up."""
    document = shop.policy()
    page = document["tools"]["publish_page"]
    page |= {"execution_class": "queryable", "look_up": {"path": f"{shop.HERE}.find"}}
    factories.policy(stage.gate.people, document)


def unknown(stage: Stage, looked: int = 0) -> Execution:
    execution = Execution.objects.get(proposal=never_told(stage).proposal_id)
    for _ in range(looked):
        past = clock.now() - timedelta(seconds=1)
        Execution.objects.filter(pk=execution.pk).update(ask_at=past)
        reconcile.look_up_if_due(execution.pk)
    return execution


@ROOM.scene("unknown", ONE, "Look it up again", who="sue")
def unknown_one(stage: Stage) -> str:
    return f"/unknown/{unknown(stage, looked=2).pk}/"


@ROOM.scene("unknown-reader", ONE, "You cannot:")
def unknown_reader(stage: Stage) -> str:
    return f"/unknown/{unknown(stage).pk}/"


@ROOM.scene("unknown-late", ONE, "Your answer was not recorded.", who="sue")
def unknown_late(stage: Stage) -> Sent:
    execution = unknown(stage)
    settle.settle_unknown(
        execution_id=execution.pk, person=stage.sam, happened=True, reason="I see it."
    )
    sent = {"happened": "no", "reason": "It is not on the site."}
    return Sent(f"/unknown/{execution.pk}/", sent)


@ROOM.scene("unknown-reported", ONE, "Evidence.", who="sue")
def unknown_reported(stage: Stage) -> str:
    execution = unknown(stage)
    reported(execution, execution.fence, page="https://example.org/sale")
    return f"/unknown/{execution.pk}/"


@ROOM.scene("unknown-list", "reviews:unknown", "Known by now", who="sue")
def unknown_list(stage: Stage) -> str:
    unknown(stage, looked=1)
    return "/unknown/"


def labelled(stage: Stage) -> Execution:
    """What ran under NOTIFY, and can be undone."""
    args = {"order_id": "78291", "label": "carrier claim"}
    proposal = stage.asked("add_label", args)
    execution: Execution = proposal.executions.get()
    run.run_execution(execution.pk)
    return execution


def undone(stage: Stage) -> tuple[Execution, Proposal]:
    execution = labelled(stage)
    made = reversals.propose_reversal(
        execution_id=execution.pk, person=stage.tom, reason=WHY
    )
    return execution, made


@ROOM.scene("reversal", REVERSAL, "What would be proposed")
def reversal(stage: Stage) -> str:
    return f"/reversals/{labelled(stage).pk}/"


@ROOM.scene("reversal-refused", REVERSAL, "Say why.")
def reversal_refused(stage: Stage) -> Sent:
    return Sent(f"/reversals/{labelled(stage).pk}/", {"reason": " "})


@ROOM.scene("reversal-twice", REVERSAL, "It is being undone already.")
def reversal_twice(stage: Stage) -> str:
    return f"/reversals/{undone(stage)[0].pk}/"


@ROOM.scene("reversal-asked", "reviews:request_detail", "Reverses:")
def reversal_asked(stage: Stage) -> str:
    return path(ApprovalRequest.objects.get(proposal=undone(stage)[1]))


@ROOM.scene("announced-undone", "reviews:announced", "Reversal executed")
def announced_undone(stage: Stage) -> str:
    labelled(stage)
    undone(stage)
    request = ApprovalRequest.objects.get(proposal=undone(stage)[1])
    decide(request, stage.rita, reason_code="verified")
    factories.window_over(request)
    run.run_execution(Execution.objects.get(proposal=request.proposal_id).pk)
    return "/announced/"


def stuck(stage: Stage) -> Execution:
    """Taken by a worker that never came back, in a run with a checkpoint."""
    execution = approved(stage.refund(), stage)
    claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    lease = clock.now() - timedelta(minutes=6)
    Execution.objects.filter(pk=execution.pk).update(lease_until=lease)
    return execution


def run_of(execution: Execution) -> str:
    return f"/threads/riley/{execution.proposal.thread}/repair/"


@ROOM.scene("repair-run", RUN, "What is to be mended?", who="sue")
def repair_run(stage: Stage) -> str:
    return run_of(stuck(stage))


@ROOM.scene("repair-run-refused", RUN, "Nothing was proposed.", who="sue")
def repair_run_refused(stage: Stage) -> Sent:
    sent = {"change": "checkpoint", "resume_at": "reply", "state": "{", "reason": ""}
    return Sent(run_of(stuck(stage)), sent)


def proposed(stage: Stage) -> Repair:
    return repairs.propose_repair(
        execution_id=stuck(stage).pk,
        change=RepairChange.SAY_UNKNOWN,
        person=stage.sue,
        reason="Its worker's machine is gone, and the sweep passes it over.",
    )


@ROOM.scene("repair", REPAIR, "Confirm the repair", who="adam")
def repair(stage: Stage) -> str:
    return f"/repairs/{proposed(stage).pk}/"


@ROOM.scene("repair-checkpoint", REPAIR, "state.intent", who="sue")
def repair_checkpoint(stage: Stage) -> str:
    thread = Thread.objects.get(name=stuck(stage).proposal.thread)
    made = runs.propose_repair(
        agent=thread.agent,
        name=thread.name,
        change=RepairChange.CHECKPOINT,
        person=stage.sue,
        reason="It goes on at a refund that was made by hand.",
        resume_at="reply",
        state='{"intent": "reply", "steps": 5, "agenda": ["reply"]}',
    )
    return f"/repairs/{made.pk}/"


@ROOM.scene("repair-refused", REPAIR, "Say why not.", who="adam")
def repair_refused(stage: Stage) -> Sent:
    return Sent(f"/repairs/{proposed(stage).pk}/", {"do": "refuse", "answer": ""})


@ROOM.scene("repairs", "agents:repairs", "Waits for a second person", who="otto")
def repairs_list(stage: Stage) -> str:
    done = proposed(stage)
    repairs.confirm_repair(repair_id=done.pk, person=stage.adam)
    return "/repairs/"
