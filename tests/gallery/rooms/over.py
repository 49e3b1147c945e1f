"""The review page of what is over: held back, run, failed, lost, refused, gone."""

from __future__ import annotations

from datetime import timedelta

from playwright.sync_api import Page, expect

from journal import clock, log
from reviews import deadlines
from reviews.choices import Scope, StopMode
from reviews.executions import claims, record, redeem, run
from reviews.grants import grants
from reviews.models import ApprovalRequest, Execution, Grant, Stop
from reviews.requests import proposals
from reviews.stops import scope, stops
from reviews.tool_services.executors import EffectOutcome
from tests import factories
from tests.browser.conftest import look
from tests.factories import decide
from tests.gallery import shop
from tests.gallery.scene import Room
from tests.gallery.stage import Stage, path
from tests.reviews import states

from .review import MINE, REVIEW, newest

ROOM = Room("over")


def approved(request: ApprovalRequest, stage: Stage) -> Execution:
    """The execution of what Rita approved, its recall window past."""
    decide(request, stage.rita, reason_code="verified")
    factories.window_over(request)
    return Execution.objects.get(proposal=request.proposal_id)


def ran(stage: Stage, effects: str = "done") -> str:
    request = stage.refund("59.00")
    execution = approved(request, stage)
    shop.NOW["effects"] = effects
    run.run_execution(execution.pk)
    shop.NOW["effects"] = "done"
    return path(request)


def never_told(stage: Stage) -> ApprovalRequest:
    """An effect that the agent began, and of which it cannot say what came."""
    request = stage.kind("publish_page")
    token = grants.load_token(approved(request, stage).grant_id)
    redeem.redeem_grant(token=token, agent=request.proposal.agent)
    begun = Execution.objects.get(proposal=request.proposal_id)
    record.record_outcome(
        execution_id=begun.pk,
        fence=begun.fence,
        outcome=EffectOutcome("unknown", code="lost", detail="No answer within 30 s."),
        actor=claims.EXECUTOR_ACTOR,
    )
    return request


@ROOM.scene("recallable", REVIEW, "Recall")
def recallable(stage: Stage) -> str:
    return path(decide(stage.refund(), stage.rita, reason_code="verified"))


@ROOM.scene("queued", REVIEW, "Approved, starts now")
def queued(stage: Stage) -> str:
    request = stage.refund()
    approved(request, stage)
    return path(request)


@ROOM.scene("for-the-agent", REVIEW, "Authorized, waits for the agent")
def for_the_agent(stage: Stage) -> str:
    request = stage.kind("publish_page")
    approved(request, stage)
    return path(request)


@ROOM.scene("running", REVIEW, "Running since")
def running(stage: Stage) -> str:
    request = stage.refund()
    claims.claim_execution(execution_id=approved(request, stage).pk, actor=log.SYSTEM)
    return path(request)


@ROOM.scene("executed", REVIEW, "Done")
def executed(stage: Stage) -> str:
    return ran(stage)


@ROOM.scene("followed", REVIEW, "then proposed")
def followed(stage: Stage) -> str:
    request = decide(stage.refund("89.00"), stage.rita, "reject")
    stage.refund("44.50", thread=request.proposal.thread)
    return path(request)


@ROOM.scene("failed", REVIEW, "Nothing was changed.")
def failed(stage: Stage) -> str:
    return ran(stage, "declined")


@ROOM.scene("lost", REVIEW, "Outcome unknown.", who="sue")
def lost(stage: Stage) -> str:
    return path(never_told(stage))


@ROOM.scene("refused", REVIEW, "Refused")
def refused(stage: Stage) -> str:
    request = stage.refund()
    execution = approved(request, stage)
    shop.changed(request.sealed.revision.args["order_id"], "Returned to the depot")
    run.run_execution(execution.pk)
    return path(request)


@ROOM.scene("too-late-to-run", REVIEW, "Refused")
def too_late_to_run(stage: Stage) -> str:
    request = stage.refund()
    execution = approved(request, stage)
    past = clock.now() - timedelta(seconds=1)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
    run.run_execution(execution.pk)
    return path(request)


@ROOM.scene("rejected", REVIEW, "Rejected by Tom Example")
def rejected(stage: Stage) -> str:
    request = stage.refund()
    said = {"reason_code": "wrong_amount", "reason": "Only one of the two is missing."}
    return path(decide(request, stage.tom, "reject", **said))


@ROOM.scene("withdrawn", REVIEW, "Withdrawn")
def withdrawn(stage: Stage) -> str:
    request = stage.refund()
    states.withdraw(stage.agent, request.proposal)
    return path(request)


@ROOM.scene("superseded", REVIEW, "Replaced by a later proposal")
def superseded(stage: Stage) -> str:
    request = stage.refund()
    stage.label(supersedes=request.proposal_id)
    return path(request)


@ROOM.scene("expired", REVIEW, "Nobody answered in time.")
def expired(stage: Stage) -> str:
    request = stage.refund()
    factories.overdue(request)
    deadlines.expire_chunk()
    return path(request)


def _expired(stage: Stage, page: Page) -> None:
    expect(page.get_by_test_id("state")).to_contain_text(MINE)
    factories.overdue(newest())
    look(page)


@ROOM.scene("expired-open", REVIEW, "Add my note to the record", act=_expired)
def expired_open(stage: Stage) -> str:
    request = stage.refund()
    stage.typed(request)
    return path(request)


def _decided(stage: Stage, page: Page) -> None:
    expect(page.get_by_test_id("state")).to_contain_text(MINE)
    page.keyboard.press("c")
    expect(page.get_by_test_id("state")).to_contain_text("Waiting")
    decide(newest(), stage.tom, "reject", reason_code="unsafe")
    look(page)


@ROOM.scene("decided-open", REVIEW, "Rejected by Tom Example", act=_decided)
def decided_open(stage: Stage) -> str:
    return path(stage.refund())


@ROOM.scene("stopped", REVIEW, "Withdrawn", who="sue")
def stopped(stage: Stage) -> str:
    return _stopped(stage, StopMode.STOPPED)


@ROOM.scene("paused", REVIEW, "Waiting", who="sue")
def paused(stage: Stage) -> str:
    return _stopped(stage, StopMode.PAUSED)


def _stopped(stage: Stage, mode: StopMode) -> str:
    request = stage.refund()
    key = stops.build_thread_key(stage.agent.slug, request.proposal.thread)
    reason = "It refunds what was delivered."
    enforced(
        stops.create_stop(
            scope=Scope.THREAD, key=key, mode=mode, person=stage.sue, reason=reason
        )
    )
    return path(request)


def enforced(stop: Stop) -> Stop:
    """What the worker does about a stop."""
    for proposal_id in scope.list_proposals_to_withdraw(stop):
        proposals.withdraw_stopped_proposal(proposal_id=proposal_id, code="stopped")
    return stop
