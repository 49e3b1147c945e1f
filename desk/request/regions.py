"""R1 to R6 of the request page as bytes, and whether those are still what the person
has on the screen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.http import HttpRequest

from reviews import permissions
from reviews.decisions import submission
from reviews.decisions.submission import PageToken, RenderedPage
from reviews.evidence import reveals
from reviews.governance import readings
from reviews.models import StateReading
from reviews.roles import Permission

from ..components import page_evidence
from ..components.regions import Regions
from .load import LoadedRequest

SEEN_HEADER = "X-Seen"


def find_page_on_screen(
    request: HttpRequest, loaded: LoadedRequest
) -> PageToken | None:
    """What this person's browser already shows of the request; None without a valid
    token of their own.

    A script sends the page token in the `SEEN_HEADER` header, a form in its
    `seen` field.
    """
    sent = request.POST.get("seen") or request.GET.get("seen") or ""
    token = submission.find_page_token(request.headers.get(SEEN_HEADER) or sent)
    # guard: own-screen
    if token is None or not token.is_for(loaded.person.public_id, loaded.request.pk):
        return None
    return token


def parse_version(key: str) -> int | None:
    """The request version in a `key` of the loaded request; None for another text."""
    number, _, _ = key.partition("-")
    return int(number) if number.isdecimal() and len(number) < 10 else None


@dataclass(frozen=True, slots=True)
class Screen:
    """What the browser shows of a request when its page is built again."""

    before: PageToken | None = None  # the page that it shows
    partial: bool = False  # that page stays beside this response
    version: int | None = None  # the version that stays on the screen
    read: int | None = None  # the version that the person read
    since: int = 0  # the version that the person read before this one
    remade: bool = False  # the same version would now be rendered differently
    warned: str = ""  # the warning shown now; a second try insists


@dataclass(frozen=True)
class RenderedRegions:
    """The regions, the token that identifies them, and whether the screen shows
    something else."""

    loaded: LoadedRequest
    screen: Screen

    @cached_property
    def values(self) -> Regions:
        """What the bytes are made from."""
        older = self._older
        since = (
            page_evidence.find_version(self.loaded.request.pk, older) if older else None
        )
        return Regions(
            self.loaded.person, self.loaded.sealed, reading=self.reading, since=since
        )

    @property
    def _older(self) -> int:
        """The version that was read before this one, or 0."""
        before = self.screen.before
        since = self.screen.since or (before.since if before else 0)
        return since if 0 < since < self.loaded.request.version else 0

    @cached_property
    def reading(self) -> StateReading | None:
        """The newest reading, unless an older one stays on the screen beside this
        response."""
        before, newest = self.screen.before, self.loaded.reading
        if not self.screen.partial or before is None:
            return newest
        if newest is not None and newest.pk == before.reading:
            return newest
        return page_evidence.find_reading(self.loaded.sealed, before.reading)

    @cached_property
    def _rendered(self) -> RenderedPage:
        return page_evidence.load_cached_regions(self.values)

    @property
    def facts(self) -> str:
        """R1 to R3 as HTML."""
        return self._rendered.parts[0]

    @property
    def rules(self) -> str:
        """R4 as HTML."""
        return self._rendered.parts[1]

    @property
    def words(self) -> str:
        return self._rendered.parts[2]

    @property
    def seen(self) -> PageToken:
        """The data of the page token. If the same regions were on the screen before,
        the reading time counts from then, also without JavaScript."""
        request = self.loaded.request
        fresh = PageToken(
            person=self.loaded.person.public_id,
            request=request.pk,
            version=request.version,
            action_hash=request.action_hash,
            digest=self._rendered.digest,
            rendered_at=self.loaded.now,
            reading=self.reading.pk if self.reading else None,
            since=self._older,
        )
        before, warned = self.screen.before, self.screen.warned
        page = fresh.read_since(before) if before else fresh
        return page.warning(warned) if warned else page

    @property
    def opened(self) -> datetime:
        """When the page that the person has on the screen was made."""
        if not self.screen.partial:
            return self.seen.rendered_at
        before = self.screen.before
        return before.rendered_at if before else self.loaded.now

    @property
    def token(self) -> str:
        """The signed token for the hidden field. A part of a page sends a new one only
        when the page around it must change its token."""
        keeps = self.screen.partial and not (self.screen.warned or self._other)
        return "" if keeps or self.loaded.finished or self.moved else self.seen.token()

    @property
    def old(self) -> int:
        """The version that stays on the screen; 0 for none."""
        before = self.screen.before
        return self.screen.version or (before.version if before else 0)

    @cached_property
    def moved(self) -> bool:
        """Whether the screen shows something other than the current version."""
        if self.screen.remade:
            return True
        if self.screen.version not in (None, self.loaded.request.version):
            return True
        return self._other is not None and self.seen.digest != self._other.digest

    @cached_property
    def target_moved(self) -> bool:
        """Whether the screen compares with a business state that a newer reading
        replaced."""
        before = self.screen.before
        if before is None or not self.screen.partial or not self.loaded.able:
            return False
        if before.version != self.loaded.request.version:
            return False
        revision = self.loaded.revision
        shown = readings.compute_effective_digest(self.reading, revision)
        return shown != readings.compute_effective_digest(self.loaded.reading, revision)

    @property
    def _other(self) -> PageToken | None:
        """The page of another version that stays on the screen of a person who may
        decide. After a recall its regions can be the same."""
        before = self.screen.before
        if before is None or not self.screen.partial or self.loaded.why_not:
            return None
        return before if before.version != self.loaded.request.version else None

    @cached_property
    def can_reveal(self) -> bool:
        """Whether there are hidden values that this person may reveal."""
        if not permissions.has_permission(self.loaded.person, Permission.REVEAL):
            return False
        return reveals.has_hidden_values(self.loaded.sealed)
