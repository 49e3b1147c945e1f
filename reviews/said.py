"""One verdict as a person said it: on which version and bytes, from which page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from journal import log
from journal.errors import DomainError
from policies.models import Person

from .choices import Verdict
from .decisions.submission import Sight
from .models import ApprovalRequest
from .step_up import Bound, Proof


@dataclass(frozen=True, slots=True)
class Said:
    """A person's verdict with the version and bytes it was given on."""

    request_id: str
    person: Person
    verdict: Verdict
    version: int
    action_hash: str
    reason_code: str = ""
    reason: str = ""
    args: Mapping[str, Any] | None = None
    step_up: Proof | None = None  # that the person just proved to be themselves
    # The page that it was said on; None when a program said it, without any page.
    seen: Sight | None = None
    flags: tuple[str, ...] = ()
    took_ms: int | None = None  # from the page to the commit
    check: Mapping[str, Any] = field(default_factory=dict)  # question and answers
    # What the page itself has against it, once: raised when nothing else is wrong.
    objection: DomainError | None = None
    # Of a decision on many: {"batch", "digest", "position", "by", "view"}; empty when
    # alone.
    batch: Mapping[str, Any] = field(default_factory=dict)
    lease: str = ""  # the taking that the page knew of
    # Which reading of the business state was shown: 0 for the revision's own, None
    # where none was. What moved since is not decided on.
    reading: int | None = None
    pause: bool = False  # with a rejection: the run is paused as well

    @property
    def actor(self) -> log.Actor:
        return log.Actor("person", self.person.public_id)

    @property
    def commits(self) -> bool:
        """Whether the verdict lets something happen."""
        return self.verdict in {Verdict.APPROVE, Verdict.MODIFY}

    @property
    def bound(self) -> Bound:
        """What a proof of identity has to be for."""
        return Bound(
            self.person.public_id,
            self.request_id,
            self.version,
            self.action_hash,
            self.verdict,
        )

    @property
    def by(self) -> str:
        """Where it was said: only a page leaves a copy of what was shown."""
        return str(self.batch.get("by", "page" if self.seen is not None else "api"))

    @property
    def view(self) -> str:
        """The digest of that copy; of many there is one, kept with the first."""
        return self.seen.digest if self.seen else str(self.batch.get("view", ""))

    def is_stale(self, request: ApprovalRequest) -> bool:
        """Whether it was said on another version, or on other bytes."""
        meant = (self.version, self.action_hash)
        return meant != (request.version, request.action_hash)
