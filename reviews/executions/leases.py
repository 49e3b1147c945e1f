"""What the holder of a claim needs before it acts or writes: the current fence, and
enough time left on its lease (docs/invariants.md I22)."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from django.conf import settings
from django.db import transaction

from journal import restore_epochs, writes
from journal.errors import StaleFence
from journal.statements import Statement
from policies.choices import ExecutionClass
from reviews import locks
from reviews.choices import ExecutionStatus
from reviews.models import Execution, StateReading

from .claims import Claim
from .rechecks import RecheckFacts

# The status is a parameter so that the row is found by its id (journal/writes.py).
# Without `durably`, the commit does not wait for the disk, and a crash of the database
# can lose it. The attempt also loses its connection then, and another one follows once
# its lease has lapsed.
_BEGIN = Statement("""
WITH begun AS (
    UPDATE reviews_execution SET began_at = clock_timestamp(), retried_at = NULL
    WHERE id = %(pk)s AND status = %(claimed)s AND fence = %(fence)s
      AND lease_until > clock_timestamp() + %(enough)s::interval
    RETURNING id
), stored AS (
    INSERT INTO reviews_statereading (revision_id, cause, reading, digest, at)
    SELECT given.* FROM jsonb_to_recordset(%(readings)s::jsonb)
        AS given (revision_id bigint, cause text, reading jsonb, digest text,
                  at timestamptz)
)
SELECT count(*), set_config('synchronous_commit',
                            CASE WHEN %(durably)s THEN
                                current_setting('synchronous_commit') ELSE 'off' END,
                            true)
FROM begun
""")


def record_outside_database(execution: Execution) -> None:
    """Record outside the database that a claim was made, before its effect, so that an
    older backup is recognised after a restore. Raises DatabaseRestored, or OSError when
    the note cannot be written. Call it outside a transaction; inside the transaction of
    a test, which never commits, it does nothing."""
    facts: RecheckFacts | None = execution.recheck_facts
    state = facts.state if facts else None
    known = (state.mark, state.database) if state else ()
    transaction.on_commit(partial(restore_epochs.advance_mark, *known))


def begin_attempt(claim: Claim) -> None:
    """Mark the attempt as begun, and store what was read for it. Raises StaleFence when
    the lease may end during the effect: a delayed holder must not begin what a
    successor may already perform."""
    execution = claim.execution
    # The note that the attempt began need not outlive a crash of the database for a
    # first attempt at a keyed service, which performs the same key once.
    keyed = execution.execution_class is ExecutionClass.KEYED
    durably = not keyed or execution.retried_at is not None
    enough = timedelta(seconds=settings.COUNTERSEAL.http_timeout)
    _mark_begun(claim, enough, durably=durably)


def mark_handed_out(claim: Claim) -> None:
    """Mark the claim as begun, right before it is returned to the agent. Raises
    StaleFence when its lease has lapsed, or a concurrent call released the claim."""
    _mark_begun(claim, timedelta(), durably=True)


def _mark_begun(claim: Claim, enough: timedelta, *, durably: bool) -> None:
    held, _ = _BEGIN.fetch_one(
        pk=claim.execution.pk,
        claimed=ExecutionStatus.CLAIMED,
        fence=claim.fence,
        enough=enough,
        durably=durably,
        readings=writes.format_rows(take_readings(claim.execution)),
    )
    if held != 1:  # guard: begin-in-time
        raise StaleFence


def take_readings(execution: Execution) -> list[StateReading]:
    """Remove and return the readings that are not stored yet; the caller stores
    them."""
    facts: RecheckFacts | None = execution.recheck_facts
    if facts is None:
        return []
    readings = list(facts.readings)
    facts.readings.clear()
    return readings


def load_fenced_execution(execution_id: str, fence: int) -> Execution:
    """Load the claimed execution, locked. Raises NotFound, and StaleFence when another
    holder took it over."""
    execution = locks.lock_execution(execution_id)
    # guard: fence
    if execution.status != ExecutionStatus.CLAIMED or execution.fence != fence:
        raise StaleFence
    return execution
