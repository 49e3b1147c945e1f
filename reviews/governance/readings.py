"""The business state as it was found again: when somebody takes a request up, and when
its execution is claimed. A decision says which reading was on its page (gate.md 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journal import canonical, clock
from journal.clock import time_of_day
from journal.errors import Precondition
from policies import tools
from reviews.models import Proposal, Revision, StateReading
from reviews.tool_services import readers
from reviews.tool_services.readers import Reading

OPENED, CLAIMED = "opened", "claimed"
OWN = 0  # stands for the revision's own reading where a page names one
NONE_SUCH = -1  # names a reading that was never made: `check` refuses it


@dataclass(frozen=True, slots=True)
class Readings:
    """What was read again of some revisions, and what pages named of it."""

    newest: Mapping[int, StateReading]  # by revision
    named: Mapping[int, StateReading]  # by its number


def newest(revision: Revision) -> StateReading | None:
    """The last reading that differed from the one before; None while the revision's
    own still holds."""
    return newest_of([revision]).get(revision.pk)


def newest_of(revisions: Iterable[Revision]) -> dict[int, StateReading]:
    """The same for many that were read again, by revision, in one query."""
    rows = StateReading.objects.filter(
        revision__in=[one.pk for one in revisions], cause=OPENED
    )
    found = rows.order_by("revision", "-at", "-pk").distinct("revision")
    return {row.revision_id: row for row in found}


def readings(pages: Sequence[tuple[Revision, int | None]]) -> Readings:
    """What `check` needs for these revisions and the numbers that their pages name, in
    at most two queries; none where no page showed any."""
    shown = [(revision, number) for revision, number in pages if number is not None]
    newest = newest_of(revision for revision, _ in shown) if shown else {}
    numbers = {number for _, number in shown if number != OWN}
    named = StateReading.objects.in_bulk(numbers) if numbers else {}
    return Readings(newest, named)


def reread(revision: Revision) -> StateReading | None:
    """Ask the tool's reader again and keep what it says where that differs.

    At most two seconds. A reader that fails now leaves what was read before. Caller
    holds no transaction.
    """
    known = newest(revision)
    if revision.tool is None:
        return known
    definition = tools.definition(revision.tool)
    if definition.reader is None:
        return known
    fresh = readers.read(definition, revision.args, asker=asker_of(revision.proposal))
    if fresh.problem or digest(fresh.as_json()) == digest_of(known, revision):
        return known
    return keep(revision, fresh, cause=OPENED)


def asker_of(proposal: Proposal) -> readers.Asker:
    """In whose name its tool's reader is asked again."""
    return readers.Asker(proposal.agent, proposal.thread)


def keep(revision: Revision, reading: Reading, *, cause: str) -> StateReading:
    """One row, which never changes."""
    said = reading.as_json()
    return StateReading.objects.create(
        revision=revision,
        cause=cause,
        reading=said,
        digest=digest(said),
        at=clock.now(),
    )


def digest(reading: Mapping[str, Any]) -> str:
    """What a reading says of the state: of when and by whom it was read, nothing."""
    said = {
        "before": reading.get("before"),
        "preconditions": reading.get("preconditions") or {},
    }
    return canonical.digest(canonical.encode(said))


def digest_of(row: StateReading | None, revision: Revision) -> str:
    """The digest of a reading, or of the revision's own."""
    return row.digest if row else digest(revision.reading)


def said(row: StateReading | None, revision: Revision) -> Mapping[str, Any]:
    """What a page shows: the reading, or the revision's own."""
    found: Mapping[str, Any] = row.reading if row else revision.reading
    return found


def number(revision: Revision, said: str) -> int:
    """The number of the newest reading with this digest, for who was shown only that;
    NONE_SUCH where none says so."""
    same = StateReading.objects.filter(revision=revision, cause=OPENED, digest=said)
    found = same.order_by("-at", "-pk").first()
    if found is not None:
        return found.pk
    return OWN if digest(revision.reading) == said else NONE_SUCH


def check(
    revision: Revision, number: int | None, found: Readings
) -> StateReading | None:
    """The reading that was on the page, if what it says still stands.

    `number` is the page's: OWN for the revision's, None where no page showed any, and
    then the revision's is what counts. Raises Precondition.
    """
    if number is None:
        return None
    shown, now = _on_page(revision, number, found), found.newest.get(revision.pk)
    if digest_of(shown, revision) != digest_of(now, revision):
        at = now.at if now else revision.created_at
        raise Precondition(
            f"The record changed after this page was made, as was found at "
            f"{time_of_day(at)}. Nothing was sent. Refresh the comparison and decide "
            "again."
        )
    return shown


def _on_page(revision: Revision, number: int, found: Readings) -> StateReading | None:
    """The row that a page's number names; None for the revision's own. Raises
    Precondition for a number that is none of this revision's."""
    if number == OWN:
        return None
    row = found.named.get(number)
    if row is None or row.revision_id != revision.pk:
        raise Precondition
    return row
