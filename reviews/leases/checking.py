"""What a lease means for a decision: nothing that others do under it, and a mark on
what follows one that was broken."""

from __future__ import annotations

from datetime import datetime

from journal.clock import time_of_day
from journal.errors import Held, LeaseLapsed
from policies.models import Person
from reviews.choices import LostHow
from reviews.holds.rows import is_held
from reviews.models import Lease


def check(lease: Lease | None, person: Person, now: datetime, token: str = "") -> None:
    """Nobody else may be at it. `token` is the one on the page that the decision comes
    from. Raises Held or LeaseLapsed. Caller locked the lease and its request."""
    if lease is None or not is_held(lease, now) or lease.holder_id == person.pk:
        return
    if token:
        raise LeaseLapsed(
            f"Your hold ended and {lease.holder} took it over at "
            f"{time_of_day(lease.taken_at)}. Your decision was not recorded."
        )
    raise Held(
        f"{lease.holder} is deciding this until {time_of_day(lease.until)}. "
        "Your decision was not recorded. Your note is kept."
    )


def was_broken(lease: Lease | None, person: Person) -> bool:
    """Whether a decision of this person overrides somebody else's hold."""
    if lease is None or not lease.broken:
        return False
    own = lease.lost_how == LostHow.BROKEN and lease.lost_by_id == person.pk
    return not own
