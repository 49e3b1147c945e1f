"""The tour of the README, as a person walks it after `make up`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PAINTED, WITHIN_MS
from tests.installations import Up, copy_installation, up
from tests.stack import free_port, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.servers]

REFUND = re.compile(r"Refund (\d+\.\d\d) USD for order (\d+)")


@dataclass
class Demo:
    """The running product, and how its people sign in."""

    browser: Browser
    base: str
    store: str
    logins: dict[str, Any]

    def sign_in(self, name: str) -> Page:
        page = self.browser.new_context().new_page()
        page.set_default_timeout(WITHIN_MS)
        login = self.logins[name]
        page.goto(f"{self.base}/sign-in/")
        page.fill("#id_username", login["username"])
        page.fill("#id_password", login["password"])
        page.press("#id_password", "Enter")
        page.wait_for_url(re.compile("/(queue|overview)/$"))
        page.goto(f"{self.base}/queue/")
        return page

    def ledger(self) -> Page:
        page = self.browser.new_context().new_page()
        page.goto(self.store)
        return page


def find_addresses(running: Up) -> list[str]:
    """The addresses on the lines that it has printed to their end."""
    lines = running.said.rpartition("\n")[0]
    return re.findall(r"http://[\d.]+:\d+", lines)


@pytest.fixture
def demo(tmp_path: Path, browser: Browser) -> Iterator[Demo]:
    state = tmp_path / "state"
    copy_installation(state)
    expect.set_options(timeout=WITHIN_MS)
    with up(state, free_port(), RILEY="1", RILEY_PACE="2") as running:
        # The store's address is printed after Counterseal's own.
        wait_until(lambda: len(find_addresses(running)) >= 2, 60, lambda: running.said)
        said = find_addresses(running)
        handed = json.loads((state / "demo.json").read_text())
        yield Demo(browser, said[0], said[1], handed["logins"])


def count_refunds(ledger: Page) -> int:
    """What the store's own page says; of the history, there may be some."""
    figures = ledger.locator(".figures").inner_text()
    found = re.search(r"Refunds paid\s*(\d+)", figures)
    assert found is not None, figures
    return int(found[1])


def open_first(page: Page, name: re.Pattern[str] | str) -> re.Match[str]:
    """Open the first request of the queue with such a sentence, once one waits."""
    row = page.locator("tbody a.effect").filter(has_text=name).first
    wait_for_row(page, row.is_visible)
    found = REFUND.search(row.inner_text())
    assert found is not None
    row.click()
    expect(page.locator("h1")).to_contain_text(found[0])
    page.evaluate(PAINTED)
    return found


def wait_for_row(page: Page, there: Callable[[], bool]) -> None:
    """Load the queue until it is there: Riley works at its own pace."""
    for _ in range(60):
        if there():
            return
        page.wait_for_timeout(1000)
        page.reload()
    raise AssertionError(page.inner_text("main"))


def approve(page: Page, **fields: str) -> None:
    """`A`, read until the page lets one decide, `Ctrl` and `Enter`."""
    page.keyboard.press("a")
    page.wait_for_selector("[data-testid=panel]:focus-within")
    for name, value in fields.items():
        page.fill(f"[name={name}]", value)
    wait_floor(page)
    page.keyboard.press("Control+Enter")


def wait_floor(page: Page) -> None:
    """The page says from when an approval is taken."""
    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-testid=floor] time')]"
        ".every(one => Date.parse(one.dateTime) < Date.now())"
    )


def recall_and_approve(demo: Demo) -> None:
    page = demo.sign_in("reviewer")
    paid_before = count_refunds(demo.ledger())
    amount, order = open_first(page, REFUND).groups()
    approve(page)
    state = page.get_by_test_id("state")
    expect(state).to_contain_text("Approved, can be undone for")
    page.keyboard.press("z")
    expect(page.locator("#live")).to_contain_text("Approval undone.")
    expect(page.get_by_test_id("verb-approve")).to_be_visible()
    approve(page)
    expect(state).to_contain_text("Completed")
    ledger = demo.ledger()
    assert count_refunds(ledger) == paid_before + 1
    paid = ledger.locator("tr", has_text=order).filter(has_text=amount)
    expect(paid.first).to_be_visible()


def approve_as_two(demo: Demo) -> None:
    for name in ("supervisor", "supervisor2"):
        page = demo.sign_in(name)
        open_first(page, "Refund 899.00 USD for order 78291")
        approve(page, password=demo.logins[name]["password"])
    expect(page.get_by_test_id("state")).to_contain_text("Approved, can be undone for")


def reduce_alone(demo: Demo) -> None:
    page = demo.sign_in("supervisor")
    open_first(page, "Refund 899.00 USD for order 78291")
    page.keyboard.press("m")
    page.wait_for_selector("[data-testid=panel]:focus-within")
    page.fill("[name='arg.amount']", "449.50")
    written = page.get_by_test_id("check").locator("[name=written]")
    written.fill("The carrier confirmed by phone that it was stolen.")
    page.fill("[name=password]", demo.logins["supervisor"]["password"])
    wait_floor(page)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_test_id("state")).to_contain_text("Approved, can be undone for")


def reject_and_stop(demo: Demo) -> None:
    rita = demo.sign_in("reviewer")
    open_first(rita, REFUND)
    rita.keyboard.press("x")
    rita.wait_for_selector("[data-testid=panel]:focus-within")
    rita.keyboard.press("2")
    rita.keyboard.press("Control+Enter")
    expect(rita.locator("#outcome")).to_contain_text("Rejected")
    page = demo.sign_in("supervisor")
    page.get_by_role("link", name="Stop…").first.click()
    page.locator("[name=target][value='agent:riley']").check()
    page.get_by_label(re.compile(r"^\s*Stop\.")).check()
    page.locator("[name=reason_code][value=harm]").check()
    page.get_by_test_id("commit").click()
    expect(page.locator("main")).to_contain_text("riley")
    page.get_by_role("link", name="Audit log", exact=True).click()
    expect(page.locator("main")).to_contain_text("riley was stopped")


def test_one_supervisor_reduces_the_refund_and_says_why(demo: Demo) -> None:
    reduce_alone(demo)


def test_the_tour_goes_as_it_is_written(demo: Demo) -> None:
    recall_and_approve(demo)
    approve_as_two(demo)
    reject_and_stop(demo)
