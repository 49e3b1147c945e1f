"""Modify in a real browser: what is typed is checked as it is typed, rows come and go,
and nothing that was typed is lost."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from reviews.models import ApprovalRequest, Decision
from tests import factories
from tests.browser.conftest import Desk, SitDown
from tests.conftest import Gate
from tests.factories import propose

pytestmark = pytest.mark.browser

PARCEL = {
    "type": "object",
    "required": ["lines", "when", "how"],
    "properties": {
        "lines": {
            "type": "array",
            "maxItems": 4,
            "items": {
                "type": "object",
                "required": ["sku", "count"],
                "properties": {
                    "sku": {"type": "string", "maxLength": 8},
                    "count": {"type": "integer", "minimum": 1},
                },
            },
        },
        "when": {"type": "string", "format": "date"},
        "how": {"enum": ["by_hand", "by_mail"]},
        "at": {"type": "string", "format": "date-time"},
        "address": {
            "type": "object",
            "required": ["city"],
            "properties": {"city": {"type": "string"}, "floor": {"type": "integer"}},
        },
        "note": {"type": "string"},
        "urgent": {"type": "boolean"},
    },
}
ARGS = {
    "lines": [{"sku": "A-1", "count": 2}, {"sku": "B-2", "count": 1}],
    "when": "2026-12-01",
    "how": "by_mail",
    "at": "2026-11-20T14:00:00Z",
}


@pytest.fixture
def parcel(gate: Gate) -> ApprovalRequest:
    document = factories.document_of_tests()
    document["tools"]["deploy"] |= {
        "schema": PARCEL,
        "effect": "Send a parcel {how}",
        "risk": "high",
    }
    factories.policy(gate.people, document)
    return propose(gate.agent, "deploy", args=ARGS).request


@pytest.fixture
def waiting(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request


def modify(desk: Desk, request: ApprovalRequest) -> None:
    desk.open(f"/requests/{request.pk}/")
    desk.page.click("#verb-modify")
    expect(desk.page.get_by_test_id("release")).to_be_visible()
    desk.page.wait_for_selector("[data-testid=panel]:focus-within")


def test_three_values_and_the_tier_while_typing(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.page
    modify(desk, waiting)
    amount = page.locator("[name='arg.amount']")
    amount.fill("600.00")
    check = page.locator("#check")
    expect(check.locator("[data-line=raises]")).to_be_visible()
    expect(check).to_contain_text("40.00")
    assert "raises the required approval" in desk.heard()
    desk.gets_focus("id_arg-amount")
    amount.fill("20000.00")
    error = page.locator("#id_arg-amount-error")
    expect(error).to_contain_text("Amount: Payments over 10,000.00 are not made.")
    expect(amount).to_have_attribute("aria-invalid", "true")
    amount.fill("12.50")
    expect(check.locator("[data-line=same]")).to_be_visible()
    expect(error).to_be_hidden()
    expect(amount).to_have_attribute("aria-invalid", "false")
    assert desk.violations() == []
    page.get_by_role("button", name="Revert Amount").click()
    expect(check.locator("[data-line=unchanged]")).to_be_visible()
    desk.gets_focus("id_arg-amount")
    assert not Decision.objects.exists()


def test_nothing_is_sent_of_a_password_that_is_being_typed(
    gate: Gate, sit_down: SitDown
) -> None:
    request = propose(gate.agent, amount="899.00").request
    desk = sit_down("sue")
    modify(desk, request)
    bodies: list[str] = []
    desk.page.on("request", lambda one: bodies.append(one.post_data or ""))
    desk.page.fill("#id_password", "my pass word")
    desk.page.fill("[name='arg.amount']", "450.00")
    expect(desk.page.locator("#check")).to_contain_text("lowers the required approval")
    assert any("450.00" in body for body in bodies)
    assert not any("pass" in body for body in bodies)
    expect(desk.page.locator("#id_password")).to_have_value("my pass word")


def test_native_inputs_hold_what_was_proposed(
    parcel: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    modify(desk, parcel)
    page = desk.page
    expect(page.locator("[name='arg.when']")).to_have_value("2026-12-01")
    expect(page.locator("[name='arg.at']")).to_have_value("2026-11-20T14:00")
    expect(page.locator("[name='arg.how']")).to_have_value("by_mail")
    expect(page.locator("[data-testid=commit]")).to_contain_text("with my changes")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#check [data-line=unchanged]")).to_be_visible()
    assert desk.violations() == []


def test_rows_are_added_moved_and_removed(
    parcel: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    modify(desk, parcel)
    page = desk.page
    page.fill("[name='arg.note']", "kept over it all")
    page.get_by_role("button", name="Add one Lines").click()
    expect(page.locator("#id_arg-lines-n0")).to_be_focused()
    page.fill("[name='arg.lines.n0.sku']", "C-3")
    page.fill("[name='arg.lines.n0.count']", "5")
    page.get_by_role("button", name="Move up Lines 3").click()
    rows = page.locator("[name='arg.lines:rows']")
    expect(rows).to_have_value("0 n0 1")
    expect(page.locator("#id_arg-lines-n0-up")).to_be_focused()
    page.get_by_role("button", name="Remove Lines 1").click()
    expect(page.locator("#id_arg-lines")).to_be_focused()
    expect(page.locator("[name='arg.note']")).to_have_value("kept over it all")
    expect(page.locator("[data-testid=commit]")).to_contain_text("my 2 changes")
    expect(page.locator("#check")).to_contain_text("C-3")
    assert desk.violations() == []
    page.keyboard.press("Control+Enter")
    expect(page.locator("#history")).to_contain_text("2 versions")
    parcel.refresh_from_db()
    assert parcel.sealed.revision.args == {
        **ARGS,
        "lines": [{"sku": "C-3", "count": 5}, {"sku": "B-2", "count": 1}],
        "note": "kept over it all",
    }


def test_a_group_that_was_left_out_is_given(
    parcel: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    modify(desk, parcel)
    page = desk.page
    page.select_option("#id_arg-address-is", "given")
    page.fill("[name='arg.address.city']", "Reno")
    page.select_option("[name='arg.urgent']", "no")
    expect(page.locator("[data-testid=commit]")).to_contain_text("my 2 changes")
    expect(page.locator("#check")).to_contain_text("Reno")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#history")).to_contain_text("2 versions")
    parcel.refresh_from_db()
    given = {"address": {"city": "Reno"}, "urgent": False}
    assert parcel.sealed.revision.args == {**ARGS, **given}


def test_without_javascript(parcel: ApprovalRequest, sit_down: SitDown) -> None:
    desk = sit_down("rita", javascript=False)
    page = desk.open(f"/requests/{parcel.pk}/decide/?arm=modify")
    page.fill("#id_reason", "typed before")
    page.fill("[name='arg.lines.0.sku']", "far too long for it")
    page.click("text=Add one")
    page.fill("[name='arg.lines.n0.sku']", "C-3")
    page.fill("[name='arg.lines.n0.count']", "5")
    page.click("#check button")
    error = page.locator("#id_arg-lines-0-sku-error")
    expect(error).to_contain_text("Sku: ")
    expect(page.locator("#id_reason")).to_have_value("typed before")
    page.fill("[name='arg.lines.0.sku']", "A-9")
    page.click("#id_arg-lines-1-remove")
    page.click("#check button")
    expect(page.locator("#check [data-line=same]")).to_be_visible()
    page.click("[data-testid=commit]")
    expect(page.locator("#history")).to_contain_text("2 versions")
    parcel.refresh_from_db()
    lines = [{"sku": "A-9", "count": 2}, {"sku": "C-3", "count": 5}]
    assert parcel.sealed.revision.args == {**ARGS, "lines": lines}


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_by_everybody(
    parcel: ApprovalRequest, sit_down: SitDown, width: int, scheme: str
) -> None:
    viewport = {"width": width, "height": 800}
    desk = sit_down("rita", viewport=viewport, color_scheme=scheme)
    page = desk.open(f"/requests/{parcel.pk}/decide/?arm=modify")
    page.wait_for_selector("[data-testid=panel]:focus-within")
    page.fill("[name='arg.lines.0.count']", "none")
    page.select_option("#id_arg-address-is", "given")
    page.wait_for_selector("[name='arg.address.city']")
    page.get_by_role("button", name="Add one Lines").click()
    expect(page.locator("#id_arg-lines-n0")).to_be_focused()
    assert desk.violations() == []
    assert desk.overflow() <= 0
