"""After a backup was put back: what is known, and the two people who look."""

from __future__ import annotations

from journal import epochs
from reviews import restores
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import Stage

RESTORED = Room("restored")
PAGE, URL = "reviews:restored", "/restored/"
WHY = "The disk of db-2 was lost; last night's backup was put back."

RESTORED.page("calm", PAGE, URL, "Everything runs.", who="sue")


@RESTORED.scene("first", PAGE, "You are the first.", who="sue")
def first(stage: Stage) -> str:
    stage.refund()
    restores.notice(why=epochs.BEHIND)
    return URL


@RESTORED.scene("refused", PAGE, "Write something first.", who="sue")
def refused(stage: Stage) -> Sent:
    return Sent(URL, {"reason": " "})


@RESTORED.scene("second", PAGE, "You are the second.", who="sam")
def second(stage: Stage) -> str:
    restores.look_at(person=stage.sue, reason=WHY)
    return URL


@RESTORED.scene("begun", PAGE, "Everything runs.", who="otto")
def begun(stage: Stage) -> str:
    restores.look_at(person=stage.sam, reason="Compared with the provider.")
    return URL
