"""State machines as tables of edges, and the only code that writes a status.

Every consequence of a transition is a field of its Edge, never an `if`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import models

from . import log, notify, outbox, writes
from .errors import IllegalTransition
from .writes import NO_GUARD, Guard

Row = TypeVar("Row", bound=models.Model)
LogMembersOf = Callable[[Any], Mapping[str, Any]]  # row -> members of its log record
# Row -> facts for the webhook events to its agent; None where the agent has no
# listener.
WebhookFactsOf = Callable[[Any], Mapping[str, outbox.Fact] | None]
PROPOSAL_TOLD = "proposal.told"
NO_SOURCE = ""  # the source of an edge that creates a row


@dataclass(frozen=True, slots=True)
class Edge:
    """One legal transition from `source` by `event` to `target`, and its consequences:
    the kind of its log record, and the topic published to the outbox ("" for none)."""

    source: str
    event: str
    target: str
    logged_as: str
    published_as: str = ""
    webhook_event: str = ""  # the agent's webhook event; "" for none


def _no_log_members(row: models.Model) -> Mapping[str, Any]:
    """Default of `each`: no log members beyond those that all rows share."""
    return {}


def _no_webhook_facts(row: models.Model) -> None:
    """Default of `webhook_facts`: no webhook events about this row."""
    return


class Machine:
    """The state machine of one model.

    `context` returns the log members that identify a row: proposal, version and so on.
    `webhook_facts` returns the facts for webhook events about it, None for no event.
    """

    def __init__(
        self,
        name: str,
        edges: Sequence[Edge],
        context: Callable[[Any], Mapping[str, Any]],
        webhook_facts: WebhookFactsOf = _no_webhook_facts,
    ) -> None:
        self.name = name
        self.edges = tuple(edges)
        self.table = {(edge.source, edge.event): edge for edge in edges}
        self.context = context
        self.webhook_facts = webhook_facts

    def edge(self, source: str, event: str) -> Edge:
        """The edge for an event. Raises IllegalTransition when there is none."""
        try:
            return self.table[(str(source), event)]
        except KeyError:
            raise IllegalTransition(
                f"This {self.name} is {source or 'not there'}: it cannot {event}."
            ) from None

    def create(
        self, row: Row, event: str, *, actor: log.Actor, now: datetime, **members: Any
    ) -> Row:
        """Insert a new row in its first status; `members` are those of its log record.
        Caller holds a transaction."""
        self.create_many([row], event, actor=actor, now=now, **members)
        return row

    def create_many(
        self,
        rows: Sequence[Row],
        event: str,
        *,
        actor: log.Actor,
        now: datetime,
        each: LogMembersOf = _no_log_members,
        **members: Any,
    ) -> None:
        """Insert many new rows in their first status, with one INSERT per table. `each`
        returns further log members of one row. Caller holds a transaction."""
        if not rows:
            return
        edge = self.edge(NO_SOURCE, event)
        for row in rows:
            row.status = edge.target  # type: ignore[attr-defined]
        writes.insert_rows(rows)
        if rows[0].pk is None:  # its messages name it
            writes.send_pending()
        self._tell(rows, edge, actor, now, each, members)

    def apply(
        self,
        row: Row,
        event: str,
        *,
        actor: log.Actor,
        now: datetime,
        changes: Mapping[str, Any] | None = None,
        guard: Guard = NO_GUARD,
        **members: Any,
    ) -> Row:
        """Move a row along one edge with a guarded update. `changes` are further fields
        to set, `guard` is a further condition, and `members` are those of the log
        record. Raises IllegalTransition, or Conflict when the row changed since it was
        read. Caller holds a transaction."""
        self.apply_many(
            [row], event, actor=actor, now=now, changes=changes, guard=guard, **members
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
        guard: Guard = NO_GUARD,
        each: LogMembersOf = _no_log_members,
        **members: Any,
    ) -> None:
        """`apply` for many rows of the same status, with one statement per table.
        `each` returns further log members of one row. Raises IllegalTransition, or
        Conflict when any row changed since it was read. Caller holds a transaction and,
        for more than one row, their locks."""
        if not rows:
            return
        edge = self.edge(rows[0].status, event)  # type: ignore[attr-defined]
        values = {"status": edge.target, **(changes or {})}
        writes.update_rows(rows, values, source=edge.source, guard=guard)
        for row in rows:
            for field, value in values.items():
                setattr(row, field, value)
        self._tell(rows, edge, actor, now, each, members)

    def _tell(
        self,
        rows: Sequence[models.Model],
        edge: Edge,
        actor: log.Actor,
        now: datetime,
        each: LogMembersOf,
        members: Mapping[str, Any],
    ) -> None:
        about = [self.context(row) for row in rows]
        log.append_many(
            log.Entry(
                edge.logged_as,
                actor=actor,
                at=now,
                from_=edge.source,
                to=edge.target,
                **{**context, **members, **each(row)},
            )
            for row, context in zip(rows, about, strict=True)
        )
        # Wakes calls that wait for a proposal and pages that show it, after the commit.
        notify.announce(*{c["proposal"] for c in about if "proposal" in c})
        if edge.published_as:
            outbox.publish_many(edge.published_as, [(str(row.pk), {}) for row in rows])
        if edge.webhook_event:
            outbox.publish_many(
                PROPOSAL_TOLD, self._build_events(rows, about, edge, now)
            )

    def _build_events(
        self,
        rows: Sequence[models.Model],
        about: Sequence[Mapping[str, Any]],
        edge: Edge,
        now: datetime,
    ) -> list[tuple[str, Mapping[str, outbox.Fact]]]:
        """The facts are stored as they are now, because a webhook event built later
        must not report later changes."""
        events: list[tuple[str, Mapping[str, outbox.Fact]]] = []
        for row, context in zip(rows, about, strict=True):
            facts = self.webhook_facts(row)
            if facts is not None:
                event = {
                    "revision": context["revision"],
                    "action_hash": context["action_hash"],
                    "event": edge.webhook_event,
                    "status": edge.target,
                    "at": now.isoformat(),
                    **facts,
                }
                events.append((context["proposal"], event))
        return events
