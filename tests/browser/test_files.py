"""Files of evidence in a real browser: drawn, inert, hidden and revealed, with and
without JavaScript."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from journal.models import LogRecord
from reviews.evidence import files
from reviews.models import ApprovalRequest
from tests.browser.conftest import NARROW, WIDE, SitDown
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews.evidence.hostile_files import CSV, PDF, PNG, build_pdf, build_png

pytestmark = pytest.mark.browser

ROWS = "\n".join(["name,pay,note"] + ["ada,=1+1,a note of some length"] * 80).encode()
DRAWN = "images => images.map(image => image.complete && image.naturalWidth)"


@pytest.fixture
def waiting(gate: Gate) -> ApprovalRequest:
    """A request with a picture, a PDF, a table, and a picture that is sensitive."""
    sent = [
        (PNG, build_png(), False),
        (PDF, build_pdf(3), False),
        (CSV, ROWS, False),
        (PNG, build_png(color="blue"), True),
    ]
    evidence = []
    for media_type, body, sensitive in sent:
        file, _ = files.store_file(
            agent=gate.agent.slug, media_type=media_type, body=body
        )
        named = {"sha256": file.sha256, "name": "<img src=x onerror=alert(1)>.png"}
        item = {"kind": "file", "file": {**named, "sensitive": sensitive}}
        evidence.append(item)
    found: ApprovalRequest = propose(gate.agent, evidence=evidence).request
    return found


def measure_pictures(page: Page) -> list[int]:
    """The widths of the pictures of the evidence, once all are there."""
    pictures = page.locator("[data-testid=evidence] img")
    for number in range(pictures.count()):
        pictures.nth(number).scroll_into_view_if_needed()
        expect(pictures.nth(number)).to_have_js_property("complete", value=True)
    widths: list[int] = pictures.evaluate_all(DRAWN)
    return widths


@pytest.mark.parametrize("javascript", [True, False])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_pictures_pages_and_tables_are_there_and_nothing_scrolls_sideways(
    waiting: ApprovalRequest,
    sit_down: SitDown,
    viewport: Any,
    javascript: bool,
) -> None:
    desk = sit_down("rita", viewport=viewport, javascript=javascript)
    page = desk.open(f"/requests/{waiting.pk}/")
    assert measure_pictures(page) == [60, 200, 200, 200]
    evidence = page.locator("[data-testid=evidence]")
    expect(evidence.locator("table")).to_contain_text("=1+1")
    expect(evidence).to_contain_text("Rows 1 to 50 of 80 are shown.")
    expect(evidence).to_contain_text("Hidden until a person reveals it")
    expect(evidence.locator("img[src=x]")).to_have_count(0)
    assert desk.overflow() <= 0


@pytest.mark.parametrize("javascript", [True, False])
def test_a_supervisor_reveals_and_downloads_a_sensitive_file(
    waiting: ApprovalRequest, sit_down: SitDown, javascript: bool
) -> None:
    desk = sit_down("sue", javascript=javascript)
    page = desk.open(f"/requests/{waiting.pk}/")
    page.get_by_test_id("reveal").click()
    page.get_by_text("Reveal the file of evidence 4").click()
    open_form = page.locator("details[open] form")
    open_form.get_by_label("I cannot decide without it").check()
    open_form.get_by_role("button").click()
    revealed = page.get_by_test_id("revealed")
    expect(revealed.locator("img")).to_have_js_property("naturalWidth", value=60)
    with page.expect_download() as download:
        page.get_by_test_id("original").click()
    body = download.value.path().read_bytes()
    assert body == build_png(color="blue")
    assert LogRecord.objects.filter(kind="value.revealed").count() == 1
