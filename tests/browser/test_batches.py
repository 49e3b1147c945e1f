"""Fifty alike requests, bound to the digest of the exact list."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from reviews.batches import formation
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Batch, Decision
from tests import factories, worlds
from tests.browser.conftest import PHONE, WIDE, Desk, SitDown
from tests.conftest import Gate
from tests.reviews.batches.batching import formed, members, proposed, ran

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
FIFTY = [*["7.00"] * 24, "23.80", *["7.20"] * 25]
MOST_STROKES, MOST_CLICKS = 16, 14


def statuses() -> set[str]:
    return set(ApprovalRequest.objects.values_list("status", flat=True))


def digest(page: Page) -> str:
    return page.get_by_test_id("batch-digest").inner_text()


class Hand:
    """Counts what a person presses, beyond the opening of samples."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.count += 1

    def click(self, selector: str) -> None:
        self.page.click(selector)
        self.count += 1


def focused(page: Page, beginning: str) -> None:
    """The focus gets to what has such an id, once the swap has settled."""
    script = "beginning => document.activeElement.id.startsWith(beginning)"
    page.wait_for_function(script, arg=beginning)


def is_sample(page: Page, request: str) -> bool:
    return page.locator(f"#i-{request} b.xs").count() > 0


def open_samples(page: Page, hand: Hand) -> None:
    """`A` says what is missing and moves the focus there; Enter opens it."""
    for opened in range(5):
        hand.press("a")
        expect(page.get_by_test_id("problem").locator("a")).to_have_count(5 - opened)
        focused(page, "open-")
        hand.press("Enter")
        expect(page.locator(".inside")).to_have_count(opened + 1)
        focused(page, "p-")


def test_fifty_by_keyboard(gate: Gate, sit_down: SitDown) -> None:
    batch = formed(gate, *FIFTY)
    desk: Desk = sit_down("rita")
    page = desk.open(f"/batches/{batch.pk}/")
    expect(page.get_by_test_id("h1-effect")).to_contain_text("50 repayments")
    expect(page.get_by_test_id("h1-effect")).to_contain_text("371.80 USD")
    expect(page.get_by_test_id("h1-effect")).to_contain_text("largest 23.80 USD")
    rows = page.locator("[data-testid=batch-table] tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("3.3 times the median")
    hand = Hand(page)
    open_samples(page, hand)
    before = digest(page)
    hand.press("j")
    hand.press("Space")
    expect(page.get_by_test_id("batch-digest")).not_to_have_text(before)
    left = page.locator(".tick:not(:checked)").get_attribute("value")
    hand.press("a")
    expect(page.get_by_test_id("commit")).to_contain_text("Approve 49 repayments")
    page.wait_for_selector("[data-testid=panel]:focus-within")
    hand.press("Control+Enter")
    expect(page.get_by_test_id("batch-results")).to_be_visible()
    assert hand.count <= MOST_STROKES
    assert Decision.objects.count() == 49
    assert ApprovalRequest.objects.get(pk=left).status == RequestStatus.PENDING
    assert desk.violations() == []


def test_by_mouse_a_changed_row_means_nothing_is_decided(
    gate: Gate, sit_down: SitDown
) -> None:
    worlds.WORLD["declined"] = {"C-3"}
    batch = formed(gate, *FIFTY)
    desk = sit_down("rita")
    page = desk.open(f"/batches/{batch.pk}/")
    hand = Hand(page)
    for row in page.locator("tr:has(b.xs)").all():
        hand.click(f"#{row.get_attribute('id')} [data-open]")
        expect(page.locator(".inside")).to_have_count(hand.count)
    out = members(batch)[9].id
    hand.click(f"#i-{out} .tick")
    hand.click("#verb-approve")
    page.get_by_label("Stop at the first failure").uncheck()
    # Another sample would have to be opened anew.
    changed = next(one for one in members(batch)[20:] if not is_sample(page, one.id))
    args = {**changed.version.revision.args, "amount": "9.00"}
    factories.revised(gate.agent, changed.request.proposal, args)
    hand.click("[data-commit]")
    problem = page.get_by_test_id("problem")
    expect(problem).to_contain_text("1 of 49 items")
    focused(page, "problem")
    assert statuses() == {RequestStatus.PENDING}
    assert not Decision.objects.exists()
    first = page.locator("[data-testid=batch-table] tbody tr").first
    expect(first).to_have_attribute("id", f"i-{changed.id}")
    expect(first.get_by_test_id("changed")).to_be_visible()
    expect(page.locator(f"#i-{out} .tick")).not_to_be_checked()
    assert desk.violations() == []
    hand.click("#verb-approve")
    page.get_by_label("Stop at the first failure").uncheck()
    hand.click("[data-commit]")
    expect(page.get_by_test_id("batch-results")).to_be_visible()
    assert hand.count <= MOST_CLICKS
    assert Decision.objects.count() == 49
    ran(batch)
    page.reload()
    expect(page.get_by_test_id("state")).to_contain_text("48 completed")
    expect(page.get_by_test_id("state")).to_contain_text("1 failed")
    worlds.WORLD["declined"] = set()
    page.get_by_test_id("retry").click()
    expect(page.get_by_test_id("message")).to_contain_text("1 item")
    ran(batch)
    page.reload()
    expect(page.get_by_test_id("state")).to_contain_text("49 completed")
    assert ApprovalRequest.objects.get(pk=out).status == RequestStatus.PENDING


def test_the_rest_waits_behind_a_failure(gate: Gate, sit_down: SitDown) -> None:
    worlds.WORLD["declined"] = {"C-1"}
    batch = formed(gate, *["7.00"] * 5)
    desk = sit_down("rita", javascript=False)
    page = desk.open(f"/batches/{batch.pk}/")
    for _ in range(3):
        page.locator("tr:has(b.xs) [data-open]:visible").first.click()
    page.click("#verb-approve")
    page.get_by_test_id("commit").click()
    ran(batch)
    page.reload()
    expect(page.get_by_test_id("state")).to_contain_text("3 not run")
    page.get_by_test_id("run-rest").click()
    ran(batch)
    page.reload()
    expect(page.get_by_test_id("state")).to_contain_text("4 completed")


def test_shift_ticks_a_range_and_escape_disarms(gate: Gate, sit_down: SitDown) -> None:
    batch = formed(gate, *["7.00"] * 10)
    desk = sit_down("rita")
    page = desk.open(f"/batches/{batch.pk}/")
    page.keyboard.press("j")
    page.keyboard.press("Space")
    for _ in range(3):
        page.keyboard.press("j")
    page.keyboard.press("Shift+Space")
    expect(page.locator("#decide")).to_contain_text("6 of 10")
    page.keyboard.press("x")
    expect(page.get_by_test_id("commit")).to_contain_text("Reject 6 repayments")
    page.keyboard.press("Escape")
    expect(page.locator("#verb-reject")).to_be_visible()
    assert statuses() == {RequestStatus.PENDING}


def test_a_panel_gets_what_is_typed_before_it_is_there(
    gate: Gate, sit_down: SitDown
) -> None:
    batch = formed(gate, *["7.00"] * 3)
    page = sit_down("rita").open(f"/batches/{batch.pk}/")
    page.keyboard.type("xNot mine")
    expect(page.locator("#id_reason")).to_have_value("Not mine")
    page.keyboard.press("Escape")
    expect(page.locator("#verb-reject")).to_be_visible()
    assert statuses() == {RequestStatus.PENDING}


def test_the_focus_goes_straight_into_what_is_opened(
    gate: Gate, sit_down: SitDown
) -> None:
    """Never to nothing in between, where the button that had it is hidden."""
    batch = formed(gate, "7.00", "8.00", "9.00")
    page = sit_down("rita").open(f"/batches/{batch.pk}/")
    page.evaluate(
        """() => {
            window.went = []
            addEventListener("focusout", e => went.push(e.relatedTarget?.tagName))
        }"""
    )
    page.locator("[data-open]").first.click()
    focused(page, "p-")
    assert page.evaluate("went") == ["SUMMARY"]


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_is_accessible_and_fits(
    gate: Gate, sit_down: SitDown, width: int, scheme: Any
) -> None:
    batch = formed(gate, "7.00", "8.00", "9.00", "26.90")
    proposed(gate, "7.50")
    formation.form_missed_batches()
    options = PHONE if width == 360 else {"viewport": WIDE}
    desk = sit_down("rita", color_scheme=scheme, **options)
    page = desk.open(f"/batches/{batch.pk}/")
    assert (desk.violations(), desk.overflow()) == ([], 0)
    assert page.locator("#verb-approve").is_visible() == (width > 767)
    page.click("#verb-reject")
    expect(page.get_by_test_id("panel")).to_be_visible()
    assert (desk.violations(), desk.overflow()) == ([], 0)
    desk.open("/batches/")
    assert (desk.violations(), desk.overflow()) == ([], 0)
    request = members(Batch.objects.get())[0].request
    page = desk.open(f"/requests/{request.pk}/")
    expect(page.get_by_test_id("in-batch")).to_contain_text(re.compile("batch of 5"))
    assert (desk.violations(), desk.overflow()) == ([], 0)
