"""A Chromium at the desk, signed in as one of the cast."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from hitl.environment import LOOPBACK

from .seed import PASSWORD

_ARGS = ["--no-sandbox", "--disable-dev-shm-usage"]


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """While it is open, nothing may ask the database from this thread: the browser's
    loop runs in it."""
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGS)
        try:
            yield browser
        finally:
            browser.close()


def sign_in(page: Page, port: int, name: str = "rita") -> str:
    """Through the page that people use; the address that all pages begin with."""
    base = f"http://{LOOPBACK}:{port}"
    page.goto(f"{base}/sign-in/?next=/help/")
    page.fill("#id_username", name)
    page.fill("#id_password", PASSWORD)
    page.press("#id_password", "Enter")
    page.wait_for_url(f"{base}/help/")
    return base
