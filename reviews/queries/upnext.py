"""Which requests come after the one on the screen, in the reader's own queue."""

from __future__ import annotations

from policies.models import Person
from reviews.desk.queue import page
from reviews.desk.queue.page import Filters

MOST = 20  # looked at before giving up: others may hold the first


def after(person: Person, filters: Filters, pk: str, step: int) -> list[str]:
    """The requests from that one onward, or backward where `step` is negative, and
    then from the other end; all of them where it is not in the queue any more."""
    found = page.ordered_ids(person, filters)
    if step < 0:
        found.reverse()
    at = found.index(pk) if pk in found else -1
    onward = found[at + 1 :] + (found[:at] if at > 0 else [])
    return onward[:MOST]
