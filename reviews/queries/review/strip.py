"""R0: the strip of a request's state."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from journal.clock import time_of_day
from reviews import deadlines
from reviews.desk.components import formatting
from reviews.desk.components.formatting import Clock
from reviews.desk.components.states import State
from reviews.desk.request.content import SeenRegions


class Strip(SeenRegions):
    """State, deadline and holder."""

    # R0
    @cached_property
    def state(self) -> State:
        """What the strip says: that the ground moved comes before all else."""
        if self.moved and self.loaded.waiting and 0 < self.old < self.version:
            said = f"New version {self.version} while you were reading"
            return State("moved", said, icon="warn")
        if not self.target_moved:
            return self.loaded.state
        found = self.loaded.reading
        if found is None:
            return State("moved", "The record changed", icon="warn")
        said = f"The record changed at {time_of_day(found.at)}"
        return State("moved", said, icon="warn", at=found.at)

    @property
    def takes_up(self) -> bool:
        """Whether opening this page holds the request for this person."""
        return self.loaded.takes_up

    @property
    def may_take(self) -> bool:
        return self.loaded.able and not self.hold.mine

    @property
    def extended(self) -> datetime | None:
        """Until when one stroke extends it; None where it may not be extended."""
        if not self.loaded.able:
            return None
        later = deadlines.extended(self.loaded.request, self.loaded.sealed)
        return later if later > self.loaded.request.expires_at else None

    @property
    def is_hard(self) -> bool:
        """Whether the policy allows no more time."""
        return self.loaded.able and self.extended is None

    @property
    def clock(self) -> Clock | None:
        if not self.loaded.waiting:
            return None
        return formatting.of(self.loaded.request, self.loaded.now)

    @property
    def over(self) -> bool:
        """Whether nothing on this page can change any more."""
        return self.loaded.finished

    @property
    def title(self) -> str:
        """The window's title: never a word of the agent's."""
        return f"Request {self.id}"

    @property
    def etag(self) -> str:
        return self.loaded.etag
