"""The base of the review page: the request, its regions R1 to R6 as bytes, and whether
those are still what the reader has on the screen."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.urls import reverse

from journal.errors import DomainError
from reviews.decisions.submission import PageToken, RenderedPage
from reviews.governance import readings
from reviews.models import StateReading

from ..components import page_evidence
from ..components.regions import Regions
from .load import LoadedRequest


class ReviewPageBase:
    """What every region starts from: the request, what is on the screen, and what the
    person just did.

    `on_screen` is what the browser already shows of this request, `partial` whether it
    stays beside this response; both are set when the request is answered. `since` is
    the number of the version that the person read before this one. `remade`: the page
    on the screen differs from what it would be now.
    """

    def __init__(
        self,
        loaded: LoadedRequest,
        *,
        armed: Any = None,
        writing: Any = None,
        extending: bool = False,
        read: int | None = None,
        screen: int | None = None,
        problem: DomainError | None = None,
        said: str = "",
        note_kept: str = "",
        kept_for: str = "",
        focus: str = "",
        since: int = 0,
        remade: bool = False,
        warned: str = "",
    ) -> None:
        self.loaded = loaded
        self.armed = armed
        self.writing = writing  # the panel of a message
        self.extending = extending  # the panel that confirms more time
        self.read = read  # the version they read
        self.screen = screen  # the version still on their screen after this answer
        self.problem = problem
        self.said = said
        self.note_kept = note_kept if note_kept.strip() else ""
        self.kept_for = kept_for  # the heading of the panel it was typed into
        self.focus = focus
        self.on_screen: PageToken | None = None
        self.partial = False
        self.notice: Any = None
        self.remade = remade
        self.warned = warned  # the warning shown now; a second try insists
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
        """The version that stays on the screen; 0 for none."""
        return self.screen or (self.on_screen.version if self.on_screen else 0)


class RenderedRegions(ReviewPageBase):
    """The regions as bytes, and the token that identifies them."""

    # R1 to R6: stored with the decision
    @cached_property
    def regions(self) -> Regions:
        older = self.older
        since = page_evidence.find_version(self.id, older) if older else None
        return Regions(
            self.loaded.person, self.loaded.sealed, reading=self._reading, since=since
        )

    @property
    def older(self) -> int:
        """The version that was read before this one, or 0."""
        before = self.on_screen
        since = self._since or (before.since if before else 0)
        return since if 0 < since < self.version else 0

    @cached_property
    def _reading(self) -> StateReading | None:
        """The newest reading, unless an older one stays on the screen beside this
        response."""
        before, newest = self.on_screen, self.loaded.reading
        if not self.partial or before is None:
            return newest
        if newest is not None and newest.pk == before.reading:
            return newest
        return page_evidence.find_reading(self.loaded.sealed, before.reading)

    @cached_property
    def sight(self) -> RenderedPage:
        """The regions as bytes: printed here, and stored with the decision."""
        return page_evidence.load_cached_regions(self.regions)

    @property
    def facts(self) -> str:
        """R1 to R3 as HTML."""
        return self.sight.parts[0]

    @property
    def rules(self) -> str:
        """R4 as HTML."""
        return self.sight.parts[1]

    @property
    def words(self) -> str:
        """R5 and R6 as HTML."""
        return self.sight.parts[2]

    @property
    def seen(self) -> PageToken:
        """The data of the page token. If the same regions were on the screen before,
        the reading time counts from then, also without JavaScript."""
        fresh = PageToken(
            person=self.loaded.person.public_id,
            request=self.id,
            version=self.version,
            action_hash=self.action_hash,
            digest=self.sight.digest,
            rendered_at=self.loaded.now,
            reading=self._reading.pk if self._reading else None,
            since=self.older,
        )
        before = self.on_screen
        page = fresh.read_since(before) if before else fresh
        return page.warning(self.warned) if self.warned else page

    @property
    def token(self) -> str:
        """The signed token for the hidden field. A part of a page sends a new one only
        when the page around it must change its token."""
        keeps = self.partial and not (self.warned or self._other)
        return "" if keeps or self.loaded.finished or self.moved else self.seen.token()

    @cached_property
    def moved(self) -> bool:
        """Whether the screen shows something other than the current version."""
        if self.remade or self.screen not in (None, self.version):
            return True
        return self._other is not None and self.seen.digest != self._other.digest

    @cached_property
    def target_moved(self) -> bool:
        """Whether the screen compares with a business state that a newer reading
        replaced."""
        before = self.on_screen
        if before is None or not self.partial or not self.loaded.able:
            return False
        if before.version != self.version:
            return False
        revision = self.loaded.revision
        shown = readings.compute_effective_digest(self._reading, revision)
        return shown != readings.compute_effective_digest(self.loaded.reading, revision)

    @property
    def _other(self) -> PageToken | None:
        """The page of another version that stays on the screen of a person who may
        decide. After a recall its regions can be the same."""
        before = self.on_screen
        if before is None or not self.partial or self.loaded.why_not:
            return None
        return before if before.version != self.version else None
