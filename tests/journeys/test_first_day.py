"""From an empty database to a first decided request in the browser alone: two
administrators, three people who decide, a policy that one writes and the other
activates, and an agent with a key."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from counterseal_client import ApiError, Gate
from tests.browser.conftest import WITHIN_MS, find_violations
from tests.guards import ROOT
from tests.installations import Up, up
from tests.stack import free_port, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.servers, pytest.mark.timeout(1200)]

# A stranger has ten minutes; nobody reads or thinks here.
MOST_S = 600
PICTURES = ROOT / "var" / "first-day"
SETUP = re.compile(r"an administrator's: (\S+)")
KEY = re.compile(r"cs_\S+")
PASSWORD = "blue-otter-paints-9"
TOOL = """tools:
  issue_credit:
    title: Issue credit
    effect: Credit {amount} {currency} to {customer}
    schema:
      type: object
      required: [customer, amount, currency]
      additionalProperties: false
      properties:
        customer: {type: string, maxLength: 40}
        amount: {type: string, pattern: '^[0-9]+[.][0-9]{2}$', maxLength: 12}
        currency: {type: string, enum: [USD]}
    money: [{amount: amount, currency: currency}]
    queue: approvals
    risk: high
    profile: {reversible: false, blast_radius: 1, external: true}
    executor: {kind: agent}
"""


@dataclass
class Company:
    """One browser per person, and a picture of each step."""

    browser: Browser
    base: str
    pages: dict[str, Page] = field(default_factory=dict)
    steps: int = 0

    def open(self, name: str) -> Page:
        page = self.browser.new_context(
            viewport={"width": 1280, "height": 900}
        ).new_page()
        page.set_default_timeout(WITHIN_MS)
        self.pages[name] = page
        return page

    def show(self, page: Page, name: str) -> None:
        """Keep a picture of the step, and see that axe has nothing against it."""
        self.steps += 1
        page.screenshot(path=PICTURES / f"{self.steps:02}-{name}.png", full_page=True)
        assert find_violations(page) == []


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Up]:
    with up(tmp_path / "state", free_port(), demo=False, AGENT_KEY="") as started:
        yield started


def test_a_company_reaches_its_first_decision_in_the_browser_alone(
    running: Up, browser: Browser
) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=WITHIN_MS)
    wait_until(lambda: bool(SETUP.findall(running.said)), 60, lambda: running.said)
    (link,) = SETUP.findall(running.said)
    began = time.monotonic()
    company = Company(browser, link.partition("/setup/")[0])
    add_first_administrator(company, link)
    add_second_administrator(company)
    add_decider(company, "rita", "Reviewer")
    add_decider(company, "sue", "Supervisor")
    add_decider(company, "sam", "Supervisor")
    write_policy(company)
    activate_policy(company)
    key = register_agent(company)
    with Gate(company.base, key) as gate:
        decide_first_request(company, gate)
        assert time.monotonic() - began < MOST_S
        revoke_key(company, gate)
    deactivate_reviewer(company)


def add_first_administrator(company: Company, link: str) -> None:
    page = company.open("ada")
    page.goto(link)
    company.show(page, "first-account")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Your name").fill("Ada Vik")
    page.get_by_label("E-mail").fill("ada@example.com")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    expect(page.get_by_test_id("steps")).to_contain_text("A second administrator")
    company.show(page, "what-is-still-to-do")


def add_second_administrator(company: Company) -> None:
    """The only administrator needs nobody's consent, and hands over the link."""
    page = invite(company, "ben", "Administrator")
    company.show(page, "second-administrator-has-a-link")
    choose_password(company, "ben", page.get_by_test_id("link").locator("code"))


def add_decider(company: Company, name: str, role: str) -> None:
    """One administrator invites, the other confirms, and hands over the link."""
    invite(company, name, role, queue="Approvals")
    ben = company.pages["ben"]
    ben.goto(f"{company.base}/overview/")
    ben.get_by_test_id("changes").get_by_role("link").first.click()
    answer = ben.get_by_test_id("answer")
    answer.get_by_label("Your password").fill(PASSWORD)
    company.show(ben, f"{name}-waits-for-the-second-administrator")
    answer.get_by_role("button", name="Confirm").click()
    choose_password(company, name, ben.get_by_test_id("link").locator("code"))


def invite(company: Company, name: str, role: str, queue: str = "") -> Page:
    page = company.pages["ada"]
    page.goto(f"{company.base}/people/")
    page.get_by_role("link", name="Invite a person").click()
    page.get_by_label("Name", exact=True).fill(name.title())
    page.get_by_label("Username").fill(name)
    page.get_by_label("Mail address").fill(f"{name}@example.com")
    page.get_by_label("Role").select_option(role)
    if queue:
        page.get_by_label(queue).check()
    page.get_by_label("Reason").fill("Joins the team.")
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Invite").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name.title())
    return page


def choose_password(company: Company, name: str, link: Locator) -> None:
    """Open the link that somebody was given, and choose a password, which signs in."""
    page = company.open(name)
    page.goto(link.inner_text())
    for index in range(page.locator("[type=password]").count()):
        page.locator("[type=password]").nth(index).fill(PASSWORD)
    page.get_by_role("button", name="Set the password").click()
    page.wait_for_url(re.compile("/(queue|overview)/$"))
    company.show(page, f"{name}-is-in")


def write_policy(company: Company) -> None:
    page = company.pages["ada"]
    page.goto(f"{company.base}/policies/")
    page.get_by_role("link", name="New version").first.click()
    text = page.get_by_label("Policy")
    text.fill(text.input_value().replace("tools: {}\n", TOOL))
    company.show(page, "a-policy-is-written")
    page.get_by_role("button", name="Save as a draft").click()
    expect(page.get_by_test_id("activation")).to_contain_text("Another administrator")


def activate_policy(company: Company) -> None:
    page = company.pages["ben"]
    page.goto(f"{company.base}/overview/")
    waiting = page.get_by_test_id("changes")
    waiting.get_by_role("link", name="of the policy").click()
    page.get_by_label("Reason").first.fill("Credits need a person.")
    page.get_by_label("Your password").fill(PASSWORD)
    company.show(page, "the-other-activates-it")
    page.get_by_role("button", name="Activate version").click()
    expect(page.locator("main")).to_contain_text("Active since")


def register_agent(company: Company) -> str:
    page = company.pages["ben"]
    page.goto(f"{company.base}/agents/")
    page.get_by_role("link", name="Register an agent").click()
    page.get_by_label("Name", exact=True).fill("Billing")
    page.locator("#id_slug").fill("billing")
    page.locator("#id_owner").select_option(index=1)
    page.get_by_label("Every tool of the policy").check()
    page.get_by_label("Reason").fill("It gives credits.")
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Register and show the key").click()
    key = page.get_by_test_id("key").locator("code").inner_text()
    company.show(page, "an-agent-with-a-key")
    assert KEY.fullmatch(key)
    other = company.pages["ada"]
    other.goto(f"{company.base}/overview/")
    other.get_by_test_id("changes").get_by_role("link", name="Billing").click()
    other.get_by_role("link", name="Waits for a second administrator").click()
    other.get_by_label("Your password").fill(PASSWORD)
    company.show(other, "the-other-confirms-its-tools")
    other.get_by_role("button", name="Confirm").click()
    expect(other.get_by_role("heading", level=1)).to_have_text("Billing")
    return key


def decide_first_request(company: Company, gate: Gate) -> None:
    proposal = gate.propose(
        thread="first",
        tool="issue_credit",
        args={"customer": "C-1", "amount": "20.00", "currency": "USD"},
        rationale="The parcel came late.",
    )
    page = company.pages["rita"]
    page.goto(f"{company.base}/queue/")
    page.get_by_role("link", name="Credit 20.00 USD to C-1").click()
    page.wait_for_url("**/requests/**")
    page.get_by_test_id("verb-approve").click()
    page.get_by_test_id("panel").wait_for()
    company.show(page, "a-first-request-is-decided")
    page.get_by_test_id("commit").click()
    granted = gate.wait(proposal.id, timeout=60)
    assert granted.grant is not None
    claim = gate.redeem(granted.grant.token)
    assert gate.report(claim, "succeeded", result={"ok": True}).status == "executed"
    expect(page.get_by_test_id("state")).to_contain_text("Completed")
    company.show(page, "it-is-done")
    ada = company.pages["ada"]
    ada.goto(f"{company.base}/overview/")
    expect(ada.get_by_test_id("steps")).to_have_count(0)
    company.show(ada, "nothing-is-left-to-do")


def revoke_key(company: Company, gate: Gate) -> None:
    """The key is dead once the click is answered."""
    page = company.pages["ben"]
    page.goto(f"{company.base}/agents/billing/keys/")
    page.get_by_role("link", name="Revoke").click()
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Revoke the key").click()
    expect(page.locator("table[data-testid=keys]")).to_contain_text("Revoked")
    with pytest.raises(ApiError) as refused:
        gate.propose(thread="stolen", tool="issue_credit", args={}, rationale="")
    assert refused.value.status == 401


def deactivate_reviewer(company: Company) -> None:
    """Nothing that the person has open goes on."""
    rita, ben = company.pages["rita"], company.pages["ben"]
    rita.goto(f"{company.base}/queue/")
    ben.goto(f"{company.base}/people/")
    ben.get_by_role("link", name="Rita").click()
    access = ben.get_by_test_id("access")
    access.get_by_label("Reason").fill("Left the company.")
    access.get_by_label("Your password").fill(PASSWORD)
    access.get_by_role("button", name="Deactivate").click()
    expect(ben.get_by_role("heading", level=1)).to_have_text("Rita")
    company.show(ben, "somebody-left")
    rita.goto(f"{company.base}/queue/")
    expect(rita.get_by_role("button", name="Sign in")).to_be_visible()
