"""The two ways of doing each step: with the mouse, and with keys alone. Each counts
what it costs, so that it can be held against the bars in `costs`."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from playwright.sync_api import Locator, expect

from tests import guards

if TYPE_CHECKING:
    from tests.journeys.desk.sitting import Sitting

Test = TypeVar("Test", bound=Callable[..., Any])
FARTHEST = 400  # a list has several links a row
HAS_FOCUS = "node => node === document.activeElement"


class Way(StrEnum):
    MOUSE = "mouse"
    KEYBOARD = "keyboard"
    PLAIN = "plain"  # the mouse, and no script


def in_ways(*ways: Way) -> Callable[[Test], Test]:
    """Parametrize a journey by `way`. `make prove` runs it in each of these ways. `make
    test` leaves out either the mouse or the keyboard; a checksum of the test's name
    chooses, so that a test always keeps the same way and each is used."""

    def mark(test: Test) -> Test:
        chosen = ways if guards.proving() else _choose(test.__name__, ways)
        parametrized: Test = pytest.mark.parametrize("way", chosen)(test)
        return parametrized

    return mark


def _choose(name: str, ways: Sequence[Way]) -> list[Way]:
    left_out = (Way.MOUSE, Way.KEYBOARD)[zlib.crc32(name.encode()) % 2]
    return [way for way in ways if way is not left_out]


class Leads(StrEnum):
    """What a step does to the page."""

    HERE = "here"  # nothing is swapped
    SWAP = "swap"  # a part is; without a script it is a page
    PAGE = "page"


@dataclass(frozen=True)
class Step:
    """One thing to do, by the key that means it or on what is to be clicked."""

    key: str
    at: str
    leads: Leads = Leads.SWAP


def marked(name: str) -> str:
    return f"[data-testid='{name}']"


VERBS = {"approve": "a", "modify": "m", "reject": "x", "escalate": "u"}
QUEUE = Step("g q", "#nav a[href^='/queue/']", Leads.PAGE)
LOG = Step("g l", "#nav a[href^='/log/']", Leads.PAGE)
FIRST = Step("Enter", "[data-row] >> nth=0", Leads.PAGE)
COMMIT = Step("Control+Enter", marked("commit"))
RECALL = Step("z", marked("recall"))
RELEASE = Step("c", marked("release"))
TAKE = Step("c", marked("take"))
EXTEND = Step("e", marked("extend"))
CANCEL = Step("Escape", ".panel [data-key='Escape']")
NEXT = Step("n", marked("next"), Leads.PAGE)
NEW_VERSION = Step("r", "[data-key='r']", Leads.PAGE)
STOP = Step("s", "a.stop", Leads.PAGE)


@dataclass
class Hand(ABC):
    """Does steps at one desk. In `strokes` and `clicks` a chord is one, and typing is
    apart; so is Tab, on the way to a field."""

    desk: Sitting
    strokes: int = 0
    clicks: int = 0
    tabs: int = field(default=0)

    @abstractmethod
    def touch(self, step: Step) -> None:
        """The bare press or click."""

    @abstractmethod
    def type(self, at: str, text: str) -> None:
        """Put this text in place of what a field holds."""

    @abstractmethod
    def pick(self, at: str, value: str) -> None:
        """Choose from a select."""

    @abstractmethod
    def reach(self, step: Step) -> None:
        """A step that has no key of its own."""

    @abstractmethod
    def rest_on(self, heading: str) -> None:
        """Give a heading of the content the focus, as a reader does."""

    @abstractmethod
    def leave_field(self) -> None:
        """Out of a text field, so that keys mean steps again."""

    def do(self, step: Step, leads: Leads | None = None) -> None:
        """One step, and what is checked after it."""
        leads = leads or step.leads
        desk = self.desk
        if leads is Leads.SWAP and not desk.scripted:
            leads = Leads.PAGE
        if leads is Leads.PAGE:
            with desk.page.expect_navigation(wait_until="load"):
                self.touch(step)
            desk.arrived()
        else:
            self.touch(step)
            if leads is Leads.SWAP:
                desk.settled()

    def go_to_queue(self) -> None:
        self.do(QUEUE)

    def open_first(self) -> None:
        """The first row of a list."""
        self.do(FIRST)

    def arm(self, verb: str) -> None:
        """Open a verb's panel; its first field has the focus, nothing is committed."""
        self.do(Step(VERBS[verb], marked(f"verb-{verb}")))
        expect(self.desk.page.get_by_test_id("panel")).to_be_visible()
        if self.desk.scripted:
            if self.desk.page.locator("#hold").count():
                self.desk.holds()
            self.desk.page.wait_for_selector("[data-testid=panel]:focus-within")

    def choose(self, number: int) -> None:
        """The answer or reason with this number."""
        key = str(number)
        self.do(Step(key, f"main [data-key='{key}']", Leads.HERE))

    def commit(self, leads: Leads = Leads.SWAP) -> None:
        """What is armed. An edit and auto-advance lead to another page."""
        self.do(COMMIT, leads)

    def recall(self) -> None:
        self.do(RECALL)

    def count(self) -> tuple[int, int]:
        """(strokes, clicks) since the last time; starts anew."""
        found = (self.strokes, self.clicks)
        self.strokes = self.clicks = self.tabs = 0
        return found


class Mouse(Hand):
    """Clicks; keys only to type."""

    def touch(self, step: Step) -> None:
        self._click(step.at)

    def type(self, at: str, text: str) -> None:
        self._click(at)
        self.desk.page.keyboard.press("Control+a")
        self.desk.page.keyboard.type(text)

    def pick(self, at: str, value: str) -> None:
        self._click(at)
        self.desk.page.select_option(at, value)

    def reach(self, step: Step) -> None:
        self.do(step)

    def rest_on(self, heading: str) -> None:
        self._click(heading)

    def leave_field(self) -> None:
        """A click goes anywhere."""

    def _click(self, at: str) -> None:
        self.clicks += 1
        self.desk.page.locator(at).first.click()


class Keyboard(Hand):
    """Keys alone: what has no key of its own is reached by Tab."""

    def touch(self, step: Step) -> None:
        self.strokes += 1
        for key in step.key.split(" "):
            self.desk.page.keyboard.press(key)

    def reach(self, step: Step) -> None:
        self.go(self.desk.page.locator(step.at).first)
        self.do(replace(step, key=step.key or "Enter"))

    def rest_on(self, heading: str) -> None:
        place = self.desk.page.locator(heading)
        for _ in range(FARTHEST):
            if place.evaluate(HAS_FOCUS):
                return
            self.desk.page.keyboard.press("]")
        raise AssertionError(f"] does not reach {heading}")

    def leave_field(self) -> None:
        self.desk.page.keyboard.press("Shift+Tab")

    def type(self, at: str, text: str) -> None:
        self.go(self.desk.page.locator(at).first)
        self.desk.page.keyboard.press("Control+a")
        self.desk.page.keyboard.type(text)

    def pick(self, at: str, value: str) -> None:
        place = self.desk.page.locator(at).first
        self.go(place)
        label = place.locator(f"option[value='{value}']").inner_text()
        self.desk.page.keyboard.type(label)
        expect(place).to_have_value(value)

    def go(self, place: Locator) -> None:
        """Tab until it has the focus."""
        for _ in range(FARTHEST):
            if place.evaluate(HAS_FOCUS):
                return
            self.tabs += 1
            self.desk.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {place}")
