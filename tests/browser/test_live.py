"""The stream in a real browser against the real stack: told, not asking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, ViewportSize, expect

from agents import keys
from policies import people
from policies.choices import Role
from reviews.administration import accounts
from tests import factories
from tests.browser.conftest import WITHIN_MS, Desk, listen, settle, sign_in
from tests.conftest import Gate
from tests.stack import Stack, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.servers]

LOOKS_WITHIN_MS = 300  # after it was told: a fifth of a second at most
POLLS_WITHIN_MS = 7000  # without a stream: every five seconds


@dataclass
class Outside:
    """The agent, over HTTP."""

    base: str
    key: str
    count: int = 0

    def post(self, path: str, body: Any) -> Any:
        self.count += 1
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Idempotency-Key": f"k-{self.count}",
        }
        answer = httpx2.post(
            f"{self.base}/api/v1{path}", json=body, headers=headers, trust_env=False
        )
        assert answer.is_success, answer.text
        return answer.json()

    def propose(self) -> Any:
        args = {"customer": f"C-{self.count}", "amount": "40.00", "currency": "USD"}
        body = {"thread": f"t-{self.count}", "tool": "pay", "args": args}
        return self.post("/proposals", {**body, "rationale": "asked"})


@pytest.fixture
def outside(live: Stack, gate: Gate) -> Outside:
    return Outside(live.base_url, keys.issue_key(agent=gate.agent, by=gate.owen))


@dataclass
class Watched:
    """A desk and what its page asked for."""

    desk: Desk
    asked: list[str] = field(default_factory=list)

    @property
    def page(self) -> Page:
        return self.desk.page

    def polls(self) -> list[str]:
        return [url for url in self.asked if "/live/" in url or "/fresh/" in url]


@pytest.fixture
def watch(
    live: Stack, gate: Gate, browser: Browser
) -> Iterator[Callable[..., Watched]]:
    opened: list[tuple[Any, Watched]] = []

    def start(name: str) -> Watched:
        size: ViewportSize = {"width": 1280, "height": 800}
        context = browser.new_context(viewport=size, timezone_id="UTC")
        context.set_default_timeout(WITHIN_MS)
        watched = Watched(Desk(context.new_page(), live.base_url))
        listen(watched.desk)
        watched.page.on("request", lambda one: watched.asked.append(one.url))
        sign_in(watched.desk, name)
        opened.append((context, watched))
        return watched

    expect.set_options(timeout=WITHIN_MS)
    yield start
    for context, watched in opened:
        assert watched.desk.complaints() == []
        context.close()


# Counts the events that a page hears, the looks that they ask for, and what becomes of
# its polls, which are no looks.
EARS = """
    window.events = 0
    window.looks = 0
    window.polls = {sent: 0, prevented: 0}
    document.addEventListener("htmx:beforeRequest", ({detail, defaultPrevented}) => {
        const look = detail.requestConfig.triggeringEvent?.type === "look"
        if (!detail.elt.matches("[data-poll]")) return
        if (look) window.looks += 1
        else window.polls[defaultPrevented ? "prevented" : "sent"] += 1
    })
    window.EventSource = class extends EventSource {
        constructor(address) {
            super(address)
            this.addEventListener("message", () => { window.events += 1 })
        }
    }
"""


def streaming(watched: Watched) -> None:
    """Wait until the page hears: its first event is there, and the state of a request,
    which it looks up after it."""
    page = watched.page
    page.add_init_script(EARS)
    watched.asked.clear()
    page.reload()
    page.wait_for_function("() => window.events > 0")
    if page.locator("#live").count():
        wait_until(lambda: bool(watched.polls()) or tick(page), WITHIN_MS / 1000)
        settle(page)


def test_a_queue_says_what_is_new_without_asking(
    outside: Outside, watch: Callable[..., Watched]
) -> None:
    rita = watch("rita")
    outside.propose()
    rita.desk.open("/queue/")
    streaming(rita)
    rita.asked.clear()
    outside.propose()
    expect(rita.page.locator("#fresh")).to_have_text("1 new · show")
    assert rita.page.locator("tbody tr").count() == 1
    assert rita.page.inner_text("#badge-queue") == "2"
    assert rita.page.title().startswith("(2) ")
    outside.propose()
    expect(rita.page.locator("#fresh")).to_have_text("2 new · show")
    assert rita.polls() == []
    assert "1 new" in rita.desk.heard()  # and not said again within half a minute
    rita.page.click("#fresh a")
    expect(rita.page.locator("tbody tr")).to_have_count(3)


def test_a_request_follows_what_happens_to_it(
    outside: Outside, watch: Callable[..., Watched]
) -> None:
    made = outside.propose()
    tom = watch("tom")
    page = tom.desk.open(f"/requests/{made['request']['id']}/")
    streaming(tom)
    focus = tom.desk.focus()
    outside.post(f"/proposals/{made['id']}/withdraw", {})
    expect(page.locator("[data-testid=state]")).to_contain_text("Withdrawn")
    assert tom.desk.focus() == focus != "BODY"
    # One look for an event at most: the first, of their own hold, of the withdrawal.
    # The page counts both at one moment, so a request of the page before the reload is
    # none of these, nor one between two questions.
    asked, events = page.evaluate("[window.looks + window.polls.sent, window.events]")
    assert 1 <= asked <= events, (asked, events, tom.polls())


def test_what_is_told_while_an_answer_is_under_way_is_looked_up(
    outside: Outside, watch: Callable[..., Watched]
) -> None:
    made = outside.propose()
    tom = watch("tom")
    tom.page.clock.install()
    page = tom.desk.open(f"/requests/{made['request']['id']}/")
    streaming(tom)
    under_way: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        under_way.append((route, route.fetch()))

    page.route("**/live/", hold, times=1)
    args = {"customer": "C-1", "amount": "41.00", "currency": "USD"}
    body = {"args": args, "rationale": "better"}
    outside.post(f"/proposals/{made['id']}/revisions", body)
    wait_until(lambda: bool(under_way) or tick(page), WITHIN_MS / 1000)
    outside.post(f"/proposals/{made['id']}/withdraw", {})
    expect(page.locator("#badge-queue")).to_have_text("")
    page.clock.run_for(LOOKS_WITHIN_MS)
    route, answer = under_way[0]
    route.fulfill(response=answer)
    expect(page.locator("[data-testid=state]")).to_contain_text("Withdrawn")


def test_a_look_that_gets_no_answer_is_repeated(
    outside: Outside, watch: Callable[..., Watched]
) -> None:
    made = outside.propose()
    tom = watch("tom")
    page = tom.desk.open(f"/requests/{made['request']['id']}/")
    streaming(tom)
    page.route("**/live/", lambda route: route.abort(), times=1)
    outside.post(f"/proposals/{made['id']}/withdraw", {})
    expect(page.locator("[data-testid=state]")).to_contain_text("Withdrawn")
    tom.desk.said.clear()  # the browser itself told of the look that failed


def test_while_it_streams_it_does_not_poll(
    outside: Outside, watch: Callable[..., Watched]
) -> None:
    made = outside.propose()
    tom = watch("tom")
    tom.page.clock.install()
    tom.desk.open(f"/requests/{made['request']['id']}/")
    streaming(tom)
    before = tom.page.evaluate("window.polls")
    tom.page.clock.run_for(POLLS_WITHIN_MS)
    tom.page.wait_for_function(
        "before => window.polls.prevented > before.prevented", arg=before
    )
    assert tom.page.evaluate("window.polls.sent") == before["sent"]


def test_a_hidden_page_closes_its_stream_and_catches_up(
    live: Stack, outside: Outside, watch: Callable[..., Watched]
) -> None:
    rita = watch("rita")
    page = rita.desk.open("/queue/")
    streaming(rita)
    hide(page, hidden=True)
    assert page.evaluate("performance.getEntriesByType('resource').length") > 0
    tom = watch("tom")
    tom.desk.open("/queue/")
    streaming(tom)
    rita.asked.clear()
    outside.propose()
    expect(tom.page.locator("#fresh")).to_have_text("1 new · show")
    assert page.inner_text("#fresh") == ""
    assert rita.asked == []
    hide(page, hidden=False)
    expect(page.locator("#fresh")).to_have_text("1 new · show")
    assert any("/events/" in url for url in rita.asked)


def hide(page: Page, *, hidden: bool) -> None:
    """What the browser tells a page when another tab comes before it."""
    page.evaluate(
        """hidden => {
            const get = () => hidden
            Object.defineProperty(document, "hidden", {configurable: true, get})
            document.dispatchEvent(new Event("visibilitychange"))
        }""",
        hidden,
    )


def test_without_a_stream_it_polls_as_before(
    outside: Outside, watch: Callable[..., Watched]
) -> None:
    made = outside.propose()
    tom = watch("tom")
    tom.page.route("**/events/**", lambda route: route.abort())
    page = tom.desk.open(f"/requests/{made['request']['id']}/")
    outside.post(f"/proposals/{made['id']}/withdraw", {})
    expect(page.locator("[data-testid=state]")).to_contain_text("Withdrawn")
    tom.desk.said.clear()  # the browser itself told of the stream that failed


def test_a_server_that_comes_back_is_found_again(
    live: Stack, gate: Gate, outside: Outside, watch: Callable[..., Watched]
) -> None:
    rita = watch("rita")
    page = rita.desk.open("/queue/")
    streaming(rita)
    live.kill_web()
    factories.propose(gate.agent)
    live.start_web()
    wait_until(lambda: page.inner_text("#fresh") == "1 new · show" or tick(page), 25)
    rita.desk.said.clear()  # the browser itself told of the lost connection


def tick(page: Page) -> bool:
    page.wait_for_timeout(200)
    return False


def test_a_deactivated_person_sees_that_they_are_signed_out(
    gate: Gate, watch: Callable[..., Watched]
) -> None:
    rita = watch("rita")
    page = rita.desk.open("/help/")  # a page that asks nothing by itself
    streaming(rita)
    accounts.deactivate_account(person=gate.rita, by=gate.adam)
    expect(page.locator("#trouble")).to_contain_text("You are signed out.")
    link = page.locator("#trouble").get_by_role("link", name="Sign in")
    assert (link.get_attribute("href") or "").startswith("/sign-in/?next=%2Fhelp%2F")
    assert "Nothing will be sent." in rita.desk.heard("#sr-alert")
    rita.desk.said.clear()  # the browser itself told of the 401


def test_signing_out_is_said_on_every_other_page(
    live: Stack, watch: Callable[..., Watched]
) -> None:
    rita = watch("rita")
    page = rita.desk.open("/help/")
    streaming(rita)
    other = page.context.new_page()
    other.goto(f"{live.base_url}/help/")
    other.locator("form[action='/sign-out/'] button").first.evaluate("b => b.click()")
    other.wait_for_url("**/sign-in/**")
    other.close()
    expect(page.locator("#trouble")).to_contain_text("You are signed out.")
    rita.desk.said.clear()


def test_a_page_whose_reader_got_another_role_listens_anew_at_once(
    gate: Gate, watch: Callable[..., Watched]
) -> None:
    rita = watch("rita")
    page = rita.desk.open("/help/")
    streaming(rita)
    rita.asked.clear()
    change = people.PersonChange(role=Role.SUPERVISOR)
    people.change_person(gate.rita, change, by=gate.adam)
    page.wait_for_function("() => window.events > 1")
    # It asked why, and did not wait for the browser's own reconnection.
    assert any(url.endswith("/events/") for url in rita.asked)
    expect(page.locator("#trouble")).to_be_hidden()
