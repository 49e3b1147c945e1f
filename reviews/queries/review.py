"""The review page: regions R0 to R8 of one request, as values for the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.urls import reverse

from journal.errors import DomainError
from policies import tools
from reviews import deadlines, drafts, permissions, reveals, state_readings
from reviews.models import Draft, RequestVersion, StateReading
from reviews.permissions import Permission
from reviews.seen import Seen, Sight

from . import (
    as_seen,
    batches,
    clocks,
    escalations,
    holding,
    log,
    moves,
    outcomes,
    remarks,
    showing,
    sights,
)
from .clocks import Clock
from .detail import Loaded
from .outcomes import Outcome
from .regions import Regions
from .remarks import Remark
from .states import State
from .words import people

REMADE = "This page is not what it was when you opened it."


@dataclass(frozen=True, slots=True)
class Verb:
    name: str
    label: str
    key: str


VERBS = (
    Verb("approve", "Approve", "A"),
    Verb("modify", "Modify…", "M"),
    Verb("reject", "Reject…", "X"),
    Verb("escalate", "Escalate…", "U"),
)


@dataclass(frozen=True, slots=True)
class Banner:
    """What changed under the reader: the version they read and the one now."""

    title: str
    note: str
    read: int
    now: int
    rows: Sequence[showing.Moved] = ()
    heads: tuple[str, str] | None = None

    @property
    def was(self) -> str:
        return self.heads[0] if self.heads else f"Version {self.read}, as you read it"

    @property
    def is_now(self) -> str:
        return self.heads[1] if self.heads else f"Version {self.now}, now"


class ReviewPage:
    """One request as this person may see it. Regions are computed when printed.

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
        self.note_kept = note_kept
        self.focus = focus
        self.on_screen: Seen | None = None
        self.partial = False
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

    # R0
    @cached_property
    def state(self) -> State:
        """What the strip says: that the ground moved comes before all else."""
        if not self.target_moved:
            return self.loaded.state
        found = self.loaded.reading
        at = f" at {found.at:%H:%M:%S}" if found else ""
        return State("moved", f"The record changed{at}", icon="warn")

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
        request = self.loaded.request
        return clocks.until(
            request.expires_at, since=request.opened_at, now=self.loaded.now
        )

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

    @cached_property
    def moved(self) -> bool:
        """Whether the reader's screen shows something else than there is now."""
        if self.remade or self.screen not in (None, self.version):
            return True
        return self._other is not None and self.seen.digest != self._other.digest

    @cached_property
    def target_moved(self) -> bool:
        """Whether the comparison on the screen is with a state that is no more."""
        before = self.on_screen
        if before is None or not self.partial or not self.loaded.able:
            return False
        if before.version != self.version:
            return False
        revision = self.loaded.revision
        shown = state_readings.digest_of(self._reading, revision)
        return shown != state_readings.digest_of(self.loaded.reading, revision)

    @property
    def _other(self) -> Seen | None:
        """Another version that stays on the screen of somebody who may decide this
        one. A recall makes one that reads the same."""
        before = self.on_screen
        if before is None or not self.partial or self.loaded.why_not:
            return None
        return before if before.version != self.version else None

    # R1 to R6: what is kept with the decision
    @cached_property
    def regions(self) -> Regions:
        older = self.older
        since = sights.version(self.id, older) if older else None
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
        """The newest, unless an older one stays on the screen beside this answer."""
        before, newest = self.on_screen, self.loaded.reading
        if not self.partial or before is None:
            return newest
        if newest is not None and newest.pk == before.reading:
            return newest
        return sights.reading(self.loaded.sealed, before.reading)

    @cached_property
    def sight(self) -> Sight:
        """The regions as bytes: printed here, and kept with the decision."""
        return sights.kept(self.regions)

    @property
    def facts(self) -> str:
        return self.sight.parts[0]

    @property
    def rules(self) -> str:
        return self.sight.parts[1]

    @property
    def words(self) -> str:
        return self.sight.parts[2]

    @property
    def seen(self) -> Seen:
        """What this page says of itself when it comes back. Who had the very same
        regions before them, without JavaScript, has been reading since then."""
        fresh = Seen(
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
        """For the page's hidden field; a part of a page renews it only where the page
        around it says something else."""
        keeps = self.partial and not (self.warned or self._other)
        return "" if keeps or self.over or self.moved else self.seen.token()

    # R4, as far as it changes by itself
    @property
    def stop_url(self) -> str:
        return reverse("agents:stop_thread", args=[self.agent, self.thread])

    @property
    def squares(self) -> list[bool]:
        return self.loaded.tally.squares

    @property
    def approvals_said(self) -> str:
        tally = self.loaded.tally
        hidden = " Who, and what they answered, is hidden until it is settled."
        said = f"{tally.said} given, {self._roles()}."
        return said + (hidden if tally.required > 1 and not self.loaded.settled else "")

    def _roles(self) -> str:
        steps = self.loaded.sealed.steps
        return " and ".join(people(s["required"], s["role"]) for s in steps) + " asked"

    @cached_property
    def others(self) -> str:
        """How many others can decide. A number: names would tell who has not yet."""
        if not self.loaded.waiting:
            return ""
        loaded = self.loaded
        others = holding.eligible(loaded.request, loaded.sealed)
        found = others.exclude(pk=loaded.person.pk).count()
        if not found:
            return "Nobody else can decide this."
        return f"{people(found, 'other person')} can decide."

    @property
    def if_silent(self) -> str:
        """What happens without an answer; empty once there is one."""
        if self.loaded.request.settled_at is not None:
            return ""
        return "It expires when the time is up. Nothing is executed."

    # R7
    @property
    def opened_at(self) -> datetime:
        return self.loaded.request.opened_at

    @property
    def sealed_at(self) -> datetime:
        return self.loaded.sealed.created_at

    @cached_property
    def hidden(self) -> bool:
        """Whether there are values that this person may ask to see."""
        if not permissions.allowed(self.loaded.person, Permission.REVEAL):
            return False
        return bool(reveals.hidden(self.loaded.sealed))

    @cached_property
    def kept_pages(self) -> list[as_seen.Kept]:
        """The pages that deciders had on the screen, as far as this person may."""
        loaded = self.loaded
        return as_seen.links(loaded.person, loaded.request, loaded.decisions)

    @cached_property
    def history(self) -> list[log.Told]:
        return log.history(self.loaded.person, self.loaded.request)

    @cached_property
    def escalation(self) -> escalations.Panel | None:
        """What a supervisor is told beside the request that was handed up."""
        return escalations.panel(self.loaded)

    @cached_property
    def guidance(self) -> str:
        """A supervisor's advice on a request that was given back."""
        return escalations.guidance(self.loaded)

    # R8
    @property
    def verbs(self) -> Sequence[Verb]:
        able = self.loaded.able and not self.moved and not self.target_moved
        return VERBS if able else ()

    @property
    def outcome(self) -> Outcome:
        if self.target_moved:
            return outcomes.target_moved(self.loaded)
        if not self.moved:
            return outcomes.of(self.loaded)
        read = self.screen or (self.on_screen.version if self.on_screen else 0)
        return outcomes.moved(self.loaded, read)

    @property
    def check_url(self) -> str:
        """Where an edit is looked at before it is committed."""
        return reverse("reviews:decide", args=[self.id]) + "?check=1"

    @cached_property
    def draft(self) -> Draft | None:
        """What this person typed before and did not send."""
        loaded = self.loaded
        return drafts.of(loaded.person, loaded.request) if loaded.drafted else None

    @property
    def kept(self) -> str:
        """The person's words, for where no verb is left to send them with."""
        return self.note_kept or (self.draft.reason if self.draft else "")

    @property
    def may_note(self) -> bool:
        """Whether words beside a verdict are all that this person can add."""
        return bool(self.loaded.why_not) and remarks.may_add(self.loaded)

    @property
    def may_step(self) -> bool:
        """Whether there is a queue to go on in."""
        return permissions.deciding_role(self.loaded.person) is not None

    @cached_property
    def remarks(self) -> list[Remark]:
        return remarks.of(self.loaded) if self.loaded.remarked else []

    @cached_property
    def within(self) -> batches.Within | None:
        """The batch in which this request waits beside others like it."""
        tool = self.loaded.revision.tool
        if tool is None:
            return None
        return batches.containing(self.loaded.request, tools.definition(tool))

    @property
    def recall(self) -> bool:
        return outcomes.may_recall(self.loaded)

    @property
    def retry(self) -> bool:
        return outcomes.may_retry(self.loaded)

    @cached_property
    def banner(self) -> Banner | None:
        read = self.read
        if read is None and self.moved and self.on_screen is not None:
            read = self.on_screen.version
        if self.target_moved:
            return self._moved_ground()
        if self.remade:
            return Banner(REMADE, "Nothing was recorded.", self.version, self.version)
        if read is None or read == self.version:
            return None
        return _banner(self.loaded, read)

    def _moved_ground(self) -> Banner:
        loaded = self.loaded
        was = state_readings.said(self._reading, loaded.revision)
        now = state_readings.said(loaded.reading, loaded.revision)
        at = loaded.reading.at if loaded.reading else loaded.now
        return Banner(
            f"The record changed; it was read again at {at:%H:%M:%S}.",
            "Nothing was sent. Refresh the before-state, then decide.",
            self.version,
            self.version,
            moves.rows(loaded.revision, was, now),
            heads=("As you read it", "Now"),
        )


def _banner(loaded: Loaded, read: int) -> Banner:
    before = (
        RequestVersion.objects.filter(request=loaded.request, number=read)
        .select_related("revision__tool")
        .first()
    )
    rows = showing.changes(before.revision, loaded.revision) if before else []
    who = (
        "The agent replaced" if loaded.sealed.cause == "revised" else "Someone changed"
    )
    at = loaded.sealed.created_at
    title = (
        f"{who} this request at {at:%H:%M:%S} while you were reading version {read}."
    )
    note = "Nothing was approved by you."
    return Banner(title, note, read, loaded.request.version, rows)
