"""Requests in no batch, and which of them go together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, QuerySet

from policies import tools
from policies.documents import ToolDefinition
from reviews.batches import membership, similarity
from reviews.choices import BatchStatus, RequestStatus
from reviews.models import ApprovalRequest, Batch, BatchItem, RequestVersion

# From the version of the first member to the moment when nobody joins any more.
WINDOW = timedelta(minutes=10)
LEAST = 2  # members; fewer are decided alone
CHUNK = 500


@dataclass(frozen=True, slots=True)
class Loose:
    """A request in no batch that could be in one, with the keys it would fit."""

    version: RequestVersion
    definition: ToolDefinition
    key: str
    group: str
    group_key: str  # empty without a group

    @property
    def id(self) -> str:
        return self.version.request_id


def loose_among(among: QuerySet[ApprovalRequest], now: datetime) -> Iterator[Loose]:
    """Open requests in no batch, the oldest first. What somebody left out of a batch
    was to be looked at alone, so it stays alone."""
    own = BatchItem.objects.filter(request=OuterRef("pk"))
    left_out = own.filter(
        batch__status=BatchStatus.DECIDED, left_at=F("batch__settled_at")
    )
    rows = (
        among.filter(
            ~Exists(own.filter(left_at__isnull=True)),
            ~Exists(left_out),
            status=RequestStatus.PENDING,
            expires_at__gt=now,
        )
        .select_related("proposal")
        .order_by("-opened_at", "-pk")[:CHUNK]
    )
    requests = list(reversed(rows))
    versions = membership.sealed(requests)
    for request in requests:
        version = versions[request.pk]
        definition = tools.definition(version.revision.known_tool)
        if similarity.fits(version, definition):
            yield _as_loose(version, definition)


def _as_loose(version: RequestVersion, definition: ToolDefinition) -> Loose:
    proposal = version.request.proposal
    agent, group = proposal.agent, proposal.group
    return Loose(
        version,
        definition,
        similarity.key(version, definition, agent=agent),
        group,
        similarity.key(version, definition, agent=agent, group=group) if group else "",
    )


def sorted_out(
    loose: Sequence[Loose], now: datetime
) -> Iterator[tuple[str, str, list[Loose]]]:
    """Which of them go together: the agent's groups, each by itself, and then what
    came within the window and is of no group.

    Who declares a group wants it decided as one: its first request waits for the
    second, and never joins what came alone.
    """
    forming = set(
        Batch.objects.filter(status=BatchStatus.FORMING).values_list("key", flat=True)
    )
    for key, members in _by(loose, lambda one: one.group_key).items():
        if key and (len(members) >= LEAST or key in forming):
            yield key, members[0].group, members
    recent = [
        one for one in loose if not one.group and one.version.created_at > now - WINDOW
    ]
    for key, members in _by(recent, lambda one: one.key).items():
        if len(members) >= LEAST or key in forming:
            yield key, "", members


def _by(
    loose: Iterable[Loose], key_of: Callable[[Loose], str]
) -> Mapping[str, list[Loose]]:
    found: dict[str, list[Loose]] = {}
    for one in loose:
        found.setdefault(key_of(one), []).append(one)
    return found
