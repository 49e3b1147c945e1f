"""Who is on call, and drills: before the first one, while one runs, refused, and as the
people see it whom it asks."""

from __future__ import annotations

from datetime import timedelta

from journal import clock
from notifications.on_call import drills, shifts
from policies.choices import Risk
from reviews.models import NotificationDrill
from tests.gallery.scene import SceneGroup, Submission
from tests.gallery.store import StoreGate
from tests.hitl.tasks.draining import drain

ON_CALL = SceneGroup("on-call", shows=("reviews:on_call", "reviews:drill"))
PAGE = "/on-call/"


@ON_CALL.preparation
def ask_somebody(gate: StoreGate) -> None:
    gate.refund()


ON_CALL.add("none", "No shift is planned.", PAGE, "sue")


@ON_CALL.scene("planned", "End now", "sue")
def plan_shifts(gate: StoreGate) -> str:
    now = clock.now()
    for number, name in enumerate(("tom", "rita", "sam")):
        shifts.plan_shift(
            by=gate.sue,
            queue=gate.refund().queue,
            person=gate.people[name],
            begins_at=now + timedelta(hours=12 * number - 4),
            ends_at=now + timedelta(hours=12 * number + 8),
        )
    return PAGE


@ON_CALL.scene("drill-asked", "You saw the message", "tom")
def start_drill(gate: StoreGate) -> str:
    drill = drills.start_drill(
        person=gate.sue, queue=gate.refund().queue, risk=Risk.CRITICAL
    )
    drain("drill.started")
    return f"/drills/{drill.pk}/?by=email"


def drill_page(gate: StoreGate) -> str:
    return f"/drills/{NotificationDrill.objects.latest('pk').pk}/"


ON_CALL.add("drill", "1 of 1 person", drill_page, "sue")
ON_CALL.add("drills", "1 of 1 person on call", PAGE, "sue")
ON_CALL.add("reviewer", "1 of 1 person on call", PAGE)


@ON_CALL.scene("drill-refused", "less than an hour ago", "sue")
def start_again(gate: StoreGate) -> Submission:
    queue = gate.refund().queue.name
    return Submission("/drills/", {"queue": queue, "risk": "high"})


@ON_CALL.scene("shift-refused", "Choose an end after the beginning.", "sue")
def plan_backwards(gate: StoreGate) -> Submission:
    fields = {
        "queue": gate.refund().queue.name,
        "person": gate.rita.public_id,
        "begins_at": "2030-01-02T08:00",
        "ends_at": "2030-01-01T08:00",
    }
    return Submission(PAGE, fields)


@ON_CALL.scene("drill-over", "This drill is over.", "rita")
def end_drill(gate: StoreGate) -> str:
    past = clock.now() - timedelta(minutes=1)
    NotificationDrill.objects.update(ends_at=past)
    return drill_page(gate)
