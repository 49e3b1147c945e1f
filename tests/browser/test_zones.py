"""Times on a page are in the zone of the browser somebody signed in with first."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SitDown
from tests.conftest import Gate
from tests.factories import propose

pytestmark = pytest.mark.browser

EXPIRES = "[data-testid=expiry] [role=timer] time"


def test_the_browser_names_the_zone_and_the_person_another(
    gate: Gate, sit_down: SitDown
) -> None:
    request = propose(gate.agent).request
    desk = sit_down("rita", by_form=True, timezone_id="Asia/Tokyo")
    page = desk.open(f"/requests/{request.pk}/")
    until = page.locator(EXPIRES)
    expect(until).to_have_text(re.compile(r"^[\d:]{8} JST$"))
    told = until.get_attribute("title") or ""
    assert told == f"{request.expires_at:%H:%M:%S} UTC"
    assert desk.violations() == []
    page = desk.open("/me/display/")
    expect(page.get_by_label("Time zone")).to_have_value("Asia/Tokyo")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.keyboard.press("Control+Enter")
    expect(page.locator("main")).to_contain_text("Saved.")
    page = desk.open(f"/requests/{request.pk}/")
    expect(page.locator(EXPIRES)).to_have_text(re.compile(r"CES?T$"))
    # Another browser of the same person says times as the preference has it.
    other = sit_down("rita", by_form=True, timezone_id="America/New_York")
    page = other.open(f"/requests/{request.pk}/")
    expect(page.locator(EXPIRES)).to_have_text(re.compile(r"CES?T$"))


def test_without_a_script_times_are_utc_and_say_so(
    gate: Gate, sit_down: SitDown
) -> None:
    request = propose(gate.agent).request
    desk = sit_down("rita", javascript=False, timezone_id="Asia/Tokyo")
    page = desk.open(f"/requests/{request.pk}/")
    expect(page.locator(EXPIRES)).to_have_text(re.compile(r"UTC$"))
