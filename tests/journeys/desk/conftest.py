"""The stack with a worker and the store, once for all journeys, and who sits at it.

A journey takes `house`, never `live`: that would kill the worker after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests import emptying, factories, worlds
from tests.browser.conftest import WITHIN_MS, listen, session_cookies
from tests.journeys.desk import house as houses
from tests.journeys.desk import store as stores
from tests.journeys.desk.costs import Costs, said
from tests.journeys.desk.hands import Way
from tests.journeys.desk.house import House
from tests.journeys.desk.sitting import WATCH, Sitting
from tests.journeys.desk.store import Store
from tests.stack import Stack

SitDown = Callable[..., Sitting]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What each task cost, beside its bar."""
    passed = terminalreporter.stats.get("passed", [])
    costs = sorted(
        {tuple(v) for one in passed for n, v in one.user_properties if n == "cost"}
    )
    for cost in costs:
        terminalreporter.write_line(said(*cost))


@pytest.fixture(scope="package")
def _furnished(_stack: Stack) -> Iterator[tuple[Stack, Store]]:
    """Web, worker with beat, and the store. The worker stays between journeys, so its
    ledger is one file for all of them."""
    _stack.extra[worlds.LEDGER] = str(_ledger(_stack))
    _stack.start_web()
    store = stores.start(_stack)
    try:
        _stack.start_worker()
        yield _stack, store
    finally:
        _stack.kill_worker()
        _stack.empty_broker()
        store.child.stop(within=5)
        del _stack.extra[worlds.LEDGER]


def _ledger(live: Stack) -> Path:
    return live.state / "ledger.sqlite"


@pytest.fixture
def house(
    transactional_db: None,
    _furnished: tuple[Stack, Store],
    monkeypatch: pytest.MonkeyPatch,
) -> House:
    """A gate ready to be asked, with a store as on its first day."""
    live, store = _furnished
    emptying.begin_epoch()
    _ledger(live).unlink(missing_ok=True)
    monkeypatch.setenv(worlds.LEDGER, str(_ledger(live)))
    store.reset()
    return houses.furnish(live, store)


@pytest.fixture
def costs(
    request: pytest.FixtureRequest, record_proof: Callable[[str, str], None]
) -> Costs:
    """`with costs.of("Reject with preset reason", rita): …`"""
    return Costs(request.node.user_properties, record_proof)


@pytest.fixture
def sit_down(house: House, browser: Browser) -> Iterator[SitDown]:
    """`sit_down("rita", Way.KEYBOARD)`: a browser in which Rita is signed in. With
    `by_form=True` nobody is yet: the journey signs in itself."""
    opened: list[BrowserContext] = []
    desks: list[Sitting] = []

    def start(
        name: str, way: Way = Way.MOUSE, *, by_form: bool = False, **options: Any
    ) -> Sitting:
        scripted = way is not Way.PLAIN
        context = browser.new_context(
            **{
                "viewport": {"width": 1280, "height": 800},
                "timezone_id": "UTC",
                **options,
            },
            java_script_enabled=scripted,
        )
        opened.append(context)
        context.set_default_timeout(WITHIN_MS)
        base = house.live.base_url
        if not by_form:
            context.add_cookies(session_cookies(house.people[name], base))
        desk = Sitting(context.new_page(), base, scripted=scripted, way=way)
        desk.page.add_init_script(WATCH)
        listen(desk)
        desks.append(desk)
        return desk

    expect.set_options(timeout=WITHIN_MS)
    yield start
    complaints = [line for desk in desks for line in desk.complaints()]
    for context in opened:
        context.close()
    assert complaints == []


def sign_in(desk: Sitting, house: House, name: str, to: str) -> None:
    """By the form, with the password typed."""
    house.knows_password(name)
    page = desk.page
    page.goto(f"{desk.base}{to}")
    # The page's own doing, which is refused where something else has the focus.
    expect(page.locator("#id_username")).to_be_focused()
    page.fill("#id_username", name)
    page.fill("#id_password", factories.PASSWORD)
    with page.expect_navigation(wait_until="load"):
        page.press("#id_password", "Enter")
    desk.arrived()
