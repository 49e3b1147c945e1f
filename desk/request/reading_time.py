"""The minimum reading time of a request, and the most approvals in a row.

A commit that comes too soon is refused once; the second try is accepted and flagged.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from journal.errors import DomainError, TooFast
from policies import active
from policies.choices import Risk
from policies.documents import Desk
from reviews.decisions.submission import PageToken, VerdictSubmission
from reviews.effects.wording import format_people

from ..components import throttle
from .load import LoadedRequest
from .regions import RenderedRegions

FAST = "fast"  # the warning, and the flag of a decision that insisted


def find_floor(regions: RenderedRegions) -> datetime | None:
    """Until when a commit must be repeated; None once the minimum reading time is over,
    and for a reviewer who was warned already."""
    loaded, screen = regions.loaded, regions.screen
    seconds = _compute_floor_seconds(loaded, Risk(loaded.sealed.risk))
    until = regions.opened + timedelta(seconds=seconds)
    warned = screen.before.warned if screen.before else ()
    if until <= loaded.now or FAST in {screen.warned, *warned}:
        return None
    return until


def find_haste_refusal(
    loaded: LoadedRequest, page: PageToken, verdict: VerdictSubmission, risk: Risk
) -> DomainError | None:
    """The refusal of a commit that comes too soon or after too many others. `risk` is
    that of the version that is approved, which an edit can raise."""
    if not verdict.commits:
        return None
    return _refuse_too_fast(loaded, page, risk) or throttle.find_rate_refusal(
        loaded.person, most=_load_desk_rules(loaded).most_decisions, now=loaded.now
    )


def _refuse_too_fast(
    loaded: LoadedRequest, page: PageToken, risk: Risk
) -> DomainError | None:
    took = (loaded.now - page.rendered_at).total_seconds()
    if FAST in page.warned or took >= _compute_floor_seconds(loaded, risk):
        return None
    return TooFast(
        f"You opened this {format_people(max(int(took), 0), 'second')} ago. Nothing "
        "was recorded. Check what changes, then confirm again."
    )


def _compute_floor_seconds(loaded: LoadedRequest, risk: Risk) -> int:
    """The minimum reading time of the version on the screen, or of a higher risk that
    an edit makes."""
    floors = _load_desk_rules(loaded).time_floor
    return max(floors.get(level, 0) for level in (Risk(loaded.sealed.risk), risk))


def _load_desk_rules(loaded: LoadedRequest) -> Desk:
    """The desk rules of the policy that the version was sealed under, so that they do
    not change between two tries."""
    return active.load_document(loaded.sealed.policy).desk
