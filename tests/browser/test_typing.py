"""What a person types changes the field they type into, and nothing else."""

from __future__ import annotations

import random
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from agents.models import Agent
from journal.models import LogRecord
from policies.choices import Role
from policies.models import PolicyVersion
from reviews.holds import take
from reviews.models import (
    ApprovalRequest,
    Decision,
    Hold,
    Message,
    Preferences,
    Stop,
)
from reviews.people import preferences
from reviews.people.preferences import DisplayPreferences
from tests import factories
from tests.browser.conftest import Desk, SitDown, arm, look, settle
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews.batches.batching import formed

pytestmark = pytest.mark.browser

# Every shortcut of the request page is among them.
LETTERS = "aabbcdeeemnopqrsuvxz"
MARKS = ["", "", ".", ",", "?", "!", "/", "[", "]", "'"]
SENTENCES = 12  # into each of more than twenty places


def write_sentences(seed: str, count: int = SENTENCES) -> list[str]:
    """Short sentences with capitals, digits and marks, the same for one seed."""
    draw = random.Random(seed)

    def write_word() -> str:
        if draw.random() < 0.25:
            return str(draw.randrange(1, 200))
        word = "".join(draw.choices(LETTERS, k=draw.randint(1, 3)))
        return word.title() if draw.random() < 0.3 else word

    words = [write_word() + draw.choice(MARKS) for _ in range(3 * count)]
    return [" ".join(words[n : n + 3]) for n in range(0, len(words), 3)]


def record_state() -> dict[str, Any]:
    """What a shortcut could change. A claim is taken by opening the page."""
    records = LogRecord.objects.exclude(kind__startswith="hold.")
    return {
        "requests": list(
            ApprovalRequest.objects.order_by("pk").values_list(
                "pk", "status", "version", "expires_at", "recall_until"
            )
        ),
        "holders": list(
            Hold.objects.order_by("pk").values_list("pk", "holder", "offered_to")
        ),
        "records": list(records.order_by("pk").values_list("pk", "kind")),
        "messages": Message.objects.count(),
        "decisions": Decision.objects.count(),
        "stops": Stop.objects.count(),
        "policies": PolicyVersion.objects.count(),
        "agents": Agent.objects.count(),
        "preferences": list(Preferences.objects.order_by("pk").values()),
    }


def type_sentences(page: Page, seed: str) -> str:
    """Sentences into whatever has the focus; returns what was typed."""
    text = "; ".join(write_sentences(seed))
    page.keyboard.type(text)
    return text


# Also in a part of the page that is folded away.
FOCUS = "one => { one.closest('details')?.setAttribute('open', ''); one.focus() }"


def open_request(gate: Gate, sit_down: SitDown, name: str = "rita") -> Desk:
    request = propose(gate.agent).request
    desk = sit_down(name)
    desk.open(f"/requests/{request.pk}/")
    return desk


def arm_and_claim(desk: Desk, key: str) -> None:
    """Open a panel and wait for the claim that comes with it."""
    arm(desk, key)
    expect(desk.page.get_by_test_id("state")).to_contain_text("Claimed by you")
    settle(desk.page)


@pytest.mark.parametrize("key", ["q", "b", "a", "x", "u"])
def test_a_panel_of_a_request_takes_every_letter(
    gate: Gate, sit_down: SitDown, key: str
) -> None:
    desk = open_request(gate, sit_down)
    page = desk.page
    arm_and_claim(desk, key)
    before, address = record_state(), page.url
    text = type_sentences(page, key)
    settle(page)
    expect(page.locator("#id_reason")).to_have_value(text)
    assert page.locator(".panel :checked").count() == 0
    assert (record_state(), page.url) == (before, address)


def test_an_edit_changes_its_field_alone(gate: Gate, sit_down: SitDown) -> None:
    desk = open_request(gate, sit_down)
    page = desk.page
    arm_and_claim(desk, "m")
    before, address = record_state(), page.url
    text = type_sentences(page, "m")
    settle(page)
    expect(page.locator("[name='arg.customer']")).to_have_value(text)
    expect(page.locator("[name='arg.amount']")).to_have_value("40.00")
    expect(page.locator("#id_reason")).to_have_value("")
    assert (record_state(), page.url) == (before, address)


def test_a_panel_without_a_field_takes_no_letter(gate: Gate, sit_down: SitDown) -> None:
    desk = open_request(gate, sit_down)
    page = desk.page
    arm(desk, "e")
    before, address = record_state(), page.url
    type_sentences(page, "e")
    settle(page)
    expect(page.get_by_role("heading", name="Extend the deadline")).to_be_visible()
    assert (record_state(), page.url) == (before, address)


@pytest.mark.parametrize("sentence", ["4 parcels", "12 parcels", "9", "Parcel 4", "3?"])
def test_a_sentence_with_a_digit_chooses_no_reason(
    gate: Gate, sit_down: SitDown, sentence: str
) -> None:
    desk = open_request(gate, sit_down)
    page = desk.page
    arm(desk, "x")
    page.keyboard.type(sentence)
    if len(sentence) == 1:
        page.keyboard.type("9")
        sentence += "9"
    expect(page.locator("#id_reason")).to_have_value(sentence)
    assert page.locator("[name=reason_code]:checked").count() == 0


def test_one_digit_chooses_a_reason_and_two_strokes_reject(
    gate: Gate, sit_down: SitDown
) -> None:
    desk = open_request(gate, sit_down)
    page = desk.page
    arm(desk, "x")
    page.keyboard.press("1")
    expect(page.locator("[name=reason_code]").first).to_be_checked()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#outcome")).to_contain_text("Rejected")
    assert Decision.objects.get().reason_code == "wrong_target"


class Held:
    """Answers to one address that wait until the test lets them go."""

    def __init__(self, page: Page, pattern: str, method: str) -> None:
        self.routes: list[Route] = []
        self.method, self.free = method, False
        page.route(pattern, self._hold)

    def _hold(self, route: Route) -> None:
        if route.request.method == self.method and not self.free:
            self.routes.append(route)
        else:
            route.continue_()

    def release(self) -> None:
        self.free = True
        for route in self.routes:
            route.continue_()


@pytest.mark.parametrize(
    ("key", "text", "asks"),
    [
        ("q", "Please, who?", "**/decide/*"),
        ("x", "4 or 5?", "**/decide/*"),
        ("s", "11 at once, so stop", "**/stop/**"),  # of another page
    ],
)
def test_what_is_typed_before_the_panel_is_there_is_kept(
    gate: Gate, sit_down: SitDown, key: str, text: str, asks: str
) -> None:
    desk = open_request(gate, sit_down)
    page = desk.page
    page.keyboard.press("c")
    expect(page.get_by_test_id("state")).to_contain_text("Claimed by you")
    settle(page)
    before = record_state()
    held, came_from = Held(page, asks, "GET"), page.url
    page.keyboard.press(key)
    page.keyboard.type(text)
    held.release()
    expect(page.locator("#id_reason")).to_have_value(text)
    assert page.locator(":is(.panel, .reasons) :checked").count() == 0
    left = {"holders": before["holders"]} if key == "s" else {}  # leaving gives it back
    assert {**record_state(), **left} == before
    page.keyboard.press("Escape")
    page.wait_for_url(came_from)


def test_a_field_that_is_chosen_before_the_answer_settles_keeps_the_focus(
    gate: Gate, sit_down: SitDown
) -> None:
    for name in ("una", "uri"):
        factories.admitted(name, Role.SUPERVISOR)
    request = propose(gate.agent, "deploy", args={"ref": "main"}).request
    page = sit_down("sue").open(f"/requests/{request.pk}/")
    page.evaluate("""() => {
        const choose = () => document.querySelector("#id_password")?.focus();
        document.addEventListener("htmx:afterSwap", choose, {once: true});
        document.addEventListener("htmx:afterSettle", () => window.settled = true);
    }""")
    page.get_by_test_id("verb-approve").click()
    page.wait_for_function("() => window.settled")
    expect(page.locator("#id_password")).to_be_focused()


def test_a_digit_typed_at_once_goes_on_after_the_draft(
    gate: Gate, sit_down: SitDown
) -> None:
    desk = open_request(gate, sit_down)
    page, note = desk.page, desk.page.locator("#id_reason")
    arm_and_claim(desk, "x")
    note.fill("Not ours.")
    for typed, kept in (("4 parcels", "Not ours. 4 parcels"), ("x2", None)):
        page.keyboard.press("Escape")
        expect(page.get_by_test_id("panel")).to_have_count(0)
        settle(page)
        held = Held(page, "**/decide/*", "GET")
        page.keyboard.press("x")
        page.keyboard.type(typed)
        held.release()
        expect(note).to_have_value(kept or "Not ours. 4 parcels x2")
    assert page.locator("[name=reason_code]:checked").count() == 0


def test_a_rejection_typed_at_once_is_sent_whole(gate: Gate, sit_down: SitDown) -> None:
    desk = open_request(gate, sit_down)
    page = desk.page
    for key in ("x", "2", "Control+Enter"):
        page.keyboard.press(key)
    expect(page.locator("#outcome")).to_contain_text("Rejected")
    assert Decision.objects.get().reason_code == "wrong_amount"


@pytest.fixture
def undoable(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["recall"]["high"] = 60
    factories.policy(gate.people, document)


@pytest.mark.parametrize("verdict", ["approve", "modify", "approve and go on"])
def test_the_undo_is_kept_while_the_approval_is_sent(
    gate: Gate, undoable: None, sit_down: SitDown, verdict: str
) -> None:
    desk = open_request(gate, sit_down)
    page = desk.page
    if verdict == "approve and go on":
        go_on_after_decisions(gate)
    arm(desk, "m" if verdict == "modify" else "a")
    if verdict == "modify":
        page.fill("[name='arg.amount']", "12.00")
    held = Held(page, "**/decide/", "POST")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_test_id("commit").locator(".busy")).to_be_visible()
    page.keyboard.press("z")
    if verdict == "modify":  # the preview of the edit is answered in between
        expect(page.get_by_test_id("edited-effect")).to_be_visible()
    held.release()
    message = page.get_by_test_id("message")
    expect(message).to_have_text("Undone. You can decide it again.")
    assert set(ApprovalRequest.objects.values_list("status", flat=True)) == {"pending"}
    assert LogRecord.objects.filter(kind="request.recalled").count() == 1


def go_on_after_decisions(gate: Gate) -> None:
    propose(gate.agent, customer="C-2", thread="t-2")
    preferences.save_preferences(
        person=gate.rita, display=DisplayPreferences(advance="on")
    )


def press_in_place(desk: Desk, key: str, code: str, **more: Any) -> None:
    """One key as a keyboard of another layout sends it."""
    tools = desk.page.context.new_cdp_session(desk.page)
    for kind in ("keyDown", "keyUp"):
        tools.send(
            "Input.dispatchKeyEvent",
            {"type": kind, "key": key, "code": code, "text": key, **more},
        )
    tools.detach()


@pytest.mark.parametrize(
    ("key", "code", "panel"),
    [("ф", "KeyA", "Approve"), ("ч", "KeyX", "Reject"), ("ض", "KeyQ", "Ask the agent")],
)
def test_keys_work_on_a_layout_without_latin_letters(
    gate: Gate, sit_down: SitDown, key: str, code: str, panel: str
) -> None:
    desk = open_request(gate, sit_down)
    press_in_place(desk, key, code)
    expect(desk.page.locator("#panel")).to_have_text(panel)


def test_no_key_acts_with_a_modifier_or_while_it_composes(
    gate: Gate, sit_down: SitDown
) -> None:
    desk = open_request(gate, sit_down)
    page = desk.page
    page.keyboard.press("Alt+a")
    page.keyboard.press("Shift+A")
    page.evaluate(
        "document.body.dispatchEvent(new KeyboardEvent('keydown',"
        " {key: 'x', code: 'KeyX', bubbles: true, isComposing: true}))"
    )
    settle(page)
    assert page.get_by_test_id("panel").count() == 0


def test_a_confirmation_in_another_form_confirms_no_panel(
    gate: Gate, sit_down: SitDown
) -> None:
    desk = open_request(gate, sit_down)
    page = desk.page
    arm(desk, "a")
    page.fill("#find", "order")
    page.locator("#find").press("Control+Enter")
    settle(page)
    assert not Decision.objects.exists()


def test_more_time_is_confirmed_and_can_be_cancelled(
    gate: Gate, sit_down: SitDown
) -> None:
    desk = open_request(gate, sit_down)
    page, request = desk.page, ApprovalRequest.objects.get()
    arm(desk, "e")
    assert desk.violations() == []
    page.keyboard.press("Escape")
    desk.gets_focus("extend")
    request.refresh_from_db()
    assert not LogRecord.objects.filter(kind="request.extended").exists()
    arm(desk, "e")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_test_id("message")).to_contain_text("Extended by 30 min")
    assert "Extended by 30 min" in desk.heard()
    assert LogRecord.objects.filter(kind="request.extended").count() == 1


def test_the_conditions_of_an_approval_take_every_letter(
    gate: Gate, sit_down: SitDown
) -> None:
    desk = open_request(gate, sit_down)
    page = desk.page
    arm_and_claim(desk, "a")
    page.get_by_text("Conditions", exact=True).click()
    before, address = record_state(), page.url
    page.locator("[name=expect]").first.focus()
    text = type_sentences(page, "expect")
    page.locator("#id_not_before").focus()
    type_sentences(page, "time")
    settle(page)
    assert (record_state(), page.url) == (before, address)
    expect(page.locator("#id_reason")).to_have_value(text)
    assert page.locator(".panel :checked").count() == 0


# By person: the pages of one after the other, and the field that takes the letters.
PLACES = {
    "rita": {
        "/requests/{pk}/hold/give/": "",
        "/threads/riley/t-1/stop/": "#id_reason",
        "/queue/": "#find",
        "/me/tokens/": "#token-name",
        "/me/shortcuts/": "#find",
    },
    "sue": {
        "/alarms/": "#find",
        "/unknown/": "#find",
        "/escalations/": "#find",
        "/escalations/{escalated}/": "#id_guidance",
        "/requests/{held}/hold/break/": "#id_reason",
        "/incidents/": "#id_reason",
        "/on-call/": "#id_person",
    },
    "otto": {"/log/": "#log-q"},
    "alma": {"/policies/new/": "#id_document"},
}


@pytest.mark.parametrize("name", PLACES)
def test_a_page_takes_every_letter(gate: Gate, sit_down: SitDown, name: str) -> None:
    waiting, held, escalated = (
        propose(gate.agent, thread=f"t-{n}", customer=f"C-{n}").request
        for n in (1, 2, 3)
    )
    take.take_hold(request_id=held.pk, person=gate.tom)
    factories.decide(escalated, gate.rita, "escalate", reason_code="unsafe")
    desk = sit_down(name)
    for path, field in PLACES[name].items():
        page = desk.open(
            path.format(pk=waiting.pk, held=held.pk, escalated=escalated.pk)
        )
        if field:
            page.locator(field).first.evaluate(FOCUS)
        before, address = record_state(), page.url
        text = type_sentences(page, path)
        settle(page)
        assert (record_state(), page.url) == (before, address)
        if field in {"#id_reason", "#id_guidance"}:
            expect(page.locator(field).first).to_have_value(text)
            assert page.locator("[name=reason_code]:checked").count() == 0


def test_a_batch_takes_every_letter(gate: Gate, sit_down: SitDown) -> None:
    batch = formed(gate, "7.00", "7.20", "7.40")
    desk = sit_down("rita")
    page = desk.open(f"/batches/{batch.pk}/")
    arm(desk, "x")
    before, address = record_state(), page.url
    text = type_sentences(page, "batch")
    settle(page)
    expect(page.locator("#id_reason")).to_have_value(text)
    assert page.locator("[name=reason_code]:checked").count() == 0
    assert (record_state(), page.url) == (before, address)


def test_what_goes_on_after_the_field_is_gone_does_nothing(
    gate: Gate, sit_down: SitDown
) -> None:
    """Another version takes the panel away in the middle of a word."""
    desk = open_request(gate, sit_down)
    page = desk.page
    arm_and_claim(desk, "m")
    page.keyboard.type("C-1 becau")
    request = ApprovalRequest.objects.get()
    factories.revise(gate.agent, request.proposal, amount="400.00")
    look(page)
    expect(page.get_by_test_id("panel")).to_have_count(0)
    before, address = record_state(), page.url
    page.keyboard.type("se it is expensive, not ours, reason 3")
    settle(page)
    assert (record_state(), page.url) == (before, address)
    page.keyboard.press("Tab")
    page.keyboard.press("r")
    expect(page.locator("h1")).to_contain_text("400.00")
