"""What a scene is, and how the modules of `rooms` write theirs down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from .stage import Stage


@dataclass(frozen=True)
class Sent:
    """A form that a page sends: what the answer looks like is the scene."""

    path: str
    fields: Mapping[str, Any]


Place = str | Sent
Build = Callable[["Stage"], Place]
Act = Callable[["Stage", "Page"], None]
B = TypeVar("B", bound=Build)


@dataclass(frozen=True)
class Scene:
    """`says` is read on the page once it is as it should be. `act` goes on from the
    page that was opened; the scene is then built anew for each width."""

    name: str
    route: str
    build: Build
    says: str
    who: str = "rita"
    act: Act | None = None
    cut_off: bool = False  # the console tells that nobody answers


@dataclass
class Room:
    """Scenes that share one database, in the order in which they are built.

    `furnish` makes what all of them need; `urls` is another URL conf to serve.
    """

    name: str
    furnish: Callable[[Stage], None] = lambda stage: None
    urls: str = ""
    scenes: list[Scene] = field(default_factory=list)

    def furnished(self, furnish: Callable[[Stage], None]) -> Callable[[Stage], None]:
        """`@room.furnished` on what makes the things of the room."""
        self.furnish = furnish
        return furnish

    def scene(self, name: str, route: str, says: str, **more: Any) -> Callable[[B], B]:
        """`@room.scene("held", REVIEW, "is deciding", who="tom")` on what builds it."""

        def keep(build: B) -> B:
            full = f"{self.name}-{name}"
            self.scenes.append(Scene(full, route, build, says, **more))
            return build

        return keep

    def page(self, name: str, route: str, path: str, says: str, **more: Any) -> None:
        """A scene at an address that is known beforehand."""
        self.scene(name, route, says, **more)(lambda stage: path)
