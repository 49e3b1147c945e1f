"""The browser's side of a scene: it is opened wide and on a telephone, looked at light
and dark, and what is wrong with it comes back as lines."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Error, Page, expect

from tests.browser.conftest import Desk, listen
from tests.conftest import Gate

from .scene import Scene, Sent
from .stage import BACKEND, Stage

Looks = Mapping[int, Sequence[str]]  # width -> themes
HEIGHTS = {1280: 800, 360: 740}
ALL: Looks = {1280: ("light", "dark"), 360: ("dark", "light")}
# One of them, by turns: each width and each theme as often as the others.
SOME: Sequence[Looks] = (
    {1280: ("light",)},
    {360: ("dark",)},
    {1280: ("dark",)},
    {360: ("light",)},
)
NARROW: Sequence[Looks] = ({360: ("dark",)}, {360: ("light",)})
SEEN_ALL = "in 4 looks"
SEEN_SOME = "in 1 of 4 looks"
AXE = Axe().axe_script
# A busy machine is no fault of a page: no request is given up.
PATIENT = "addEventListener('load', () => { if (window.htmx) htmx.config.timeout = 0 })"
WITHIN_MS = 30_000  # for whatever a busy machine has to show
AWAY = "/livez"  # of the same origin: for another, Chromium starts a process
# Where `make gallery` wants its pictures; otherwise none are taken.
FOLDER = "HOLDPOINT_GALLERY"
# Where only narrow pages are looked at: those that another font changes.
NARROW_ONLY = "HOLDPOINT_GALLERY_NARROW"
READY = """
({ says, width, dark }) => innerWidth === width
  && matchMedia("(prefers-color-scheme: dark)").matches === dark
  && matchMedia("(pointer: coarse)").matches === (width < 768)
  && document.body.innerText.includes(says)
  && !document.querySelector(".htmx-request")
"""
# The size of targets is WCAG 2.2 too, but axe looks at it only when it is asked to.
FAULTS = """
async () => {
  const rules = { "target-size": { enabled: true } };
  const options = { resultTypes: ["violations"], preload: false, rules };
  const { violations } = await axe.run(options);
  const say = ({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)}`;
  const found = violations.map(say);
  const over = document.documentElement.scrollWidth - innerWidth;
  return over > 0 ? [...found, `scrolls sideways by ${over} px`] : found;
}
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


class Studio:
    """A window for each person, in which scenes are opened one after the other, each in
    all four looks, or in one of them where `some` are enough."""

    def __init__(
        self, browser: Browser, base: str, stage: Stage, *, some: bool = False
    ) -> None:
        self.browser, self.base, self.stage = browser, base, stage
        self.folder = os.environ.get(FOLDER)
        some = some and not self.folder
        few = NARROW if os.environ.get(NARROW_ONLY) else SOME
        self.turns = itertools.cycle(few if some else [ALL])
        self.looks = ALL
        self.seen = SEEN_SOME if some else SEEN_ALL
        expect.set_options(timeout=WITHIN_MS)
        self._desks: dict[str, Desk] = {}
        self._at = ""  # whose window was looked at last

    def close(self) -> None:
        for desk in self._desks.values():
            desk.page.context.close()

    def faults(self, scene: Scene) -> Iterator[str]:
        """Everything that is wrong with a scene. What somebody does on the page is done
        anew where it is narrow."""
        desk = self._sit_down(scene.who)
        desk.said.clear()
        self.looks = next(self.turns)
        for width, height in HEIGHTS.items():
            wide = width == max(HEIGHTS)  # where it is opened, to be narrowed then
            if width not in self.looks and (scene.act or not wide):
                continue
            desk.page.set_viewport_size({"width": width, "height": height})
            desk.touch(not wide)
            try:
                if scene.act or wide:
                    self._open(desk, scene)
                found = list(self._looked_at(desk, scene, width))
            except Error as error:
                found = [f"{error.message}\n{desk.page.inner_text('body')[:1500]}"]
            yield from (f"{scene.name} {width}: {fault}" for fault in found)
        expected = (ANSWERED, *(NOBODY if scene.cut_off else ()))
        said = [one for one in desk.complaints() if not one.startswith(expected)]
        yield from (f"{scene.name}: {one}" for one in said)
        self._tidy(desk.page, scene)

    def _open(self, desk: Desk, scene: Scene) -> None:
        self._tidy(desk.page, scene)
        place = scene.build(self.stage)
        if isinstance(place, Sent):
            self._send(desk, place)
        elif scene.act:
            scene.act(self.stage, desk.open(place))
        else:
            desk.page.goto(self.base + place)

    def _send(self, desk: Desk, sent: Sent) -> None:
        """Leave a page, the one before if it has a token, as its form does when it is
        sent without a script."""
        page = desk.page
        found = page.evaluate(TOKEN) or desk.open("/help/").evaluate(TOKEN)
        fields = {
            "csrfmiddlewaretoken": json.loads(found)["X-CSRFToken"],
            **sent.fields,
        }
        with page.expect_navigation():
            page.evaluate(SEND, [sent.path, list(_flat(fields))])

    def _looked_at(self, desk: Desk, scene: Scene, width: int) -> Iterator[str]:
        page = desk.page
        for number, theme in enumerate(self.looks.get(width, ())):
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            desk.touch(False)  # also after a picture, which takes the screen away
            desk.touch(width == min(HEIGHTS))
            says = "" if number else scene.says  # narrow, it may go once it was there
            look = {"says": says, "width": width, "dark": theme == "dark"}
            page.wait_for_function(READY, arg=look)
            if width == min(HEIGHTS):
                page.evaluate(NARROWED)
            found = page.evaluate(FAULTS)
            yield from (f"{theme}: {one}" for one in found)
            if self.folder:
                picture = Path(self.folder) / f"{scene.name}-{width}-{theme}.png"
                page.screenshot(path=picture, full_page=True)

    def _tidy(self, page: Page, scene: Scene) -> None:
        """What an act did to the window ends with its scene."""
        if scene.act:
            page.context.set_offline(False)
            page.emulate_media(media="screen")
            self._sign_in(page, scene.who)

    def _sit_down(self, who: str) -> Desk:
        """Who sat here before leaves their page, and gives back what they held."""
        if self._at != who and self._at in self._desks:
            self._desks[self._at].page.goto(self.base + AWAY)
        if who not in self._desks:
            self._desks[who] = self._desk(who)
        self._at = who
        return self._desks[who]

    def _desk(self, who: str) -> Desk:
        context = self.browser.new_context(reduced_motion="reduce")
        context.set_default_timeout(WITHIN_MS)
        context.add_init_script(AXE)
        context.add_init_script(PATIENT)
        desk = Desk(context.new_page(), self.base)
        listen(desk)
        self._sign_in(desk.page, who)
        return desk

    def _sign_in(self, page: Page, who: str) -> None:
        if not who:
            return
        cookie: Any = {
            "name": settings.SESSION_COOKIE_NAME,
            "value": _session(self.stage.gate, who),
            "url": self.base.replace("http", "https", settings.SESSION_COOKIE_SECURE),
            "secure": bool(settings.SESSION_COOKIE_SECURE),
        }
        page.context.add_cookies([cookie])


def _session(gate: Gate, who: str) -> str:
    client = Client()
    client.force_login(gate.people[who], BACKEND)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def _flat(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        several = value if isinstance(value, list | tuple) else [value]
        yield from ((name, str(one)) for one in several)
