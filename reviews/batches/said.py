"""What a person says of many at once, and what that is for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from journal import log
from journal.errors import DomainError, at
from policies.models import Person
from reviews.choices import Verdict
from reviews.decisions.submission import Sight
from reviews.governance import readings
from reviews.said import Said

from .membership import Member


@dataclass(frozen=True, slots=True)
class SaidOfMany:
    """One verdict on an exact ordered list. `left_out` are the members that the person
    saw and left out: whoever is in neither list came after the page was made."""

    batch_id: str
    person: Person
    verdict: Verdict
    digest: str
    items: Sequence[str]
    left_out: Sequence[str] = ()
    reason_code: str = ""
    reason: str = ""
    stop_at_failure: bool = True
    # What each item was on the page, where the page says so: names what has changed.
    marks: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seen: Sight | None = None
    took_ms: int | None = None  # from the page to the commit; None without a page
    flags: tuple[str, ...] = ()
    by: str = "api"  # or "page"
    # What the page itself has against it: raised when nothing else is wrong.
    objection: DomainError | None = None

    @property
    def actor(self) -> log.Actor:
        return log.Actor("person", self.person.public_id)


def said_of(said: SaidOfMany, member: Member) -> Said:
    """The verdict on one item: on what it is now, which the digest says was seen."""
    return Said(
        request_id=member.id,
        person=said.person,
        verdict=said.verdict,
        version=member.request.version,
        action_hash=member.request.action_hash,
        reason_code=said.reason_code,
        reason=said.reason,
        batch={
            "batch": said.batch_id,
            "digest": said.digest,
            "position": member.item.position,
            "by": said.by,
            "view": said.seen.digest if said.seen else "",
        },
        took_ms=said.took_ms,
        reading=member.reading.pk if member.reading else readings.OWN,
    )


@contextmanager
def naming(member: Member) -> Iterator[None]:
    """Says which item a refusal is about."""
    try:
        yield
    except DomainError as error:
        error.errors.append(at(member.id, error.detail))
        raise
