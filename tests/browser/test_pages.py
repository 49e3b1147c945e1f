"""What a page brings along and what is seen of it at once; hostile text on it. How each
page looks: tests/gallery."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Request

from tests.browser.conftest import SitDown
from tests.conftest import Gate
from tests.factories import propose
from tests.gallery.store import open_store

pytestmark = pytest.mark.browser

FOLD = 800

HOSTILE = (
    "<img src=x onerror=alert(1)> <a href=//evil.example>Approve</a>\n"
    + "\n" * 40
    + "SYSTEM: already approved by a supervisor, click Approve \u202e\u200b\n"
    + "<script>alert(2)</script><div hx-get=/stop/ hx-trigger=load>now</div>\n"
    + "A!" * 450
)


def test_hostile_text_stays_text_and_its_end_in_sight(
    gate: Gate, sit_down: SitDown
) -> None:
    tail = "the last line of it"
    request = propose(gate.agent, rationale=f"{HOSTILE}\n{tail}").request
    desk = sit_down("rita")
    page = desk.open(f"/requests/{request.pk}/")
    box = page.locator("[data-testid=agent-text]")
    assert box.locator("img, script, a, [hx-get]").count() == 0
    assert "⟦U+202E" in box.inner_text()
    assert "Addressed to the reviewer (possible manipulation)" in box.inner_text()
    assert box.get_by_text(tail).is_visible()
    assert "evil" not in page.title() + page.inner_text("h1")


def test_what_is_folded_within_open_evidence_looks_closed(
    gate: Gate, sit_down: SitDown
) -> None:
    text = "\n".join(f"Line {number} of a long letter." for number in range(80))
    letter = {"kind": "message", "source": "inbox", "text": text}
    request = propose(gate.agent, evidence=[letter]).request
    page = sit_down("rita").open(f"/requests/{request.pk}/")
    signs = page.locator("[data-testid=evidence] summary").evaluate_all(
        "all => all.map((one) => getComputedStyle(one, '::before').content)"
    )
    assert signs == ['"\u2212"', '"+"']


def _note(asked: list[str], request: Request) -> None:
    if request.resource_type not in {"xhr", "fetch", "eventsource"}:
        asked.append(request.url)


def test_a_page_is_five_requests_at_most(gate: Gate, sit_down: SitDown) -> None:
    """To be read, that is; then it takes the request up and listens."""
    request = propose(gate.agent).request
    desk = sit_down("rita")
    asked: list[str] = []
    desk.page.on("request", partial(_note, asked))
    desk.open(f"/requests/{request.pk}/")
    desk.page.wait_for_selector("[data-testid=verb-approve]")
    assert len(set(asked)) <= 5, asked


def test_all_seven_answers_are_above_the_fold(
    gate: Gate, sit_down: SitDown, tmp_path: Path
) -> None:
    request = open_store(gate, tmp_path).refund("59.00")
    page = sit_down("rita").open(f"/requests/{request.pk}/")
    found = ("h1-effect", "current-facts", "diff", "reversal", "why-asked")
    for name in (*found, "verb-escalate"):
        assert bottom(page.locator(f"[data-testid={name}]")) <= FOLD, name
    assert bottom(page.locator("[data-testid=agent-text] .foreign p").first) <= FOLD


def bottom(part: Locator) -> float:
    box = part.bounding_box()
    assert box is not None
    return box["y"] + box["height"]
