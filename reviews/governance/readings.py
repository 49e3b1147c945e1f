"""Readings of the business state after the proposal.

The state is read again when a person opens a request and when its execution is
claimed. A decision names the reading that its page showed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, Subquery

from journal import canonical, clock, writes
from journal.clock import format_time
from journal.errors import PreconditionFailed
from journal.prepared_queries import Parameter, PreparedQuery
from policies import tools
from reviews.models import Proposal, Revision, StateReading
from reviews.tool_services import readers
from reviews.tool_services.readers import ToolReading

OPENED, CLAIMED = "opened", "claimed"
OWN_READING = 0  # the number a page uses for the revision's own reading
NO_SUCH_READING = -1  # the number of no reading: `check_reading` refuses it


@dataclass(frozen=True, slots=True)
class KnownReadings:
    """The newest readings of some revisions, and the readings that pages named."""

    newest: Mapping[int, StateReading]  # by revision id
    named: Mapping[int, StateReading]  # by the id of the reading


def find_newest_reading(revision: Revision) -> StateReading | None:
    """The newest reading of a revision; None while the revision's own is current. A
    reading is stored only when it differs from the one before."""
    return list_newest_by_revision([revision]).get(revision.pk)


_NEWEST_READINGS = PreparedQuery(
    lambda: (
        StateReading.objects.filter(revision__any=Parameter("revisions"), cause=OPENED)
        .order_by("revision", "-at", "-pk")
        .distinct("revision")
    )
)


def build_newest_subquery() -> Subquery:
    """A subquery of request versions: the id of the newest reading of each."""
    readings = StateReading.objects.filter(revision=OuterRef("revision"), cause=OPENED)
    return Subquery(readings.order_by("-at", "-pk").values("pk")[:1])


def list_newest_by_revision(revisions: Iterable[Revision]) -> dict[int, StateReading]:
    """The newest reading of each revision, by revision id, in one query. Revisions that
    were never read again are left out."""
    return list_newest_by_id(revision.pk for revision in revisions)


def list_newest_by_id(revisions: Iterable[int]) -> dict[int, StateReading]:
    """The same, given the ids of the revisions."""
    rows = _NEWEST_READINGS.fetch_all(revisions=list(revisions))
    return {row.revision_id: row for row in rows}


def load_readings(pages: Sequence[tuple[Revision, int | None]]) -> KnownReadings:
    """Load what `check_reading` needs for these revisions, in at most two queries. Each
    pair is a revision and the number its page named; None means that the page showed no
    reading. No query when no page showed one."""
    shown = [(revision, number) for revision, number in pages if number is not None]
    newest = list_newest_by_revision(revision for revision, _ in shown) if shown else {}
    numbers = {number for _, number in shown if number != OWN_READING}
    named = StateReading.objects.in_bulk(numbers) if numbers else {}
    return KnownReadings(newest, named)


def reread_state(revision: Revision) -> StateReading | None:
    """Call the tool's reader again and store its answer when the state has changed.
    Takes at most two seconds. When the reader fails, the earlier reading stays current.
    Returns the current reading, None for the revision's own. The caller holds no
    transaction."""
    known = find_newest_reading(revision)
    if revision.tool is None:
        return known
    definition = tools.load_definition(revision.tool)
    if definition.reader is None:
        return known
    fresh = readers.read_state(
        definition, revision.args, asker=build_asker(revision.proposal)
    )
    digest = compute_reading_digest(fresh.as_json())
    if fresh.problem or digest == compute_effective_digest(known, revision):
        return known
    return create_reading(revision, fresh, cause=OPENED)


def build_asker(proposal: Proposal) -> readers.Asker:
    """The agent and thread in whose name the tool's reader is called again."""
    return readers.Asker(proposal.agent, proposal.thread)


def create_reading(
    revision: Revision, reading: ToolReading, *, cause: str
) -> StateReading:
    """Store a reading as a row, which never changes."""
    row = build_reading(revision, reading, cause=cause, at=clock.now())
    writes.insert_rows([row])
    return row


def build_reading(
    revision: Revision, reading: ToolReading, *, cause: str, at: datetime
) -> StateReading:
    """Build the row of a reading, which the caller stores."""
    reading_json = reading.as_json()
    return StateReading(
        revision=revision,
        cause=cause,
        reading=reading_json,
        digest=compute_reading_digest(reading_json),
        at=at,
    )


def compute_reading_digest(reading: Mapping[str, Any]) -> str:
    """The digest of a reading's before-state and preconditions, without its origin."""
    content = {
        "before": reading.get("before"),
        "preconditions": reading.get("preconditions") or {},
    }
    return canonical.digest(canonical.encode(content))


def compute_effective_digest(row: StateReading | None, revision: Revision) -> str:
    """The digest of a stored reading, or of the revision's own for None."""
    return row.digest if row else compute_reading_digest(revision.reading)


def load_shown_reading(
    row: StateReading | None, revision: Revision
) -> Mapping[str, Any]:
    """The reading that a page shows: the stored one, or the revision's own for None."""
    reading: Mapping[str, Any] = row.reading if row else revision.reading
    return reading


def list_plain_values(reading: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a reading that a condition may name, with their values: texts,
    numbers, booleans and null of the state before the effect, and its preconditions."""
    values = {**(reading.get("before") or {}), **(reading.get("preconditions") or {})}
    return {
        name: value
        for name, value in values.items()
        if value is None or isinstance(value, str | int | float)
    }


def find_reading_number(revision: Revision, digest: str) -> int:
    """The number of the newest reading with this digest, for clients that were given
    only the digest. NO_SUCH_READING when none has it."""
    same = StateReading.objects.filter(revision=revision, cause=OPENED, digest=digest)
    row = same.order_by("-at", "-pk").first()
    if row is not None:
        return row.pk
    own = compute_reading_digest(revision.reading) == digest
    return OWN_READING if own else NO_SUCH_READING


def check_reading(
    revision: Revision, number: int | None, known: KnownReadings
) -> StateReading | None:
    """Return the reading that the page showed if the state is still the same. `number`
    comes from the page: OWN_READING for the revision's own, None when the page showed
    no reading; then nothing is checked. `known` comes from `load_readings`. Raises
    PreconditionFailed when the state has changed, or for the number of another
    revision's reading."""
    if number is None:
        return None
    shown = None
    if number != OWN_READING:
        shown = known.named.get(number)
        if shown is None or shown.revision_id != revision.pk:
            raise PreconditionFailed
    now = known.newest.get(revision.pk)
    digest = compute_effective_digest(now, revision)
    if compute_effective_digest(shown, revision) != digest:
        at = now.at if now else revision.created_at
        raise PreconditionFailed(
            f"The record has changed since this page was loaded (found at "
            f"{format_time(at)}). Nothing was sent. Read the current record, then "
            "decide again."
        )
    return shown
