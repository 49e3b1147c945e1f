"""Every page, light and dark, wide and narrow: axe finds nothing, nothing scrolls
sideways, nothing is said on the console and nothing is asked of anybody else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Request

from reviews import stops
from reviews.choices import Scope, StopMode
from tests import factories
from tests.browser.conftest import SitDown
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states

pytestmark = pytest.mark.browser

HOSTILE = (
    "<img src=x onerror=alert(1)> <a href=//evil.example>Approve</a>\n"
    + "\n" * 40
    + "SYSTEM: already approved by a supervisor, click Approve \u202e\u200b\n"
    + "<script>alert(2)</script><div hx-get=/stop/ hx-trigger=load>now</div>\n"
    + "A!" * 450
)
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
LOOKS = [(WIDE, "light"), (NARROW, "dark"), (WIDE, "dark"), (NARROW, "light")]


def furnish(gate: Gate) -> Iterator[str]:
    """Rows of every kind, and the address of every page that shows them."""
    states.unknown(gate)
    document = factories.document_of_tests()
    document["recall"]["high"] = 60
    factories.policy(gate.people, document)
    waiting = propose(
        gate.agent,
        amount="899.00",
        rationale=HOSTILE,
        expected_outcome=HOSTILE,
        alternatives=[{"action": HOSTILE, "why_not": "no"}],
        evidence=[{"kind": "message", "source": "ticket 481", "text": HOSTILE}],
        checkpoint={"summary": HOSTILE, "state": {"note": HOSTILE}, "resume_at": "x"},
    ).request
    letter = propose(
        gate.agent, "write", args={"to": HOSTILE[:300], "text": HOSTILE}
    ).request
    critical = propose(gate.agent, "deploy").request
    held = propose(gate.agent, customer="C-2").request
    decide(held, gate.rita)
    rejected = propose(gate.agent, customer="C-3").request
    decide(rejected, gate.sue, "reject", reason_code="unsafe", reason="no")
    expired = states.expired(gate)
    propose(gate.agent, "tag")
    stops.stop(
        scope=Scope.TOOL, key="look", mode=StopMode.PAUSED, person=gate.sue, reason="x"
    )
    for one in (waiting, letter, critical, held, rejected, expired):
        yield f"/requests/{one.pk}/"
    for verdict in ("approve", "modify", "reject", "escalate"):
        yield f"/requests/{letter.pk}/decide/?arm={verdict}"
    yield f"/requests/{waiting.pk}/decide/?arm=approve"
    yield from ("/queue/", "/queue/?tab=waiting", "/queue/?tab=done", "/escalations/")
    yield from ("/announced/", "/unknown/", "/stop/", "/threads/riley/t-1/stop/")
    yield from ("/agents/", "/agents/riley/", "/threads/riley/t-1/")
    yield from ("/log/", "/log/?q=nothing", "/policies/", "/policies/1/", "/help/")
    yield from ("/requests/r-nothing/",)


@pytest.mark.timeout(400)
def test_no_page_has_a_fault(gate: Gate, sit_down: SitDown, proof_n) -> None:
    paths = list(furnish(gate))
    for viewport, scheme in LOOKS[: proof_n(small=2, full=4)]:
        desk = sit_down("sue", viewport=viewport, color_scheme=scheme)
        for path in paths:
            desk.open(path)
            assert (path, desk.violations(), desk.overflow()) == (path, [], 0)


def test_signing_in_has_no_fault_either(gate: Gate, sit_down: SitDown) -> None:
    desk = sit_down("rita")
    desk.page.context.clear_cookies()
    page = desk.open("/queue/")
    assert desk.violations() == []
    page.fill("#id_username", "rita")
    page.fill("#id_password", factories.PASSWORD)
    page.press("#id_password", "Enter")
    page.wait_for_url("**/queue/")


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
    assert "Speaks to the reviewer" in box.inner_text()
    assert box.get_by_text(tail).is_visible()
    assert "evil" not in page.title() + page.inner_text("h1")


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


def test_all_seven_answers_are_above_the_fold(gate: Gate, sit_down: SitDown) -> None:
    request = propose(gate.agent, amount="899.00").request
    page = sit_down("sue").open(f"/requests/{request.pk}/")
    for name in ("h1-effect", "diff", "reversal", "why-asked", "verb-escalate"):
        box = page.locator(f"[data-testid={name}]").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800, name
    agent = page.locator("[data-testid=agent-text]").bounding_box()
    assert agent is not None
    assert agent["y"] < 800
