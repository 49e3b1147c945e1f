"""What changed under the reader: the version they read, and the one there is now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from journal.clock import time_of_day
from reviews.desk.request.load import Loaded
from reviews.effects import describe
from reviews.governance import readings
from reviews.models import RequestVersion, StateReading
from reviews.queries import moves

REMADE = "This page is not what it was when you opened it."


@dataclass(frozen=True, slots=True)
class Banner:
    """What changed under the reader: the version they read and the one now."""

    title: str
    note: str
    read: int
    now: int
    rows: Sequence[describe.Moved] = ()
    heads: tuple[str, str] | None = None

    @property
    def was(self) -> str:
        return self.heads[0] if self.heads else f"Version {self.read}, as you read it"

    @property
    def is_now(self) -> str:
        return self.heads[1] if self.heads else f"Version {self.now}, now"


def revised(loaded: Loaded, read: int) -> Banner:
    """Another version took the place of the one that was read."""
    before = (
        RequestVersion.objects.filter(request=loaded.request, number=read)
        .select_related("revision__tool")
        .first()
    )
    rows = describe.changes(before.revision, loaded.revision) if before else []
    who = (
        "The agent replaced" if loaded.sealed.cause == "revised" else "Someone changed"
    )
    at = loaded.sealed.created_at
    said = time_of_day(at)
    title = f"{who} this request at {said} while you were reading version {read}."
    note = "Nothing was approved by you."
    return Banner(title, note, read, loaded.request.version, rows)


def ground_moved(loaded: Loaded, read: StateReading | None) -> Banner:
    """What the action would change is not as it was read."""
    was = readings.said(read, loaded.revision)
    now = readings.said(loaded.reading, loaded.revision)
    at = loaded.reading.at if loaded.reading else loaded.now
    return Banner(
        f"The record changed; it was read again at {time_of_day(at)}.",
        "Nothing was sent. Refresh the before-state, then decide.",
        loaded.request.version,
        loaded.request.version,
        moves.rows(loaded.revision, was, now),
        heads=("As you read it", "Now"),
    )


def remade(version: int) -> Banner:
    """The page is made otherwise than the one that came back."""
    return Banner(REMADE, "Nothing was recorded.", version, version)
