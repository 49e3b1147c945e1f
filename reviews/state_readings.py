"""The business state as it was found again: when somebody takes a request up, and when
its execution is claimed. A decision says which reading was on its page (gate.md 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from journal import canonical, clock
from journal.errors import Precondition
from policies import tools

from . import readers
from .models import Revision, StateReading
from .readers import Reading

OPENED, CLAIMED = "opened", "claimed"
OWN = 0  # stands for the revision's own reading where a page names one
NONE_SUCH = -1  # names a reading that was never made: `check` refuses it


def newest(revision: Revision) -> StateReading | None:
    """The last reading that differed from the one before; None while the revision's
    own still holds."""
    return (
        StateReading.objects.filter(revision=revision, cause=OPENED)
        .order_by("-at", "-pk")
        .first()
    )


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
    fresh = readers.read(definition, revision.args)
    if fresh.problem or digest(fresh.as_json()) == digest_of(known, revision):
        return known
    return keep(revision, fresh, cause=OPENED)


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


def on_page(revision: Revision, number: int | None) -> StateReading | None:
    """The row that a page's number names; None for the revision's own. Raises
    Precondition for a number that is none of this revision's."""
    if not number:
        return None
    found = StateReading.objects.filter(revision=revision, pk=number).first()
    if found is None:
        raise Precondition
    return found


def number(revision: Revision, said: str) -> int:
    """The number of the newest reading with this digest, for who was shown only that;
    NONE_SUCH where none says so."""
    same = StateReading.objects.filter(revision=revision, cause=OPENED, digest=said)
    found = same.order_by("-at", "-pk").first()
    if found is not None:
        return found.pk
    return OWN if digest(revision.reading) == said else NONE_SUCH


def check(revision: Revision, number: int | None) -> StateReading | None:
    """The reading that was on the page, if what it says still stands.

    `number` is the page's: OWN for the revision's, None where no page showed any, and
    then the revision's is what counts. Raises Precondition.
    """
    if number is None:
        return None
    shown, now = on_page(revision, number), newest(revision)
    if digest_of(shown, revision) != digest_of(now, revision):
        at = now.at if now else revision.created_at
        raise Precondition(
            f"The record changed after this page was made, as was found at "
            f"{at:%H:%M:%S}. Nothing was sent. Refresh the comparison and decide again."
        )
    return shown
