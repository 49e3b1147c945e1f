"""A batch in the browser while it changes, taken apart, escalated, and opened again as
it was seen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from reviews.batches import formation
from reviews.models import ApprovalRequest, Batch, Decision
from tests import factories
from tests.browser.conftest import PHONE, WIDE, SitDown, look
from tests.conftest import Gate
from tests.reviews.batches.batching import formed, members

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def open_samples(page: Page) -> None:
    for count in range(3):
        page.locator("tr:has(b.xs) [data-open]:visible").first.click()
        expect(page.locator(".inside")).to_have_count(count + 1)


def replaced(gate: Gate, batch: Batch) -> str:
    member = members(batch)[2]
    args = {**member.version.revision.args, "amount": "9.00"}
    factories.revised(gate.agent, member.request.proposal, args)
    return member.id


def test_a_change_is_said_and_moves_nothing_until_it_is_asked_for(
    gate: Gate, sit_down: SitDown
) -> None:
    batch = formed(gate, *["7.00"] * 8)
    desk = sit_down("rita")
    page = desk.open(f"/batches/{batch.pk}/")
    rows = page.locator("[data-testid=batch-table] tbody tr")
    before = rows.evaluate_all("all => all.map(one => one.id)")
    page.locator(".tick").nth(5).click()
    expect(page.locator("#decide")).to_contain_text("7 of 8")
    changed = replaced(gate, batch)
    look(page)
    expect(page.get_by_test_id("news")).to_contain_text("1 item")
    assert rows.evaluate_all("all => all.map(one => one.id)") == before
    assert desk.violations() == []
    page.get_by_test_id("refresh").click()
    expect(rows.first).to_have_attribute("id", f"i-{changed}")
    expect(rows.first.get_by_test_id("changed")).to_be_visible()
    expect(page.locator("#decide")).to_contain_text("7 of 8")
    expect(page.locator("#live")).to_be_empty()
    desk.gets_focus("h1")
    assert not Decision.objects.exists()


def test_a_tick_that_waited_does_not_undo_what_was_armed_after_it(
    gate: Gate, sit_down: SitDown
) -> None:
    batch = formed(gate, *["7.00"] * 8)
    page = sit_down("rita").open(f"/batches/{batch.pk}/")
    with page.expect_response(lambda one: one.url.endswith("/decide/")):
        for place in range(4):
            page.locator(".tick").nth(place).click()
        page.keyboard.press("x")
    expect(page.get_by_test_id("commit")).to_contain_text("Reject 4 repayments")
    page.wait_for_load_state("networkidle")
    expect(page.get_by_test_id("commit")).to_contain_text("Reject 4 repayments")


def test_taken_apart_and_escalated_by_keyboard(gate: Gate, sit_down: SitDown) -> None:
    for number, note in enumerate(["late", "late", "broken", "late", "broken"]):
        args = {"customer": f"C-{number}", "amount": "7.00", "currency": "USD"}
        factories.propose(
            gate.agent, "repay", args={**args, "note": note}, thread=f"s-{number}"
        )
    formation.form_missed_batches()
    batch = Batch.objects.get()
    desk = sit_down("rita")
    page = desk.open(f"/batches/{batch.pk}/")
    page.get_by_test_id("filter").click()
    page.get_by_label("broken").check()
    page.get_by_test_id("select-only").click()
    expect(page.locator("#decide")).to_contain_text("2 of 5")
    page.keyboard.press("u")
    expect(page.get_by_test_id("commit")).to_contain_text("Escalate 2 repayments")
    assert desk.violations() == []
    page.wait_for_selector("[data-testid=panel]:focus-within")
    page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_test_id("state")).to_contain_text("2 escalated")
    escalated = ApprovalRequest.objects.filter(tier="escalate")
    assert escalated.count() == 2
    assert desk.violations() == []


def test_approved_without_a_script_and_opened_as_it_was_seen(
    gate: Gate, sit_down: SitDown
) -> None:
    batch = formed(gate, *["7.00"] * 5)
    page = sit_down("rita", javascript=False).open(f"/batches/{batch.pk}/")
    page.locator(".tick").nth(4).uncheck()
    open_samples(page)
    page.click("#verb-approve")
    page.get_by_test_id("commit").click()
    expect(page.get_by_test_id("batch-results")).to_be_visible()
    assert Decision.objects.count() == 4
    page.get_by_test_id("as-seen-link").click()
    found = page.get_by_test_id("finding")
    expect(found.nth(0)).to_contain_text("Matches what was shown")
    expect(found.nth(1)).to_have_attribute("data-finding", "identical")
    expect(page.locator(".as-seen .tick")).to_have_count(5)
    expect(page.locator(".as-seen .tick:checked")).to_have_count(4)
    expect(page.locator(".as-seen .inside")).to_have_count(3)


@pytest.mark.parametrize("width", [360, 1280])
def test_as_seen_is_accessible_and_fits(
    gate: Gate, sit_down: SitDown, width: int
) -> None:
    batch = formed(gate, *["7.00"] * 5)
    options = PHONE if width == 360 else {"viewport": WIDE}
    desk = sit_down("rita", **options)
    page = desk.open(f"/batches/{batch.pk}/")
    expect(page.locator("#verb-escalate")).to_be_visible(visible=width > 767)
    page.click("#verb-reject")
    page.get_by_label("Duplicate").check()
    page.get_by_test_id("commit").click()
    page.get_by_test_id("as-seen-link").click()
    expect(page.get_by_test_id("as-seen")).to_be_visible()
    assert (desk.violations(), desk.overflow()) == ([], 0)
