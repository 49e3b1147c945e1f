"""Who is in a batch now. Nobody is told when a member is decided alone, replaced,
escalated, expired or withdrawn: that is seen from the member itself, whenever it
matters, and a sweep tidies the rows afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q

from policies import tools
from policies.documents import ToolDefinition
from reviews.choices import RequestStatus
from reviews.governance import readings as state_readings
from reviews.models import (
    ApprovalRequest,
    Batch,
    BatchItem,
    RequestVersion,
    StateReading,
)

from . import similarity

# Documents that all members have in common: with each, they would cost the most.
LARGE = ("policy__document", "revision__tool__definition")
GONE = {
    RequestStatus.RECALLABLE: "Approved alone.",
    RequestStatus.AUTHORIZED: "Approved alone.",
    RequestStatus.REJECTED: "Rejected alone.",
    RequestStatus.EXPIRED: "Expired.",
    RequestStatus.WITHDRAWN: "Withdrawn.",
    RequestStatus.SUPERSEDED: "Replaced by a later proposal.",
}


@dataclass(slots=True)
class Member:
    """One request of a batch with all that a decision on it needs."""

    item: BatchItem
    request: ApprovalRequest
    version: RequestVersion
    reading: StateReading | None
    gone: str = ""  # why it is no member any more

    @property
    def id(self) -> str:
        return self.request.pk

    @property
    def definition(self) -> ToolDefinition:
        return tools.definition(self.version.revision.known_tool)

    @property
    def changed(self) -> bool:
        """Whether it is asked in another version than when it joined."""
        return self.version.created_at > self.item.joined_at

    @property
    def entry(self) -> dict[str, Any]:
        """Its place in the list that the digest is of."""
        return {
            "request": self.request.pk,
            "version": self.version.number,
            "action_hash": self.version.revision.action_hash,
            "seal": self.version.seal,
            "reading": state_readings.digest_of(self.reading, self.version.revision),
        }

    @property
    def mark(self) -> str:
        """The same in eight digits, for a page to say what it showed."""
        return similarity.digest([self.entry]).removeprefix("sha256:")[:8]


def load(
    batch: Batch,
    *,
    now: datetime,
    requests: Mapping[str, ApprovalRequest] | None = None,
) -> list[Member]:
    """Everybody whose row has not left, in order, in three queries; `gone` says who
    is no member any more all the same. `requests` are rows that the caller has
    locked."""
    items = batch.items.filter(left_at__isnull=True).order_by("position")
    if requests is None:
        items = items.select_related("request__proposal", "request__queue")
    rows = list(items)
    for item in rows:
        if requests is not None:
            item.request = requests[item.request_id]
    return _members(batch, rows, now)


def decided(batch: Batch, *, now: datetime) -> list[Member]:
    """Everybody whom the decision on a batch was on, those too that were recalled
    since; in three queries."""
    recalled = Q(left_at__gt=F("batch__settled_at"))
    items = batch.items.filter(Q(left_at__isnull=True) | recalled)
    rows = items.select_related("request__proposal", "request__queue")
    return _members(batch, list(rows.order_by("position")), now)


def _members(batch: Batch, items: list[BatchItem], now: datetime) -> list[Member]:
    versions = sealed(item.request for item in items)
    readings = state_readings.newest_of(one.revision for one in versions.values())
    found = []
    for item in items:
        version = versions[item.request_id]
        reading = readings.get(version.revision_id)
        member = Member(item, item.request, version, reading)
        member.gone = _why_gone(member, batch, now)
        found.append(member)
    return found


def sealed(requests: Iterable[ApprovalRequest]) -> dict[str, RequestVersion]:
    """The versions that these requests are asked in now, by request, in one query."""
    by_id = {request.pk: request for request in requests}
    rows = (
        RequestVersion.objects.filter(request__in=by_id, number=F("request__version"))
        .select_related("revision__tool", "policy")
        .defer(*LARGE)
    )
    for row in rows:
        row.request = by_id[row.request_id]
        row.revision.proposal = row.request.proposal
        row.request._sealed = row
    return {row.request_id: row for row in rows}


def _why_gone(member: Member, batch: Batch, now: datetime) -> str:
    request, version = member.request, member.version
    if request.status != RequestStatus.PENDING:
        return GONE[RequestStatus(request.status)]
    if request.expires_at <= now:
        return GONE[RequestStatus.EXPIRED]
    if similarity.speaks(version):
        return "Its words address the reviewer, so it is decided alone."
    if not similarity.fits(version, member.definition):
        return "It needs more authority now, so it is decided alone."
    agent = request.proposal.agent
    found = similarity.key(version, member.definition, agent=agent, group=batch.group)
    return "" if found == batch.key else "Replaced, and no longer like the others."
