"""What stands above the regions of a request: what changed while the person was
reading, and what they should know first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from journal.clock import format_time
from journal.errors import DomainError, PreconditionFailed, StaleVersion
from reviews.effects import changes
from reviews.governance import readings
from reviews.grants import uncertain
from reviews.models import RequestVersion, StateReading

from ..components import undo
from ..components.undo import ReversedEffect
from . import comparison, escalation
from .escalation import EscalationPanel
from .load import LoadedRequest
from .regions import RenderedRegions

PAGE_CHANGED_TEXT = "This page has changed since you opened it."


@dataclass(frozen=True, slots=True)
class ChangeBanner:
    """What changed while the reader was reading: what they read, and what is."""

    title: str
    note: str
    rows: Sequence[changes.ArgumentChange] = ()
    was: str = ""  # the heading of the column with what was read
    is_now: str = ""  # the heading of the column with what is current


REVISED_WORDS = {
    "revised": "The agent revised this request",
    "modified": "A person changed this request",
    "escalated": "A reviewer escalated this request",
    "verifier": "A verifier escalated this request",
    "recalled": "An approval of this request was undone",
    "returned": "A supervisor returned this request with guidance",
    "moved": "A supervisor moved this request to another queue",
}


def _build_revised_banner(loaded: LoadedRequest, read: int) -> ChangeBanner:
    """The banner when another version replaced the one that was read."""
    versions = RequestVersion.objects.filter(request=loaded.request, number=read)
    before = versions.select_related("revision__tool").first()
    rows = changes.list_page_changes(before.revision, loaded.revision) if before else []
    what = REVISED_WORDS.get(loaded.sealed.cause, "Someone changed this request")
    at = format_time(loaded.sealed.created_at)
    title = f"{what} at {at} while you were reading version {read}."
    note = "You have not approved anything."
    if before and not rows:
        note += f" The action is the same as in version {read}."
    heads = (
        f"Version {read} (as you read it)",
        f"Version {loaded.request.version} (current)",
    )
    return ChangeBanner(title, note, rows, *heads)


def _build_stale_state_banner(
    loaded: LoadedRequest, read: StateReading | None
) -> ChangeBanner:
    """The banner when the business state changed since it was read."""
    was = readings.load_shown_reading(read, loaded.revision)
    now = readings.load_shown_reading(loaded.reading, loaded.revision)
    at = loaded.reading.at if loaded.reading else loaded.now
    return ChangeBanner(
        f"The record changed; it was read again at {format_time(at)}.",
        "Nothing was sent. Refresh the record, then decide.",
        comparison.build_moved_rows(loaded.revision, was, now),
        "As you read it",
        "Current",
    )


@dataclass(frozen=True)
class Banners:
    """The banners of one page. `problem` is the refusal of what the person just did."""

    loaded: LoadedRequest
    regions: RenderedRegions
    problem: DomainError | None

    @cached_property
    def change(self) -> ChangeBanner | None:
        """What changed while the reader was reading; None if nothing did."""
        regions, screen = self.regions, self.regions.screen
        if regions.target_moved:
            return _build_stale_state_banner(self.loaded, regions.reading)
        if screen.remade:
            return ChangeBanner(PAGE_CHANGED_TEXT, "Nothing was recorded.")
        read = screen.read
        if read is None and regions.moved and screen.before is not None:
            read = screen.before.version
        if read is None or read == self.loaded.request.version:
            return None
        return _build_revised_banner(self.loaded, read)

    @property
    def says_change(self) -> bool:
        """Whether the refusal itself says that what was read has changed."""
        return isinstance(self.problem, (StaleVersion, PreconditionFailed))

    @cached_property
    def escalation(self) -> EscalationPanel | None:
        return escalation.build_escalation_panel(self.loaded)

    @cached_property
    def reverses(self) -> ReversedEffect | None:
        """The effect that this proposal would undo; None for other proposals."""
        proposal = self.loaded.request.proposal
        return undo.group_reversals([proposal]).get(proposal.pk)

    @cached_property
    def guidance(self) -> str:
        return escalation.find_guidance(self.loaded)

    @property
    def restored(self) -> bool:
        """Whether it came back with a backup and may have been decided or run."""
        return uncertain.may_have_run(self.loaded.request)
