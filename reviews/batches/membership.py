"""The current members of a batch, and the log records about a batch as a whole.

No event updates a batch when a member is decided alone, replaced, escalated, expired
or withdrawn. Readers derive that from the request itself, and a sweep (`formation`)
removes the row afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q

from journal import log
from journal.prepared_queries import Parameter, PreparedQuery
from policies import tools
from policies.documents import ToolDefinition
from reviews.choices import REQUEST_SPECS, RequestStatus
from reviews.governance import readings as state_readings
from reviews.models import (
    ApprovalRequest,
    Batch,
    BatchItem,
    RequestVersion,
    StateReading,
)

from . import similarity

# Documents that all members share; loading them per member would be the main cost.
SHARED_DOCUMENTS = ("policy__document", "revision__tool__definition")


@dataclass(slots=True)
class BatchMember:
    """One request of a batch, with everything that a decision on it needs."""

    item: BatchItem
    request: ApprovalRequest
    version: RequestVersion
    reading: StateReading | None
    gone: str = ""  # why it is no longer a member, as a sentence; empty while it is

    @property
    def id(self) -> str:
        return self.request.pk

    @property
    def definition(self) -> ToolDefinition:
        return tools.load_definition(self.version.revision.known_tool)

    @property
    def changed(self) -> bool:
        """Whether the request has a newer version than when it joined."""
        return self.version.created_at > self.item.joined_at

    @property
    def entry(self) -> dict[str, Any]:
        """This member's element of the list that the batch digest covers."""
        return {
            "request": self.request.pk,
            "version": self.version.number,
            "action_hash": self.version.revision.action_hash,
            "seal": self.version.seal,
            "reading": state_readings.compute_effective_digest(
                self.reading, self.version.revision
            ),
        }

    @property
    def mark(self) -> str:
        """Eight hex digits of the entry's digest: tells whether a page is outdated."""
        return similarity.compute_list_digest([self.entry]).removeprefix("sha256:")[:8]


def load_members(
    batch: Batch,
    *,
    now: datetime,
    requests: Mapping[str, ApprovalRequest] | None = None,
) -> list[BatchMember]:
    """Load all members whose row has not left, in order, in three queries. Where `gone`
    is not empty, the request is no longer a member although its row is still there.
    `requests` are rows that the caller has already locked, by id."""
    items = batch.items.filter(left_at__isnull=True).order_by("position")
    if requests is None:
        items = items.select_related("request__proposal", "request__queue")
    rows = list(items)
    for item in rows:
        if requests is not None:
            item.request = requests[item.request_id]
    return _build_members(batch, rows, now)


def load_decided_members(batch: Batch, *, now: datetime) -> list[BatchMember]:
    """Load all members that the decision on a batch covered, including those recalled
    since, in three queries."""
    recalled = Q(left_at__gt=F("batch__settled_at"))
    items = batch.items.filter(Q(left_at__isnull=True) | recalled)
    rows = items.select_related("request__proposal", "request__queue")
    return _build_members(batch, list(rows.order_by("position")), now)


def _build_members(
    batch: Batch, items: list[BatchItem], now: datetime
) -> list[BatchMember]:
    versions = load_sealed_versions(item.request for item in items)
    readings = state_readings.list_newest_by_revision(
        version.revision for version in versions.values()
    )
    members = []
    for item in items:
        version = versions[item.request_id]
        reading = readings.get(version.revision_id)
        member = BatchMember(item, item.request, version, reading)
        member.gone = _describe_departure(member, batch, now)
        members.append(member)
    return members


_SEALED_VERSIONS = PreparedQuery(
    lambda: (
        RequestVersion.objects.filter(
            request__any=Parameter("requests"), number=F("request__version")
        )
        .select_related("revision__tool", "policy")
        .defer(*SHARED_DOCUMENTS)
    )
)


def load_sealed_versions(
    requests: Iterable[ApprovalRequest],
) -> dict[str, RequestVersion]:
    """Load the current version of each request, by request id, in one query. Also sets
    it as the request's `sealed`."""
    by_id = {request.pk: request for request in requests}
    rows = _SEALED_VERSIONS.fetch_all(requests=list(by_id))
    for row in rows:
        row.request = by_id[row.request_id]
        row.revision.proposal = row.request.proposal
        row.request._sealed = row
    return {row.request_id: row for row in rows}


def _describe_departure(member: BatchMember, batch: Batch, now: datetime) -> str:
    request, version = member.request, member.version
    if request.status != RequestStatus.PENDING:
        spec = REQUEST_SPECS[request.status]
        how = "separately" if spec.voted else spec.by
        return f"{spec.label} {how}".rstrip() + "."
    if request.expires_at <= now:
        return f"{REQUEST_SPECS[RequestStatus.EXPIRED].label}."
    if similarity.addresses_reviewer(version):
        return "Its text addresses the reviewer, so it must be decided separately."
    if not similarity.may_be_batched(version, member.definition):
        return "It now needs more approval, so it must be decided separately."
    agent = request.proposal.agent
    key = similarity.compute_batch_key(
        version, member.definition, agent=agent, group=batch.group
    )
    return "" if key == batch.key else "Replaced and no longer similar to the others."


def log_batch_event(
    batch: Batch,
    kind: str,
    actor: log.Actor,
    now: datetime,
    data: Mapping[str, Any],
    verdict: str = "",
) -> None:
    """Log something about a batch; `kind` is the record's kind. Caller holds a
    transaction."""
    log.append(
        kind,
        actor=actor,
        at=now,
        agent=batch.agent,
        verdict=verdict,
        data={"batch": batch.pk, **data},
    )
