"""The queue in each tab and state, and the other lists of what waits or ran."""

from __future__ import annotations

from playwright.sync_api import Page

from reviews import deadlines
from reviews.executions import run
from reviews.holds import take
from reviews.models import Execution
from reviews.people import preferences
from tests import factories
from tests.factories import decide
from tests.gallery.scene import Room, Sent
from tests.gallery.stage import Stage

from .over import approved, never_told

ROOM = Room("lists")
QUEUE = "reviews:queue"


@ROOM.furnished
def furnish(stage: Stage) -> None:
    """One of everything that a list shows."""
    stage.refund("59.00")
    stage.mail()
    stage.label()
    stage.kind("run_sql")
    stage.refund("610.00", "78291")
    for _ in range(3):
        stage.refund("15.00", order="78290", thread="ticket-7")
    take.take_hold(request_id=stage.refund("22.00").pk, person=stage.rita)
    take.take_hold(request_id=stage.refund("23.00").pk, person=stage.tom)
    decide(stage.refund("24.00"), stage.rita, "escalate", reason_code="unclear")
    decide(stage.refund("25.00"), stage.rita)
    decide(stage.refund("26.00"), stage.rita, "reject", reason_code="unsafe")
    run.run_execution(approved(stage.refund("27.00"), stage).pk)
    late = stage.refund("28.00")
    factories.overdue(late)
    deadlines.expire_chunk()
    for label in ("vip", "carrier claim", "call back"):
        args = {"order_id": "78291", "label": label}
        made = stage.asked("add_label", args)
        run.run_execution(Execution.objects.get(proposal=made).pk)
    preferences.create_saved_view(
        person=stage.rita, page="queue", name="big refunds", query="risk=high"
    )


ROOM.page("open", QUEUE, "/queue/", "59.00", who="rita")
ROOM.page("mine", QUEUE, "/queue/?tab=mine", "22.00")
ROOM.page("waiting", QUEUE, "/queue/?tab=waiting", "24.00")
ROOM.page("done", QUEUE, "/queue/?tab=done", "26.00")
ROOM.page("narrowed", QUEUE, "/queue/?risk=medium", "carrier claim")
ROOM.page("nothing-fits", QUEUE, "/queue/?q=nothing+like+it", "Show everything")
ROOM.page("supervisor", QUEUE, "/queue/", "610.00", who="sue")
ROOM.page("auditor", QUEUE, "/queue/", "59.00", who="otto")
ROOM.page("announced", "reviews:announced", "/announced/", "call back")
ROOM.page("announced-read", "reviews:announced", "/announced/", "vip", who="otto")


def _peek(stage: Stage, page: Page) -> None:
    """The look beside the list is for wide screens."""
    looks = page.locator("[data-peek]:visible")
    if looks.count():
        looks.first.click()
        page.wait_for_selector("#peek h1, #peek h2")


@ROOM.scene("peek", QUEUE, "59.00", act=_peek)
def peek(stage: Stage) -> str:
    return "/queue/"


@ROOM.scene("view-refused", "reviews:view_save", "Give the view a name.")
def view_refused(stage: Stage) -> Sent:
    return Sent("/views/queue/", {"name": "", "query": "tab=done"})


EMPTY = Room("empty")
EMPTY.page("queue", QUEUE, "/queue/", "Nothing waits for you.")
EMPTY.page("mine", QUEUE, "/queue/?tab=mine", "Mine")
EMPTY.page("escalations", "reviews:escalations", "/escalations/", "Escalations")
EMPTY.page("batches", "reviews:batches", "/batches/", "Batches")
EMPTY.page(
    "announced", "reviews:announced", "/announced/", "Nothing was announced yet."
)
EMPTY.page("unknown", "reviews:unknown", "/unknown/", "No outcome is unknown.")
EMPTY.page("log", "reviews:log", "/log/?q=nothing", "No record fits.")
EMPTY.page("agents", "agents:agents", "/agents/", "Riley", who="sue")
EMPTY.page("stop", "reviews:stop", "/stop/", "Nothing is switched off.")
EMPTY.page("exports", "reviews:exports", "/log/exports/", "Export", who="otto")


CROWD = Room("crowd")


@CROWD.furnished
def crowd(stage: Stage) -> None:
    """More than the reviewers can answer, and outcomes that nobody knows."""
    for number in range(60):
        stage.kind("set_flag" if number % 3 else "publish_page")
    for _ in range(2):
        never_told(stage)


CROWD.page("queue", QUEUE, "/queue/", "over capacity")
CROWD.page("queue-supervisor", QUEUE, "/queue/", "More waits", who="sue")


CROWD.page("load", "reviews:load", "/queue/load/", "reviewers", who="sue")
CROWD.page("unknown", "reviews:unknown", "/unknown/", "You may say", who="sue")


@CROWD.scene(
    "unknown-refused", "reviews:unknown_one", "Nothing was recorded.", who="sue"
)
def unknown_refused(stage: Stage) -> Sent:
    lost = Execution.objects.filter(status="unknown").latest("pk")
    return Sent(f"/unknown/{lost.pk}/", {"happened": "", "reason": "seen it"})
