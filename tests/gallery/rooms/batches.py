"""Batches: the list, one that waits, its foot in each state, and what came of it."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice

from playwright.sync_api import Page

from agents import reversals
from journal import clock
from reviews import deadlines
from reviews.batches import formation
from reviews.executions import run
from reviews.models import ApprovalRequest, Batch
from tests import factories
from tests.gallery import shop
from tests.gallery.scene import Room
from tests.gallery.stage import Stage
from tests.reviews.batches import batching

ROOM, UNDOING = Room("batch"), Room("batch-undoing")
BATCH = "reviews:batch"
AMOUNTS = ("7.00", "8.00", "7.50", "26.90", "8.10")


def formed(stage: Stage, group: str = "speakers") -> Batch:
    """Five alike refunds, one of them dearer than the others."""
    for amount in AMOUNTS:
        stage.refund(amount, group=group)
    formation.form_missed_batches()
    return Batch.objects.get(group=group)


def page_of(batch: Batch, *more: str) -> str:
    return "/".join(["/batches", batch.pk, *more, ""])


@ROOM.scene("list", "reviews:batches", "refunds")
def several(stage: Stage) -> str:
    formed(stage, "a list")
    return "/batches/"


@ROOM.scene("waiting", BATCH, "5 refunds")
def waiting(stage: Stage) -> str:
    return page_of(formed(stage, "waiting"))


@ROOM.scene("onlooker", BATCH, "5 refunds", who="otto")
def onlooker(stage: Stage) -> str:
    return page_of(formed(stage, "onlooker"))


@ROOM.scene("row", "reviews:batch_item", "5 refunds")
def row(stage: Stage) -> str:
    batch = formed(stage, "row")
    return page_of(batch, batching.members(batch)[0].id)


def _open(page: Page) -> None:
    """Each sample is opened, as the page asks."""
    for row in page.locator("tr:has(b.xs)").all():
        row.locator("[data-open]").click()
        page.wait_for_function("() => !document.querySelector('.htmx-request')")


def _armed(verdict: str, stage: Stage, page: Page) -> None:
    if page.locator(f"#verb-{verdict}:visible").count():
        _open(page)
        page.click(f"#verb-{verdict}")
        page.wait_for_selector("[data-testid=panel]")


def _rejecting(stage: Stage, page: Page) -> None:
    _armed("reject", stage, page)


def _approving(stage: Stage, page: Page) -> None:
    _armed("approve", stage, page)


def _too_early(stage: Stage, page: Page) -> None:
    if page.locator("#verb-approve:visible").count():
        page.click("#verb-approve")
        page.wait_for_selector("[data-testid=problem]")


NUMBERS = iter(range(1000))


def another(stage: Stage) -> str:
    return page_of(formed(stage, f"another {next(NUMBERS)}"))


ROOM.scene("reject", BATCH, "5 refunds", act=_rejecting)(another)
ROOM.scene("approve", BATCH, "5 refunds", act=_approving)(another)
ROOM.scene("too-early", BATCH, "5 refunds", act=_too_early)(another)


def _changed(stage: Stage, page: Page) -> None:
    request = ApprovalRequest.objects.latest("opened_at")
    args = {**request.sealed.revision.args, "amount": "9.99"}
    factories.revised(stage.agent, request.proposal, args)
    _rejecting(stage, page)


ROOM.scene("changed", BATCH, "changed", act=_changed)(another)


@ROOM.scene("recallable", BATCH, "Recall")
def recallable(stage: Stage) -> str:
    batch = formed(stage, "recallable")
    batching.decide(batch, stage.rita)
    return page_of(batch)


@ROOM.scene("result", BATCH, "declined")
def result(stage: Stage) -> str:
    batch = formed(stage, "result")
    declined = batching.members(batch)[1].request.sealed.revision.args
    shop.NOW["declined"] = {declined["order_id"]}
    batching.decide(batch, stage.rita)
    past = clock.now() - timedelta(seconds=1)
    requests = ApprovalRequest.objects.filter(batch_items__batch=batch)
    requests.update(recall_until=past)
    deadlines.close_recall_windows()
    batching.ran(batch)
    return page_of(batch)


@ROOM.scene("dissolved", BATCH, "This batch is dissolved")
def dissolved(stage: Stage) -> str:
    batch = formed(stage, "dissolved")
    for member in batching.members(batch)[:4]:
        factories.decide(member.request, stage.rita, "reject", reason_code="unsafe")
    formation.tidy_batch(batch_id=batch.pk)
    return page_of(batch)


@UNDOING.furnished
def labels_together(stage: Stage) -> None:
    """The store, in which labels may be decided on together."""
    document = shop.policy()
    more = {"batchable": {"items": 50, "varying": ["order_id"], "called": "labels"}}
    document["tools"]["add_label"] |= more
    factories.policy(stage.gate.people, document)


@UNDOING.scene("waiting", BATCH, "Reverses:")
def undoing(stage: Stage) -> str:
    """What was labelled by mistake, each to be undone as somebody proposed."""
    for order in islice(stage.orders, 3):
        args = {"order_id": order, "label": "carrier claim"}
        execution = stage.asked("add_label", args).executions.get()
        run.run_execution(execution.pk)
        why = "The label names another parcel."
        reversals.propose_reversal(
            execution_id=execution.pk, person=stage.tom, reason=why
        )
    formation.form_missed_batches()
    return page_of(Batch.objects.latest("formed_at"))
