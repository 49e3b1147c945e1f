"""Standing alarms: each kind that an agent or a dead worker can cause, and what people
do with them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from journal import clock, errors, log
from reviews.alarms import standing
from reviews.executions import redeem, run
from reviews.models import Alarm, Execution, Grant
from reviews.tool_services import executors
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import Stage

from .over import approved, never_told

ROOM = Room("alarms")
ONE = "reviews:alarm"
NOTE = "The carrier had lost it; the customer was called. It was asked for again."


def reported(execution: Execution, fence: int, **result: str) -> None:
    """The agent says that it is done, when that counts no more."""
    with pytest.raises(errors.StaleFence):
        redeem.report_outcome(
            execution=execution,
            fence=fence,
            action_hash=execution.grant.action_hash,
            outcome=executors.build_success(result),
            actor=log.Actor("agent", execution.proposal.agent),
        )


@ROOM.furnished
def furnish(stage: Stage) -> None:
    """One that went by, one that ran without a permission, one told too late."""
    late = approved(stage.refund("64.00"), stage)
    past = clock.now() - timedelta(minutes=2)
    Grant.objects.filter(pk=late.grant_id).update(expires_at=past)
    run.run_execution(late.pk)
    free = stage.kind("publish_page")
    reported(approved(free, stage), 1, page="https://example.org/sale")
    lost = Execution.objects.get(proposal=never_told(stage).proposal_id)
    reported(lost, lost.fence, page="https://example.org/sale")


def one(kind: str) -> Alarm:
    return Alarm.objects.get(kind=kind)


ROOM.page("list", "reviews:alarms", "/alarms/", "Nobody looks at it", who="sue")
ROOM.page(
    "list-none", "reviews:alarms", "/alarms/?kind=twice", "No alarm fits.", who="otto"
)


@ROOM.scene("one", ONE, "I look at it", who="sue")
def one_open(stage: Stage) -> str:
    return f"/alarms/{one('without_grant').pk}/"


@ROOM.scene("late", ONE, "Evidence.", who="sue")
def one_late(stage: Stage) -> str:
    return f"/alarms/{one('late_report').pk}/"


@ROOM.scene("close-refused", "reviews:alarm_close", "Say what you found.", who="sue")
def close_refused(stage: Stage) -> Sent:
    return Sent(f"/alarms/{one('never_executed').pk}/close/", {"note": " "})


@ROOM.scene("closed", ONE, "by Sue Example: ", who="otto")
def one_closed(stage: Stage) -> str:
    alarm = one("never_executed")
    if alarm.status == "open":
        standing.acknowledge_alarm(alarm_id=alarm.pk, person=stage.sue)
        standing.close_alarm(alarm_id=alarm.pk, person=stage.sue, note=NOTE)
    return f"/alarms/{alarm.pk}/"


@ROOM.scene("closed-twice", "reviews:alarm_close", "What you wrote", who="sam")
def closed_twice(stage: Stage) -> Sent:
    return Sent(f"/alarms/{one('never_executed').pk}/close/", {"note": NOTE})
