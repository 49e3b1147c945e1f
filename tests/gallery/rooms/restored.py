"""After a backup was put back: what is known, and the two people who look."""

from __future__ import annotations

from journal import high_water_mark, restore_epochs
from reviews import recovery, standstills
from reviews.models import ApprovalRequest
from tests.factories import decide
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import Stage, path

RESTORED = Room("restored")
PAGE, URL = "reviews:restored", "/restored/"
QUEUE, REQUEST = "reviews:queue", "reviews:request_detail"
WHY = "The disk of db-2 was lost; last night's backup was put back."

RESTORED.page("calm", PAGE, URL, "Everything runs.", who="sue")


@RESTORED.scene("unread", PAGE, "Mend the disk.", who="sue")
def unread(stage: Stage) -> str:
    high_water_mark.build_mark_path().unlink(missing_ok=True)
    high_water_mark.build_mark_path().mkdir()
    restore_epochs.update_status()
    return URL


RESTORED.page("unread-said", QUEUE, "/queue/", "Everything goes on by itself")


@RESTORED.scene("first", PAGE, "You are the first.", who="sue")
def first(stage: Stage) -> str:
    high_water_mark.build_mark_path().rmdir()
    stage.refund()
    stage.refund("12.00")
    recovery.announce_restore(why=restore_epochs.BEHIND)
    restore_epochs.update_status()
    return URL


RESTORED.page("said", QUEUE, "/queue/", "Nothing is decided or proposed either.")


@RESTORED.scene("refused", PAGE, "Write something first.", who="sue")
def refused(stage: Stage) -> Sent:
    return Sent(URL, {"reason": " "})


@RESTORED.scene("second", PAGE, "You are the second.", who="sam")
def second(stage: Stage) -> str:
    recovery.confirm_restore(person=stage.sue, reason=WHY)
    return URL


@RESTORED.scene("begun", PAGE, "Everything runs.", who="otto")
def begun(stage: Stage) -> str:
    recovery.confirm_restore(person=stage.sam, reason="Compared with the provider.")
    restore_epochs.update_status()
    return URL


@RESTORED.scene("came-back", REQUEST, "What can be looked up is looked up first")
def came_back(stage: Stage) -> str:
    return path(ApprovalRequest.objects.earliest("opened_at"))


@RESTORED.scene("came-back-closed", REQUEST, "Compare with the service before it is")
def came_back_closed(stage: Stage) -> str:
    request = ApprovalRequest.objects.latest("opened_at")
    decide(request, stage.rita, "reject", reason_code="unsafe")
    return path(request)


@RESTORED.scene("standstill", QUEUE, "Background work has stopped.", who="sue")
def standstill(stage: Stage) -> str:
    standstills.known.effects, standstills.known.every_sweep = 130.0, True
    standstills.known.sweeps = ("reviews.tasks.expire_due",)
    return "/queue/"


RESTORED.page("standstill-read", QUEUE, "/queue/", "Tell whoever operates Holdpoint.")


@RESTORED.scene("late", QUEUE, "Deadlines, reminders or checks", who="sue")
def late(stage: Stage) -> str:
    standstills.known.effects, standstills.known.every_sweep = 0.0, False
    return "/queue/"


@RESTORED.scene("calm-again", PAGE, "Everything runs.", who="sue")
def calm_again(stage: Stage) -> str:
    standstills.known.sweeps = ()
    return URL
