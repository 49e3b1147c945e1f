"""The browser's side of a scene: opens it wide and on a telephone, looks at it light
and dark, and returns what is wrong with it as lines."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.urls import Resolver404, resolve
from playwright.sync_api import Browser, Error, expect

from tests.browser.conftest import (
    AXE,
    FIND_VIOLATIONS,
    WITHIN_MS,
    Desk,
    listen,
    session_cookies,
)
from tests.gallery.scene import Scene, Submission
from tests.gallery.store import StoreGate

Looks = Mapping[int, Sequence[str]]  # width -> themes
HEIGHTS = {1280: 800, 360: 740}
ALL: Looks = {1280: ("light", "dark"), 360: ("dark", "light")}
# One of them, by turns: each width and each theme as often as the others.
SOME: Sequence[Looks] = (
    {1280: ("light",)},
    {1280: ("dark",)},
    {360: ("light",)},
    {360: ("dark",)},
)
SEEN_ALL = "in 4 looks"
SEEN_SOME = "in 1 of 4 looks"
# A busy machine is no fault of a page: no request is given up.
PATIENT = "addEventListener('load', () => { if (window.htmx) htmx.config.timeout = 0 })"
AWAY = "/livez"  # of the same origin: for another, Chromium starts a process
# Where `make gallery` wants its pictures; otherwise none are taken.
FOLDER = "COUNTERSEAL_GALLERY"
READY = """
({ says, width, dark }) => innerWidth === width
  && matchMedia("(prefers-color-scheme: dark)").matches === dark
  && matchMedia("(pointer: coarse)").matches === (width < 768)
  && document.body.innerText.includes(says)
  && !document.querySelector(".htmx-request")
"""
# The size of targets is WCAG 2.2 too, but axe looks at it only when it is asked to.
RULES = {"rules": {"target-size": {"enabled": True}}}
# What fits in one font may not fit in the next. The style sheet takes Noto Sans where
# it is installed; a browser with this configuration does not find it.
WITHOUT_NOTO = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <include>/etc/fonts/fonts.conf</include>
  <selectfont><rejectfont><glob>*/noto/*</glob></rejectfont></selectfont>
</fontconfig>
"""
# What the page's own script does where it is opened on a telephone.
NARROWED = """
document.querySelector(".review[data-scroll]")?.classList.add("unread")
"""
TOKEN = "document.body?.getAttribute('hx-headers')"
SEND = """
([path, fields]) => {
  const form = document.body.appendChild(document.createElement("form"));
  Object.assign(form, { method: "post", action: path });
  for (const [name, value] of fields) {
    const input = form.appendChild(document.createElement("input"));
    Object.assign(input, { type: "hidden", name, value });
  }
  form.submit();
}
"""
# Chromium tells of every answer of 400 and more; that one came may be the scene.
ANSWERED = "Failed to load resource: the server responded with a status of "
NOBODY = ("Failed to load resource: net::ERR_INTERNET_DISCONNECTED", "htmx:")


def open_window(browser: Browser, base: str) -> Desk:
    """The window in which every person looks at scenes: Chromium keeps in one process
    what it compiled and fetched."""
    expect.set_options(timeout=WITHIN_MS)
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(WITHIN_MS)
    for script in (AXE, PATIENT):
        context.add_init_script(script)
    desk = Desk(context.new_page(), base)
    listen(desk)
    return desk


class Viewer:
    """Opens the scenes of a group one after the other: each in all four looks in one
    window, or in one look of four where two windows are given, the second of them for
    narrow pages. `routes` are the URL names it was at."""

    def __init__(self, gate: StoreGate, desk: Desk, narrow: Desk | None = None) -> None:
        self.gate = gate
        self.windows = {max(HEIGHTS): desk, min(HEIGHTS): narrow or desk}
        self.folder = os.environ.get(FOLDER)
        some = narrow is not None
        self.turns = itertools.cycle(SOME if some else [ALL])
        self.looks = ALL
        self.seen = SEEN_SOME if some else SEEN_ALL
        self.routes: set[str] = set()
        self._show(desk)
        self._who: str | None = None  # signed in

    def _show(self, desk: Desk) -> None:
        self.desk, self.page = desk, desk.page

    def find_faults(self, scene: Scene) -> Iterator[str]:
        """Everything that is wrong with a scene. What somebody does on the page is done
        again where it is narrow."""
        self.looks = next(self.turns)
        window = self.windows[max(self.looks)]
        if (window, scene.who) != (self.desk, self._who):
            self.leave()
            self._show(window)
            self._sign_in(scene.who)
        self.desk.said.clear()
        for width, height in HEIGHTS.items():
            wide = width == max(HEIGHTS)  # where it is opened, to be narrowed then
            if width not in self.looks and (scene.act or not wide):
                continue
            self.page.set_viewport_size({"width": width, "height": height})
            self.desk.touch(not wide)
            try:
                if scene.act or wide:
                    self._open(scene)
                faults = list(self._inspect(scene, width))
            except Error as error:
                faults = [f"{error.message}\n{self.page.inner_text('body')[:1500]}"]
            yield from (f"{scene.name} {width}: {fault}" for fault in faults)
        expected = (ANSWERED, *(NOBODY if scene.cut_off else ()))
        complaints = [
            complaint
            for complaint in self.desk.complaints()
            if not complaint.startswith(expected)
        ]
        yield from (f"{scene.name}: {complaint}" for complaint in complaints)
        self._undo_act(scene)

    def leave(self) -> None:
        """Close the page, which gives back what its person held, and forget them."""
        self.page.goto(self.desk.base + AWAY)
        self.page.evaluate("sessionStorage.clear()")
        self.page.context.clear_cookies()
        self._who = None

    def _open(self, scene: Scene) -> None:
        self._undo_act(scene)
        place = scene.build(self.gate)
        path = place.path if isinstance(place, Submission) else place
        with suppress(Resolver404):
            self.routes.add(resolve(path.partition("?")[0]).view_name)
        if isinstance(place, Submission):
            self._send(place)
        elif scene.act:
            scene.act(self.gate, self.desk.open(place))
        else:
            self.page.goto(self.desk.base + place)

    def _send(self, sent: Submission) -> None:
        """Leave a page, the one before if it has a token, as its form does when it is
        sent without a script."""
        headers = self.page.evaluate(TOKEN) or self.desk.open("/help/").evaluate(TOKEN)
        token = json.loads(headers)["X-CSRFToken"]
        fields = {"csrfmiddlewaretoken": token, **sent.fields}
        with self.page.expect_navigation():
            self.page.evaluate(SEND, [sent.path, list(_flatten(fields))])

    def _inspect(self, scene: Scene, width: int) -> Iterator[str]:
        narrow = width == min(HEIGHTS)
        for number, theme in enumerate(self.looks.get(width, ())):
            self.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            self.desk.touch(False)
            self.desk.touch(narrow)
            says = "" if number else scene.says  # narrow, it may go once it was there
            look = {"says": says, "width": width, "dark": theme == "dark"}
            self.page.wait_for_function(READY, arg=look)
            if narrow:
                self.page.evaluate(NARROWED)
            violations = self.page.evaluate(FIND_VIOLATIONS, RULES)
            if (over := self.desk.overflow()) > 0:
                violations.append(f"scrolls sideways by {over} px")
            yield from (f"{theme}: {violation}" for violation in violations)
            if self.folder:
                self._take_picture(f"{scene.name}-{width}-{theme}.png", width)

    def _take_picture(self, name: str, width: int) -> None:
        """Save a picture of the whole page. The window becomes as high as the page: the
        browser's own picture of a whole page takes the touch screen away, and with it
        what only such a screen shows."""
        height = self.page.evaluate("document.documentElement.scrollHeight")
        self.page.set_viewport_size({"width": width, "height": height})
        self.desk.touch(width == min(HEIGHTS))
        self.page.screenshot(path=Path(self.folder or ".") / name)
        self.page.set_viewport_size({"width": width, "height": HEIGHTS[width]})

    def _undo_act(self, scene: Scene) -> None:
        """What an act did to the window ends with its scene."""
        if scene.act:
            self.page.context.set_offline(False)
            self.page.emulate_media(media="screen")
            self._sign_in(scene.who)

    def _sign_in(self, who: str) -> None:
        self._who = who
        if who:
            cookies = session_cookies(self.gate.people[who], self.desk.base)
            self.page.context.add_cookies(cookies)


def _flatten(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        several = value if isinstance(value, list | tuple) else [value]
        yield from ((name, str(text)) for text in several)
