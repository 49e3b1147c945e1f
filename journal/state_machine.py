"""State machines as tables keyed by edge, and the one door through which a status
is written. What follows from a transition is a column of its row, never an `if`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import models

from . import log, notify, outbox
from .errors import Conflict, IllegalTransition

Row = TypeVar("Row", bound=models.Model)
Said = Callable[[Any], Mapping[str, Any]]  # what the log says of one row
# What is told of one row to who proposed it; None where nobody listens.
Told = Callable[[Any], Mapping[str, outbox.Fact] | None]
TOLD = "proposal.told"
NOWHERE = ""  # the source of a row that does not exist yet


@dataclass(frozen=True, slots=True)
class Edge:
    """One legal step: from a status, by an event, to a status, and what follows."""

    source: str
    event: str
    target: str
    logged_as: str
    published_as: str = ""
    told_as: str = ""  # the event by which the agent hears of it (api.md "Out")


def _nothing(row: models.Model) -> Mapping[str, Any]:
    """More of each row than of all."""
    return {}


def _nobody(row: models.Model) -> None:
    """Who proposed this, if anybody did, asked for no letters."""
    return


class Machine:
    """One model's edges. `context` names a row in the log: proposal, version, …;
    `told` gives what its agent's letters say of it."""

    def __init__(
        self,
        name: str,
        edges: Sequence[Edge],
        context: Callable[[Any], Mapping[str, Any]],
        told: Told = _nobody,
    ) -> None:
        self.name = name
        self.edges = tuple(edges)
        self.table = {(edge.source, edge.event): edge for edge in edges}
        self.context = context
        self.told = told

    def edge(self, source: str, event: str) -> Edge:
        """Raises IllegalTransition when the machine has no such step."""
        try:
            return self.table[(str(source), event)]
        except KeyError:
            raise IllegalTransition(
                f"This {self.name} is {source or 'not there'}: it cannot {event}."
            ) from None

    def create(
        self, row: Row, event: str, *, actor: log.Actor, now: datetime, **said: Any
    ) -> Row:
        """Insert a new row in its first status. Caller holds a transaction."""
        self.create_many([row], event, actor=actor, now=now, **said)
        return row

    def create_many(
        self,
        rows: Sequence[Row],
        event: str,
        *,
        actor: log.Actor,
        now: datetime,
        each: Said = _nothing,
        **said: Any,
    ) -> None:
        """Insert many new rows in their first status, with one statement a kind."""
        if not rows:
            return
        edge = self.edge(NOWHERE, event)
        for row in rows:
            row.status = edge.target  # type: ignore[attr-defined]
        type(rows[0])._default_manager.bulk_create(rows)
        self._tell(rows, edge, actor, now, each, said)

    def apply(
        self,
        row: Row,
        event: str,
        *,
        actor: log.Actor,
        now: datetime,
        changes: Mapping[str, Any] | None = None,
        guard: models.Q | None = None,
        **said: Any,
    ) -> Row:
        """Move a row along one edge by a guarded update; `said` goes to the log.

        Raises IllegalTransition, or Conflict when the row is no longer as read.
        Caller holds a transaction.
        """
        self.apply_many(
            [row], event, actor=actor, now=now, changes=changes, guard=guard, **said
        )
        return row

    def apply_many(
        self,
        rows: Sequence[Row],
        event: str,
        *,
        actor: log.Actor,
        now: datetime,
        changes: Mapping[str, Any] | None = None,
        guard: models.Q | None = None,
        each: Said = _nothing,
        **said: Any,
    ) -> None:
        """Move many rows of one status along one edge, with one statement a kind.
        `each` gives what the log says of one row beside what it says of all.

        Raises IllegalTransition, or Conflict when any row is no longer as read.
        Caller holds a transaction, and for more than one row has locked them.
        """
        if not rows:
            return
        edge = self.edge(rows[0].status, event)  # type: ignore[attr-defined]
        values = {"status": edge.target, **(changes or {})}
        found = type(rows[0])._default_manager.filter(
            guard or models.Q(), pk__in=[row.pk for row in rows], status=edge.source
        )
        if found.update(**values) != len(rows):  # guard: as-read
            raise Conflict
        for row in rows:
            for field, value in values.items():
                setattr(row, field, value)
        self._tell(rows, edge, actor, now, each, said)

    def _tell(
        self,
        rows: Sequence[models.Model],
        edge: Edge,
        actor: log.Actor,
        now: datetime,
        each: Said,
        said: Mapping[str, Any],
    ) -> None:
        about = [self.context(row) for row in rows]
        log.append_many(
            log.Entry(
                edge.logged_as,
                actor=actor,
                at=now,
                from_=edge.source,
                to=edge.target,
                **{**context, **said, **each(row)},
            )
            for row, context in zip(rows, about, strict=True)
        )
        # Whoever waits for a proposal, or has it on a page, looks after the commit.
        notify.announce(*{one["proposal"] for one in about if "proposal" in one})
        if edge.published_as:
            outbox.publish_many(edge.published_as, [(str(row.pk), {}) for row in rows])
        if edge.told_as:
            outbox.publish_many(TOLD, self._letters(rows, about, edge, now))

    def _letters(
        self,
        rows: Sequence[models.Model],
        about: Sequence[Mapping[str, Any]],
        edge: Edge,
        now: datetime,
    ) -> list[tuple[str, Mapping[str, outbox.Fact]]]:
        """Facts as they are now: a letter written later must not say what came then."""
        found: list[tuple[str, Mapping[str, outbox.Fact]]] = []
        for row, context in zip(rows, about, strict=True):
            told = self.told(row)
            if told is not None:
                facts = {k: context[k] for k in ("revision", "action_hash")}
                said = {"event": edge.told_as, "status": edge.target}
                at = {"at": now.isoformat()}
                found.append((context["proposal"], {**facts, **said, **at, **told}))
        return found
