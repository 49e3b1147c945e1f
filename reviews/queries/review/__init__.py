"""The review page: regions R0 to R8 of one request, as values for the template."""

from __future__ import annotations

from functools import cached_property

from reviews import inherited
from reviews.desk.request import policy_changes
from reviews.desk.request.page import Deciding
from reviews.desk.request.policy_changes import PolicyChange

from . import banners
from .banners import Banner

# What the database is asked for beyond the request itself, by the part that shows it.
ASKED = (
    *(
        "banner",
        "escalation",
        "policy_change",
        "reverses",
        "guidance",
        "sight",
        "others",
        "approvals_said",
    ),
    *(
        "hidden",
        "remarks",
        "kept_pages",
        "history",
        "within",
        "draft",
        "verbs",
        "following",
    ),
)


class ReviewPage(Deciding):
    """One request as this person may see it. A part of the page asks only for what it
    prints; `ready` is for the whole."""

    def ready(self) -> None:
        """Ask for all of the page, so that printing it waits for nothing."""
        for name in ASKED:
            getattr(self, name)

    @property
    def inherited(self) -> bool:
        """It came back with a backup: it may have been decided or have run before."""
        return inherited.may_have_run(self.loaded.request)

    @cached_property
    def policy_change(self) -> PolicyChange | None:
        """That the rules changed since it was proposed, and what that means for it."""
        return policy_changes.of(self.loaded)

    @cached_property
    def banner(self) -> Banner | None:
        """What changed under the reader."""
        read = self.read
        if read is None and self.moved and self.on_screen is not None:
            read = self.on_screen.version
        if self.target_moved:
            return banners.ground_moved(self.loaded, self._reading)
        if self.remade:
            return banners.remade(self.version)
        if read is None or read == self.version:
            return None
        return banners.revised(self.loaded, read)
