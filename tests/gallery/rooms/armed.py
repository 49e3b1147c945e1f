"""Every panel that a verb opens, and the short forms beside the verbs."""

from __future__ import annotations

from typing import Any

from reviews.holds import take
from tests.factories import decide
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import Stage, path

from .refusals import panel

ROOM = Room("armed")
DECIDE = "reviews:decide"


def armed(request: Any, verdict: str) -> str:
    return f"{path(request, 'decide')}?arm={verdict}"


@ROOM.scene("approve", DECIDE, "Approve and run")
def approve(stage: Stage) -> str:
    return armed(stage.refund("59.00"), "approve")


@ROOM.scene("approve-medium", DECIDE, "Approve and run")
def approve_medium(stage: Stage) -> str:
    return armed(stage.label(), "approve")


@ROOM.scene("approve-mail", DECIDE, "Your reason")
def approve_mail(stage: Stage) -> str:
    return armed(stage.mail(), "approve")


@ROOM.scene("approve-critical", DECIDE, "1 person more will be asked", who="sue")
def approve_critical(stage: Stage) -> str:
    return armed(stage.address(), "approve")


@ROOM.scene("approve-second", DECIDE, "Approve and run", who="sam")
def approve_second(stage: Stage) -> str:
    return armed(decide(stage.refund("610.00", "78291"), stage.sue), "approve")


@ROOM.scene("modify", DECIDE, "Approve with my changes")
def modify(stage: Stage) -> str:
    return armed(stage.refund("59.00"), "modify")


@ROOM.scene("modify-lists", DECIDE, "Approve with my changes")
def modify_lists(stage: Stage) -> str:
    return armed(stage.mail(), "modify")


@ROOM.scene("modify-nested", DECIDE, "Modify, then approve", who="sue")
def modify_nested(stage: Stage) -> str:
    return armed(stage.address(), "modify")


@ROOM.scene("modify-checked", DECIDE, "This raises the tier")
def modify_checked(stage: Stage) -> Sent:
    stage.refund("59.00", order="78232")
    request = stage.refund("30.00", order="78232")
    typed = panel(request, "modify", amount="80.00")
    return Sent(f"{path(request, 'decide')}?check=1", typed | {"edit": "check"})


@ROOM.scene("reject", DECIDE, "Wrong target")
def reject(stage: Stage) -> str:
    return armed(stage.refund(), "reject")


@ROOM.scene("escalate", DECIDE, "Your own view")
def escalate(stage: Stage) -> str:
    return armed(stage.refund(), "escalate")


@ROOM.scene("from-draft", DECIDE, "Wrong target")
def from_draft(stage: Stage) -> str:
    request = stage.refund()
    stage.typed(request, reason_code="other")
    return armed(request, "reject")


def _held(stage: Stage) -> Any:
    request = stage.refund()
    take.take_hold(request_id=request.pk, person=stage.rita)
    return request


@ROOM.scene("break-hold", "reviews:break_hold", "holds this since", who="sue")
def break_hold(stage: Stage) -> str:
    return path(_held(stage), "hold", "break")


@ROOM.scene("hand-over", "reviews:hand_over", "To whom")
def hand_over(stage: Stage) -> str:
    return path(_held(stage), "hold", "give")


@ROOM.scene("leave", "reviews:queue_next", "The address does not fit")
def leave(stage: Stage) -> Sent:
    request = _held(stage)
    stage.refund()
    stage.typed(request, reason_code="other")
    return Sent("/queue/next/", {"from": request.pk, "step": "next"})
