"""What a real browser made of hostile text: whether anything of it ran, was fetched,
became an element, or cannot be seen. Independent of the code under test: the browser's
own Unicode tables say what is invisible."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, ViewportSize

from tests.browser.hostile import MARK

# Before any page: what the corpora call, and what the policy of the page had to stop.
_WATCH = """
window.ran = [];
window.xqz = () => { window.ran.push("xqz"); };
document.addEventListener("securitypolicyviolation", (event) => {
  window.ran.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""
_HEIGHT = "document.documentElement.scrollHeight / innerHeight"
_LOOK = (Path(__file__).parent / "looking.js").read_text()
WIDE: ViewportSize = {"width": 1280, "height": 800}
NARROW: ViewportSize = {"width": 360, "height": 740}


@dataclass
class Found:
    """What was seen over many pages, to be counted at the end."""

    pages: int = 0
    ran: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    elements: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)  # what is ours, or out of its place
    blind: list[str] = field(default_factory=list)  # tokens that are not drawn
    spoken: list[str] = field(default_factory=list)  # as if it were a word of ours

    @property
    def nothing(self) -> bool:
        kinds = (getattr(self, one.name) for one in fields(self))
        return not any(kind for kind in kinds if isinstance(kind, list))

    def __str__(self) -> str:
        kinds = ((one.name, getattr(self, one.name)) for one in fields(self))
        found = [(name, kind) for name, kind in kinds if isinstance(kind, list)]
        return "\n".join(f"{name}: {one}" for name, kind in found for one in kind)

    def said(self, n: int) -> str:
        """The line of a proof, once `nothing` holds."""
        return (
            "no script ran, no request left, no character was unseen, none stood where "
            f"our words stand (0 of {n}: at most {3 / n:.2%})"
        )

    def add(self, name: str, seen: dict[str, Any]) -> None:
        """What one look at a page found."""
        for kind in ("ran", "unseen", "elements", "over", "blind"):
            getattr(self, kind).extend(f"{name}: {one}" for one in seen[kind])
        said = [one for one in seen["spoken"] if MARK in one]
        self.spoken += [f"{name}: {one[:200]}" for one in said]


class Inspector:
    """One browser page through which every hostile page is looked at."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self.base = base
        self._tools = page.context.new_cdp_session(page)
        self.found = Found()
        page.add_init_script(_WATCH)
        page.on("dialog", self._dialog)
        page.on("request", self._request)

    def look(self, path: str) -> dict[str, Any]:
        """Open a page and add what is wrong with it to what was found."""
        answer = self.page.goto(self.base + path)
        assert answer is not None
        assert answer.status == 200, (path, answer.status)
        return self.look_here(path)

    def look_here(self, name: str) -> dict[str, Any]:
        """The same of the page that is open."""
        height = self.page.evaluate(_HEIGHT)
        self.page.evaluate(
            "for (const d of document.querySelectorAll('details')) d.open = 1"
        )
        seen: dict[str, Any] = {**self.page.evaluate(_LOOK), "height": height}
        self.found.pages += 1
        self.found.add(name, seen)
        return seen

    def narrow(self, path: str) -> None:
        """The same on a telephone."""
        self.page.set_viewport_size(NARROW)
        self._touch(True)
        self.look(path)
        self._touch(False)
        self.page.set_viewport_size(WIDE)

    def _touch(self, on: bool) -> None:
        touch = "Emulation.setTouchEmulationEnabled"
        self._tools.send(touch, {"enabled": on})

    def _dialog(self, dialog: Any) -> None:
        self.found.ran.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.base, "data:", "about:")):
            self.found.fetched.append(request.url)
