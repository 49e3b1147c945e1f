"""A reviewer and the agent write to each other, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from reviews.models import ApprovalRequest, Decision, Message
from tests.browser.conftest import SitDown, arm, look
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews.dialogue.talking import ask, reply

pytestmark = pytest.mark.browser

LONG_WORDS = "They never got the parcel, and the carrier does not know it. " * 40


@pytest.fixture
def waiting(gate: Gate) -> ApprovalRequest:
    found: ApprovalRequest = propose(gate.agent, rationale=LONG_WORDS).request
    return found


def test_a_question_is_asked_by_keys(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "q")
    page.fill("#id_reason", "Which order?")
    page.keyboard.press("Control+Enter")
    talk = page.locator("#conversation")
    expect(talk).to_contain_text("Which order?")
    expect(page.locator("[data-testid=verb-approve]")).to_be_visible()
    assert not Decision.objects.exists()
    assert desk.violations() == []


def test_escape_leaves_the_panel_and_gives_the_button_the_focus(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "b")
    page.keyboard.press("Escape")
    desk.gets_focus("verb-send_back")


def test_an_answer_arrives_and_moves_nothing(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    ask(waiting, gate.rita)
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "x")
    page.fill("#id_reason", "no parcel")
    heading = page.locator("#r5")
    heading.scroll_into_view_if_needed()
    place = heading.bounding_box()
    reply(gate, waiting, "The one of Monday.")
    look(page)
    expect(page.locator("#conversation")).to_contain_text("The one of Monday.")
    assert heading.bounding_box() == place
    expect(page.locator("#id_reason")).to_have_value("no parcel")
    desk.gets_focus("id_reason")
    assert "There is a new message." in desk.heard()
    assert desk.violations() == []


def test_without_script_a_request_is_sent_back(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita", javascript=False)
    page = desk.open(f"/requests/{waiting.pk}/")
    page.click("[data-testid=verb-send_back]")
    page.fill("#id_reason", "Halve it.")
    page.click("[data-testid=commit]")
    expect(page.locator("[data-testid=state]")).to_contain_text("With the agent since")
    expect(page.locator("#conversation")).to_contain_text("Halve it.")
    assert Message.objects.get().kind == "guidance"
