"""The lists of what waits or ran, in each tab and state, and batches."""

from __future__ import annotations

import itertools
from datetime import timedelta

from playwright.sync_api import Page

from desk.log import search_entries
from journal import clock
from reviews import deadlines
from reviews.administration import queue_presets
from reviews.batches import formation
from reviews.choices import VERDICT_SPECS
from reviews.holds import take
from reviews.models import ApprovalRequest, Batch, Execution
from reviews.people import preferences
from tests import factories
from tests.factories import decide
from tests.gallery.scene import SceneGroup, Submission, url
from tests.gallery.scenes.outcomes import never_told, undo
from tests.gallery.scenes.review import newest
from tests.gallery.store import LAPTOP, STATE, StoreGate, policy
from tests.reviews.batches import batching
from tests.reviews.dialogue.talking import send_back

LISTS = SceneGroup(
    "lists",
    shows=(
        "reviews:queue",
        "reviews:announced",
        "reviews:view_save",
        "reviews:search",
        "reviews:overview",
    ),
)
EMPTY = SceneGroup(
    "empty",
    shows=(
        "reviews:escalations",
        "reviews:unknown",
        "reviews:log",
        "agents:agents",
        "reviews:stop",
        "reviews:exports",
    ),
)
CROWD = SceneGroup("crowd", shows=("reviews:load", "reviews:unknown_one"))


@LISTS.preparation
def fill_lists(gate: StoreGate) -> None:
    """One of everything that a list shows."""
    gate.refund("59.00")
    gate.mail()
    gate.label()
    gate.example("run_sql")
    gate.refund("610.00", LAPTOP)
    for _ in range(3):
        gate.refund("15.00", order="78290", thread="ticket-7")
    gate.hold(gate.refund("22.00"), gate.rita)
    offered = gate.hold(gate.refund("23.00"), gate.tom)
    take.offer_hold(request_id=offered.pk, person=gate.tom, to=gate.rita)
    decide(gate.refund("24.00"), gate.rita, "escalate", reason_code="unclear")
    decide(gate.refund("25.00"), gate.rita)
    decide(gate.refund("26.00"), gate.rita, "reject", reason_code="unsafe")
    gate.perform(gate.approve(gate.refund("27.00")))
    factories.overdue(gate.refund("28.00"))
    deadlines.expire_chunk()
    for label in ("vip", "carrier claim", "call back"):
        gate.labelled(label)
    preferences.create_saved_view(
        person=gate.rita, page="queue", name="big refunds", query="risk=high"
    )
    search_entries.add_missing_entries()


LISTS.add("open", "59.00", "/queue/")
LISTS.add("mine", "offers this to you", "/queue/?tab=mine")
LISTS.add("waiting", "24.00", "/queue/?tab=waiting")
LISTS.add("done", "26.00", "/queue/?tab=done")
LISTS.add("narrowed", "carrier claim", "/queue/?risk=medium")
LISTS.add("nothing-fits", "Clear the filter", "/queue/?q=nothing+like+it")
LISTS.add("supervisor", "610.00", "/queue/", "sue")
LISTS.add("auditor", "59.00", "/queue/", "otto")
LISTS.add("announced", "call back", "/announced/")
LISTS.add("announced-read", "vip", "/announced/", "otto")


def open_peek(gate: StoreGate, page: Page) -> None:
    """The look beside the list is for wide screens."""
    looks = page.locator("[data-peek]:visible")
    if looks.count():
        looks.first.click()
        page.wait_for_selector("#peek h1, #peek h2")


def type_words(gate: StoreGate, page: Page) -> None:
    """The field of the search is for wide screens; a narrow one has the page."""
    if page.locator("#find").is_visible():
        page.keyboard.press("/")
        page.keyboard.type("refund")
        page.wait_for_selector("#hits a >> text=audit log")


LISTS.add("peek", "59.00", "/queue/", act=open_peek)
LISTS.add("palette", "59.00", "/queue/", act=type_words)
LISTS.add("search", "Search the audit log", "/search/?q=refund")
LISTS.add("search-empty", "Preferences", "/search/", "adam")
LISTS.add("overview", "Expiring next", "/overview/", "sue")
LISTS.add("overview-auditor", "What auditors look at", "/overview/", "otto")
LISTS.add(
    "view-refused",
    "Give the view a name.",
    Submission("/views/queue/", {"name": "", "query": "tab=done"}),
)
EMPTY.add("overview", "Nothing waits.", "/overview/", "adam")
EMPTY.add("queue", "No request is pending for you.", "/queue/")
EMPTY.add("mine", "Mine", "/queue/?tab=mine")
EMPTY.add("escalations", "Escalations", "/escalations/")
EMPTY.add("batches", "Batches", "/batches/")
EMPTY.add("announced", "No activity yet.", "/announced/")
EMPTY.add("unknown", "No unknown results.", "/unknown/")
EMPTY.add("log", "No matching records.", "/log/?q=nothing")
EMPTY.add("agents", "Riley", "/agents/", "sue")
EMPTY.add("stop", "Nothing is stopped or paused.", "/stop/")
EMPTY.add("exports", "No exports yet.", "/log/exports/", "otto")


@CROWD.preparation
def overload(gate: StoreGate) -> None:
    """More than the reviewers can answer, and outcomes that nobody knows."""
    for number in range(60):
        gate.example("set_flag" if number % 3 else "publish_page")
    for _ in range(2):
        never_told(gate)


CROWD.add("queue", "over capacity", "/queue/")
CROWD.add("queue-supervisor", "More requests", "/queue/", "sue")
CROWD.add("load", "reviewers", "/queue/load/", "sue")
CROWD.add("unknown", "You can record", "/unknown/", "sue")


@CROWD.scene("unknown-refused", "Nothing was recorded.", "sue")
def unknown_refused(gate: StoreGate) -> Submission:
    lost = Execution.objects.filter(status="unknown").latest("pk")
    return Submission(f"/unknown/{lost.pk}/", {"happened": "", "reason": "seen it"})


BATCHES = SceneGroup(
    "batch", shows=("reviews:batches", "reviews:batch", "reviews:batch_item")
)
UNDOING = SceneGroup("batch-undoing")
AMOUNTS = ("7.00", "8.00", "7.50", "26.90", "8.10")
numbers = itertools.count()


@BATCHES.preparation
def offer_texts(gate: StoreGate) -> None:
    """Few reasons and a ready text for refunds."""
    queue_presets.change_preset(
        queue_name="refunds",
        reasons={verdict: spec.reasons[-3:] for verdict, spec in VERDICT_SPECS.items()},
        texts=["These were refunded before: look at the orders' history."],
        reason="The team writes the same note every day.",
        by=gate.adam,
    )


def form_batch(gate: StoreGate) -> Batch:
    """Five alike refunds, one of them dearer than the others."""
    group = f"speakers {next(numbers)}"
    for amount in AMOUNTS:
        gate.refund(amount, group=group)
    formation.form_missed_batches()
    return Batch.objects.get(group=group)


def form_returned_batch(gate: StoreGate) -> Batch:
    """One of the refunds has been sent back to the agent."""
    batch = form_batch(gate)
    send_back(batching.members(batch)[0].request, gate.rita)
    return batch


@BATCHES.scene("list", "refunds")
def list_batches(gate: StoreGate) -> str:
    form_batch(gate)
    return "/batches/"


BATCHES.add("waiting", "5 refunds", form_batch)
BATCHES.add("onlooker", "With the agent since", form_returned_batch, "otto")


@BATCHES.scene("row", "5 refunds")
def row(gate: StoreGate) -> str:
    batch = form_batch(gate)
    return url(batch, batching.members(batch)[0].id)


def arm(verdict: str, page: Page) -> None:
    """Each sample is opened, as the page asks, before a verb."""
    if not page.locator(f"#verb-{verdict}:visible").count():
        return
    for sample in page.locator("tr:has(b.xs)").all():
        sample.locator("[data-open]").click()
        page.wait_for_function("() => !document.querySelector('.htmx-request')")
    page.click(f"#verb-{verdict}")
    page.wait_for_selector("[data-testid=panel]")


def approve_too_early(gate: StoreGate, page: Page) -> None:
    if page.locator("#verb-approve:visible").count():
        page.click("#verb-approve")
        page.wait_for_selector("[data-testid=problem]")


def reject_changed(gate: StoreGate, page: Page) -> None:
    gate.revise(newest(), amount="9.99")
    arm("reject", page)


BATCHES.add(
    "reject", "5 refunds", form_batch, act=lambda gate, page: arm("reject", page)
)
BATCHES.add(
    "approve", "5 refunds", form_batch, act=lambda gate, page: arm("approve", page)
)
BATCHES.add("too-early", "5 refunds", form_batch, act=approve_too_early)
BATCHES.add("changed", "changed", form_batch, act=reject_changed)
BATCHES.add(
    "recallable",
    "Undo all",
    lambda gate: batching.decide(form_batch(gate), gate.rita),
)


@BATCHES.scene("result", "declined")
def result(gate: StoreGate) -> Batch:
    batch = form_batch(gate)
    declined = batching.members(batch)[1].request.sealed.revision.args
    STATE["declined"] = {declined["order_id"]}
    batching.decide(batch, gate.rita)
    past = clock.now() - timedelta(seconds=1)
    requests = ApprovalRequest.objects.filter(batch_items__batch=batch)
    requests.update(recall_until=past)
    deadlines.close_recall_windows()
    batching.ran(batch)
    return batch


@BATCHES.scene("dissolved", "This batch was dissolved")
def dissolved(gate: StoreGate) -> Batch:
    batch = form_batch(gate)
    for member in batching.members(batch)[:4]:
        decide(member.request, gate.rita, "reject", reason_code="unsafe")
    formation.tidy_batch(batch_id=batch.pk)
    return batch


@UNDOING.preparation
def batch_labels(gate: StoreGate) -> None:
    """The store, in which labels may be decided on together."""
    document = policy()
    batchable = {"items": 50, "varying": ["order_id"], "called": "labels"}
    document["tools"]["add_label"]["batchable"] = batchable
    gate.adopt(document)


@UNDOING.scene("waiting", "Reverses:")
def undoing(gate: StoreGate) -> Batch:
    """What was labelled by mistake, each to be undone as somebody proposed."""
    for order in itertools.islice(gate.orders, 3):
        undo(gate, gate.labelled(order=order))
    formation.form_missed_batches()
    return Batch.objects.latest("formed_at")
