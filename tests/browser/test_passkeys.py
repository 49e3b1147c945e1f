"""Passkeys in a real Chromium, with an authenticator that Chromium plays."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import CDPSession, expect

from reviews.choices import Verdict
from tests.browser.conftest import Desk, SitDown, arm, settle
from tests.conftest import Gate
from tests.factories import PASSWORD, propose

DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def plug_in(desk: Desk) -> tuple[CDPSession, str]:
    """Give the browser an authenticator."""
    tools = desk.page.context.new_cdp_session(desk.page)
    tools.send("WebAuthn.enable")
    made = tools.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
    return tools, str(made["authenticatorId"])


def use_address(settings: Any, base: str) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update={"base_url": base})


def test_a_passkey_is_made_signs_in_and_decides(
    gate: Gate, sit_down: SitDown, settings: Any
) -> None:
    asked = propose(gate.agent, amount="899.00").request
    sue = sit_down("sue")
    use_address(settings, sue.base)
    page = sue.page
    tools, device = plug_in(sue)

    sue.open("/me/passkeys/")
    page.get_by_label("Name").fill("Laptop")
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_role("button", name="Make it in this browser").click()
    expect(page.get_by_test_id("recovery-codes")).to_be_visible()
    expect(page.get_by_test_id("passkeys")).to_contain_text("Laptop")
    assert sue.violations() == []

    sue.open(f"/requests/{asked.pk}/")
    arm(sue, "a")
    presence = {"authenticatorId": device, "isUserVerified": False}
    tools.send("WebAuthn.setUserVerified", presence)
    page.get_by_role("textbox", name="Note").fill("Checked.")
    page.get_by_test_id("commit").click()
    expect(page.get_by_text("No passkey was used")).to_be_visible()
    assert not asked.decisions.exists()
    tools.send("WebAuthn.setUserVerified", {**presence, "isUserVerified": True})
    page.get_by_test_id("commit").click()
    expect(page.get_by_test_id("panel")).to_have_count(0)
    settle(page)
    given = asked.decisions.get()
    assert (given.verdict, given.reason) == (Verdict.APPROVE, "Checked.")
    assert given.authority["step_up"] == "passkey"

    page.context.clear_cookies()
    sue.open("/sign-in/?next=/me/passkeys/")
    page.get_by_test_id("passkey").click()
    page.wait_for_url(f"{sue.base}/me/passkeys/")
    page.get_by_role("radio").check()
    remove = page.get_by_test_id("remove")
    remove.get_by_label("Your password").fill(PASSWORD)
    remove.get_by_role("button").click()
    expect(page.get_by_test_id("no-passkeys")).to_be_visible()


def test_a_passkey_follows_the_password(
    gate: Gate, sit_down: SitDown, settings: Any
) -> None:
    sam = sit_down("sam")
    use_address(settings, sam.base)
    page = sam.page
    plug_in(sam)
    sam.open("/me/passkeys/")
    page.get_by_label("Name").fill("Laptop")
    page.get_by_label("Your password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Make it in this browser").click()
    expect(page.get_by_test_id("recovery-codes")).to_be_visible()
    page.context.clear_cookies()
    sam.open("/sign-in/?next=/help/")
    page.get_by_label("Username").fill("sam")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_test_id("passkey").click()
    page.wait_for_url(f"{sam.base}/help/")


def test_without_javascript_the_other_ways_stay(
    gate: Gate, sit_down: SitDown, settings: Any
) -> None:
    sue = sit_down("sue", javascript=False)
    use_address(settings, sue.base)
    sue.page.context.clear_cookies()
    sue.open("/sign-in/")
    expect(sue.page.get_by_test_id("passkey")).to_be_hidden()
    expect(sue.page.get_by_role("button", name="Sign in")).to_be_visible()
