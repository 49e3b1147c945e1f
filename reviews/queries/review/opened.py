"""A review page as it was asked for: one request, one person, what they have on the
screen, and what they just did."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from journal.errors import DomainError
from reviews.decisions.submission import Seen
from reviews.desk.request.load import Loaded


class Opened:
    """What every region starts from.

    `on_screen` is what the browser already shows of this request, `partial` that it
    goes on showing it beside this answer; both are known when it is answered. `since`
    is the number of the version that the person had read before this one. `remade`:
    what they have on the screen is not what this page would be now.
    """

    def __init__(
        self,
        loaded: Loaded,
        *,
        armed: Any = None,
        read: int | None = None,
        screen: int | None = None,
        problem: DomainError | None = None,
        said: str = "",
        note_kept: str = "",
        focus: str = "",
        since: int = 0,
        remade: bool = False,
        warned: str = "",
    ) -> None:
        self.loaded = loaded
        self.armed = armed
        self.read = read  # the version they read
        self.screen = screen  # the version still on their screen after this answer
        self.problem = problem
        self.said = said
        self.note_kept = note_kept if note_kept.strip() else ""
        self.focus = focus
        self.on_screen: Seen | None = None
        self.partial = False
        self.notice: Any = None
        self.remade = remade
        self.warned = warned  # what they are told now, and may then insist on
        self._since = since
        self.id = loaded.request.pk
        self.url = reverse("reviews:request_detail", args=[self.id])
        self.version = loaded.request.version
        self.action_hash = loaded.request.action_hash
        self.risk, self.tier = loaded.request.risk, loaded.request.tier
        self.hold = loaded.holding
        self.agent = loaded.request.proposal.agent
        self.thread = loaded.request.proposal.thread
        self.tool = loaded.request.proposal.tool_name

    @property
    def old(self) -> int:
        """The version that stays on their screen; 0 where none does."""
        return self.screen or (self.on_screen.version if self.on_screen else 0)
