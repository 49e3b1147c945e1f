"""Do browsers keep our cookies where we say that they do? Ask a real Chromium."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.stack import Stack

pytestmark = [pytest.mark.browser, pytest.mark.servers]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_chromium_keeps_host_cookies_over_http_on_loopback(
    live: Stack, page: Page, host: str
) -> None:
    page.goto(f"http://{host}:{live.port}/sign-in/")
    cookies = {cookie["name"]: cookie for cookie in page.context.cookies()}
    assert cookies["__Host-csrf"]["secure"]
    assert cookies["__Host-csrf"]["httpOnly"]
    assert cookies["__Host-csrf"]["path"] == "/"


def test_no_page_breaks_its_own_content_security_policy(
    live: Stack, page: Page
) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{live.base_url}/sign-in/")
    page.wait_for_load_state("networkidle")
    assert said == []
