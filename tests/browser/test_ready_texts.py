"""Choosing a ready text puts it into the note."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from reviews.administration import queue_presets
from reviews.choices import VERDICT_SPECS
from reviews.models import ApprovalRequest, Decision
from tests.browser.conftest import SitDown, arm
from tests.conftest import Gate
from tests.factories import propose

pytestmark = pytest.mark.browser
TEXT = "Ask for the receipt."


@pytest.fixture
def waiting(gate: Gate) -> ApprovalRequest:
    queue_presets.change_preset(
        queue_name="money",
        reasons={verdict: spec.reasons for verdict, spec in VERDICT_SPECS.items()},
        texts=[TEXT],
        reason="They write it every day.",
        by=gate.adam,
    )
    return propose(gate.agent).request


def test_a_chosen_text_is_inserted_and_can_be_edited(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "x")
    page.fill("#id_reason", "First.")
    page.select_option("#id_ready", label=TEXT)
    expect(page.locator("#id_reason")).to_have_value(f"First.\n{TEXT}")
    expect(page.locator("#id_ready")).to_have_value("")
    page.fill("#id_reason", f"{TEXT} Today.")
    page.check("[name=reason_code][value=unclear]")
    page.click("[data-testid=commit]")
    expect(page.locator("#outcome")).to_contain_text("Rejected")
    assert Decision.objects.get().reason == f"{TEXT} Today."
