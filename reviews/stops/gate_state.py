"""What holds for every action at one moment, read in one statement: the time, the
restore epoch, the active policy, and the stops and pauses over the action.

An operation reads it after its locks, together with the facts of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from journal import restore_epochs
from journal.restore_epochs import BackupCutoff, DatabaseState, LocalMark
from journal.statements import Row, Statement
from policies import active
from policies.models import PolicyVersion
from reviews.choices import StopMode

from . import stops
from .stops import StoppableAction

# Its parameters are keys, since and record.
COLUMNS = f"""
clock_timestamp(),
{active.ACTIVE_COLUMN},
(SELECT json_agg(json_build_array(scope, key, mode)) FROM reviews_stop
 WHERE {stops.STOP_CONDITION}),
{restore_epochs.COLUMNS}
"""  # noqa: S608 constants
_COUNT = 3 + restore_epochs.COLUMN_COUNT
_STATE = Statement(f"SELECT {COLUMNS}")


@dataclass(frozen=True, slots=True)
class GateState:
    """The state of the gate for some actions. `modes` has the strictest stop or pause
    over each. `halted` says why nothing may run, as `restore_epochs.find_halt_reason`
    does."""

    now: datetime
    policy: PolicyVersion | None
    modes: Mapping[StoppableAction, StopMode | None]
    mark: LocalMark
    database: DatabaseState
    halted: str

    @property
    def backup(self) -> BackupCutoff:
        """The time before which every row came from a backup."""
        return restore_epochs.compute_backup_cutoff(self.halted, self.database)

    @property
    def mode(self) -> StopMode | None:
        """The strictest stop or pause over the only action."""
        (mode,) = self.modes.values()
        return mode


def load_state(action: StoppableAction, *, since: datetime | None = None) -> GateState:
    """The state for an action. With `since`, a stop that was set at that time or later
    counts although it has been lifted."""
    return load_row(_STATE, [action], since=since)[0]


def load_row(
    statement: Statement,
    actions: Collection[StoppableAction],
    *,
    since: datetime | None = None,
    **values: Any,
) -> tuple[GateState, Row]:
    """Run a statement whose first columns are `COLUMNS`. Return the state and the
    further columns of its only row."""
    state, (row,) = load_rows(statement, actions, since=since, **values)
    return state, row


def load_rows(
    statement: Statement,
    actions: Collection[StoppableAction],
    *,
    since: datetime | None = None,
    **values: Any,
) -> tuple[GateState, list[Row]]:
    """As `load_row`, for a statement that returns at least one row: the further columns
    of each."""
    mark = restore_epochs.read_local_mark()
    rows = statement.fetch_all(
        keys=sorted({key for action in actions for key in stops.list_keys(action)}),
        since=since,
        record=mark.record,
        **values,
    )
    now, policy, covering, *epoch = rows[0][:_COUNT]
    database = restore_epochs.build_state(epoch)
    return (
        GateState(
            now=now,
            policy=active.load_known_policy(policy),
            modes={
                action: stops.find_strictest_mode(action, covering or ())
                for action in actions
            },
            mark=mark,
            database=database,
            halted=restore_epochs.compute_halt_reason(mark, database),
        ),
        [row[_COUNT:] for row in rows],
    )
