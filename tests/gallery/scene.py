"""A scene: one page in one state, who looks at it, and what must be read there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from reviews.models import Alarm, ApprovalRequest, Batch, Repair, Stop

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.gallery.store import StoreGate

PAGES: dict[type[Any], str] = {
    Alarm: "alarms",
    ApprovalRequest: "requests",
    Batch: "batches",
    Repair: "repairs",
    Stop: "stop",
}


@dataclass(frozen=True)
class Submission:
    """A form that a page sends: the answer to it is the scene."""

    path: str
    fields: Mapping[str, Any] = field(default_factory=dict)


Row = Alarm | ApprovalRequest | Batch | Repair | Stop
Place = str | Submission | Row  # a row stands for the page about it
Build = Callable[["StoreGate"], Place]
Act = Callable[["StoreGate", "Page"], None]
B = TypeVar("B", bound=Callable[["StoreGate"], Any])


@dataclass(frozen=True)
class Scene:
    """`says` is read on the page once it is as it should be.

    `act` goes on from the page that was opened; such a scene is built again for each
    width. `cut_off`: the console reports that no server answers.
    """

    name: str
    says: str
    place: Place | Build
    who: str = "rita"
    act: Act | None = None
    cut_off: bool = False

    def build(self, gate: StoreGate) -> str | Submission:
        """Make what the scene shows; where it is."""
        place = self.place(gate) if callable(self.place) else self.place
        return place if isinstance(place, str | Submission) else url(place)


@dataclass
class SceneGroup:
    """Scenes that share one database, in the order in which they are built.

    `shows` are the URL names of pages that some of the scenes must be at; `urls` is
    another URL configuration to serve; `solo` serves them in solo mode, and `federated`
    beside an identity provider, which is never asked.
    """

    name: str
    shows: tuple[str, ...] = ()
    urls: str = ""
    solo: bool = False
    federated: bool = False
    prepare: Callable[[StoreGate], object] = lambda gate: None
    scenes: list[Scene] = field(default_factory=list)

    def preparation(self, prepare: B) -> B:
        """Decorate the function that makes what the scenes of the group need."""
        self.prepare = prepare
        return prepare

    def add(
        self, name: str, says: str, place: Place | Build, who: str = "rita", **more: Any
    ) -> None:
        """Add a scene at a fixed address, or at the place that a function builds."""
        self.scenes.append(Scene(f"{self.name}-{name}", says, place, who, **more))

    def scene(self, name: str, says: str, who: str = "rita") -> Callable[[B], B]:
        """Decorate the function that builds a scene."""

        def keep(build: B) -> B:
            self.add(name, says, build, who)
            return build

        return keep


def at(build: Build, *more: str, query: str = "") -> Build:
    """Build a row, and lead to a page below its own."""

    def find(gate: StoreGate) -> str:
        return _below(build(gate), *more) + (f"?{query}" if query else "")

    return find


def send(build: Build, *more: str, **fields: Any) -> Build:
    """Build a row, and send a form to an address below its page."""
    return lambda gate: Submission(_below(build(gate), *more), fields)


def _below(row: Place, *more: str) -> str:
    assert isinstance(row, Row)
    return url(row, *more)


def url(row: Row, *more: str) -> str:
    """The address of the page about a row, or of one below it."""
    return "/".join(["", PAGES[type(row)], str(row.pk), *more, ""])
