"""Stop in a browser: three strokes from a run, with and without JavaScript, and a list
that is live until nothing runs. And the pages around it: no fault at any width."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from reviews.choices import STOP_REASON_LABELS, Scope, StopMode, StopReason
from reviews.executions import claims, record
from reviews.models import Stop
from reviews.stops import stops
from reviews.tool_services.executors import EffectOutcome
from tests.browser.conftest import LOOKS, SitDown
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews import states

pytestmark = pytest.mark.browser
CHECKPOINT = {
    "summary": "Waits for the refund.",
    "state": {
        "goal": "Refund it",
        "plan": [{"step": "look", "state": "done"}, {"step": "pay", "state": "next"}],
        "budget": {"tokens": 1200},
        "tries": 2,
    },
    "blob": "c2VjcmV0LWJsb2I=",
    "resume_at": "execute",
}


def test_a_run_stops_in_three_strokes_and_says_when_it_is_halted(
    gate: Gate, sit_down: SitDown
) -> None:
    running = states.claimed(gate)
    desk = sit_down("sue")
    page = desk.open("/threads/riley/t-1/")
    page.keyboard.press("s")
    expect(
        page.get_by_test_id("in-flight").locator("[data-fate=running]")
    ).to_be_visible()
    page.keyboard.press("3")
    page.keyboard.press("Control+Enter")
    halt = page.locator("[data-testid=halt]")
    expect(halt).to_have_attribute("data-state", "stopping")
    expect(halt).to_contain_text("1 still running")
    desk.gets_focus("h1")
    running.refresh_from_db()
    record.record_outcome(
        execution_id=running.pk,
        fence=running.fence,
        outcome=EffectOutcome("succeeded"),
        actor=claims.EXECUTOR_ACTOR,
    )
    expect(halt).to_contain_text("1 had already started and finished")
    expect(halt).to_have_attribute("data-state", "stopped")
    expect(page.locator("#sr-status")).to_contain_text("Stopped")
    desk.gets_focus("h1")
    said = STOP_REASON_LABELS[StopReason.RUNAWAY]
    assert Stop.objects.get().reason == f"{said}."


def test_what_is_chosen_says_what_it_does(gate: Gate, sit_down: SitDown) -> None:
    propose(gate.agent)
    page = sit_down("adam").open("/threads/riley/t-1/stop/?mode=paused")
    commit = page.locator("[data-testid=commit]")
    expect(commit).to_contain_text("Pause now")
    kept = page.get_by_text("pending request: will stay open").first
    expect(kept).to_be_visible()
    expect(page.locator("#id_sure")).to_be_hidden()
    page.check('[name=target][value="everything:"]')
    expect(page.locator("#id_sure")).to_be_visible()
    page.check("[name=mode][value=stopped]")
    expect(commit).to_contain_text("Stop now")
    expect(kept).to_be_hidden()


def test_without_javascript_it_stops_and_goes_on_again(
    gate: Gate, sit_down: SitDown
) -> None:
    propose(gate.agent)
    page = sit_down("sue", javascript=False).open("/threads/riley/t-1/")
    page.get_by_role("link", name="Stop run…").click()
    page.click("[data-testid=commit]")
    expect(page.locator("#problem")).to_be_visible()
    assert not Stop.objects.exists()
    page.fill("#id_reason", "Odd mails.")
    page.click("[data-testid=commit]")
    expect(page.locator("[data-testid=switch]")).to_contain_text("Odd mails.")
    page.click("[data-testid=lift] summary")
    page.fill("[data-testid=lift] textarea", "Fixed.")
    page.click("[data-testid=lift] button")
    expect(page.get_by_test_id("halt")).to_have_attribute("data-state", "resumed")
    assert Stop.objects.get().lifted_at is not None


def test_no_page_around_it_has_a_fault(gate: Gate, sit_down: SitDown, proof_n) -> None:
    states.failed(gate)
    states.claimed(gate)
    states.queued(gate, "pay_queryable")
    parent = propose(gate.agent, checkpoint=CHECKPOINT)
    propose(gate.agent, thread="t-2", parent=parent.pk, customer="C-9")
    row = stops.create_stop(
        scope=Scope.THREAD, key="riley/t-2", person=gate.sue, reason="x"
    )
    stops.create_stop(
        scope=Scope.AGENT,
        key="riley",
        mode=StopMode.PAUSED,
        person=gate.sam,
        reason="Odd.",
    )
    paths = [
        *("/agents/", "/agents/riley/", "/threads/riley/t-1/", "/threads/riley/t-2/"),
        *("/stop/", "/agents/riley/stop/", "/threads/riley/t-2/stop/"),
        *(f"/stop/{row.pk}/", "/queue/load/"),
    ]
    for viewport, scheme in LOOKS[: proof_n(small=2, full=4)]:
        desk = sit_down("sue", viewport=viewport, color_scheme=scheme)
        for path in paths:
            desk.open(path)
            assert (path, desk.violations(), desk.overflow()) == (path, [], 0)
