"""How batches form and end before they are decided: similar requests join a forming
batch or create one, members that can no longer be decided leave, and a batch closes
when it is full or dissolves when too few members remain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import IntegrityError
from django.db.models import Exists, F, Max, OuterRef, QuerySet

from journal import clock, log, notify, sweeps
from journal.operations import operation
from policies import active, tools
from policies.choices import Tier
from policies.documents import ToolDefinition
from reviews import locks, transitions
from reviews.choices import BatchStatus, RequestStatus
from reviews.models import ApprovalRequest, Batch, BatchItem, RequestVersion

from . import membership, similarity

# How long a batch takes members, counted from the first member's version.
JOIN_WINDOW = timedelta(minutes=10)
MIN_MEMBERS = 2  # members; with fewer, each request is decided alone
CHUNK = 500


@dataclass(frozen=True, slots=True)
class UnbatchedRequest:
    """An open request that is in no batch, with the key of a batch that fits it."""

    version: RequestVersion
    definition: ToolDefinition
    key: str

    @property
    def id(self) -> str:
        return self.version.request_id

    @property
    def group(self) -> str:
        return self.version.request.proposal.group


def list_unbatched(
    among: QuerySet[ApprovalRequest], now: datetime
) -> Iterator[UnbatchedRequest]:
    """Open requests in no batch, the oldest first. A request that a person left out of
    a batch is to be decided alone, so it is not returned."""
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
    versions = membership.load_sealed_versions(requests)
    for request in requests:
        version = versions[request.pk]
        definition = tools.load_definition(version.revision.known_tool)
        if similarity.may_be_batched(version, definition):
            proposal = request.proposal
            key = similarity.compute_batch_key(
                version, definition, agent=proposal.agent, group=proposal.group
            )
            yield UnbatchedRequest(version, definition, key)


def group_unbatched(
    loose: Sequence[UnbatchedRequest], now: datetime
) -> Iterator[tuple[str, str, list[UnbatchedRequest]]]:
    """Yield (key, group, requests) for each batch to form or extend: first each group
    that an agent declared, then recent requests without a group.

    An agent declares a group to have it decided as one. Its first request therefore
    waits for the second, and never joins requests without a group.
    """
    forming = set(
        Batch.objects.filter(status=BatchStatus.FORMING).values_list("key", flat=True)
    )
    declared = [request for request in loose if request.group]
    recent = [
        request
        for request in loose
        if not request.group and request.version.created_at > now - JOIN_WINDOW
    ]
    for requests in (declared, recent):
        by_key: dict[str, list[UnbatchedRequest]] = {}
        for request in requests:
            by_key.setdefault(request.key, []).append(request)
        for key, members in by_key.items():
            if len(members) >= MIN_MEMBERS or key in forming:
                yield key, members[0].group, members


FORMATION_ACTOR = log.Actor("system", "batches")


def log_formation(batch: Batch, kind: str, requests: list[str], now: datetime) -> None:
    """Log that requests joined or left a batch; `kind` is the record's kind."""
    log.append(
        kind,
        actor=FORMATION_ACTOR,
        at=now,
        agent=batch.agent,
        data={"batch": batch.pk, "requests": requests},
    )


def form_batch_around(request_id: str) -> list[str]:
    """Batch a new request with similar ones. Returns the ids of changed batches."""
    asked = ApprovalRequest.objects.select_related("proposal").filter(pk=request_id)
    for request in asked:
        like = ApprovalRequest.objects.filter(
            queue=request.queue_id,
            proposal__agent=request.proposal.agent,
            proposal__tool_name=request.proposal.tool_name,
        )
        return _form_batches(like)
    return []


def form_missed_batches() -> list[str]:
    """Batch every open request that `form_batch_around` missed, for instance because
    its nudge was lost. Returns the ids of the batches changed."""
    policy = active.find_active_policy()
    if policy is None:
        return []
    definitions = active.load_document(policy).tools
    names = [name for name, tool in definitions.items() if tool.batchable]
    return _form_batches(ApprovalRequest.objects.filter(proposal__tool_name__in=names))


def _form_batches(among: QuerySet[ApprovalRequest]) -> list[str]:
    now = clock.now()
    loose = list(list_unbatched(among, now))
    touched: list[str] = []

    def form(members: Sequence[UnbatchedRequest], key: str, group: str) -> None:
        # Another process may just have formed it; the next sweep tries again.
        with suppress(IntegrityError):
            touched.extend(_join_or_create(key=key, group=group, members=members))

    for key, group, members in group_unbatched(loose, now):
        sweeps.run_each(partial(form, key=key, group=group), [members])
    return touched


@operation(
    entry="form_batch_around, form_missed_batches",
    locks="batch",
    writes="Batch, BatchItem",
    logs="batch.formed, batch.joined",
    after="wake-up",
)
def _join_or_create(
    *, key: str, group: str, members: Sequence[UnbatchedRequest]
) -> list[str]:
    """Add the requests to the batch that is forming under this key, or create one."""
    batch = locks.lock_forming_batch(key)
    now = clock.now()
    inside = membership.load_members(batch, now=now) if batch else []
    fitting = _filter_fitting([m.version for m in inside if not m.gone], members)
    if batch is None and len(fitting) < MIN_MEMBERS:
        return []
    if batch is None:
        batch = _create_batch(key, group, fitting, now)
    if fitting:
        _add_members(batch, fitting, now)
    return [batch.pk]


def _filter_fitting(
    inside: Sequence[RequestVersion], members: Sequence[UnbatchedRequest]
) -> list[UnbatchedRequest]:
    """As many requests as the tool's batch limits allow, the oldest first."""
    versions, taken = list(inside), []
    for member in members:
        batch = member.definition.batchable
        total = similarity.compute_total([*versions, member.version])
        if batch is None or len(versions) >= batch.items:
            break
        if not similarity.is_above_batch_limit(total, member.definition):
            versions.append(member.version)
            taken.append(member)
    return taken


def _create_batch(
    key: str, group: str, members: Sequence[UnbatchedRequest], now: datetime
) -> Batch:
    first = members[0].version
    since = now if group else min(member.version.created_at for member in members)
    batch = Batch(
        key=key,
        tool=first.revision.known_tool,
        queue_id=first.queue_id,
        agent=first.request.proposal.agent,
        group=group,
        formed_at=now,
        closes_at=since + JOIN_WINDOW,
    )
    return transitions.batch.create(
        batch, "form", actor=FORMATION_ACTOR, now=now, data={"batch": batch.pk}
    )


def _add_members(
    batch: Batch, members: Sequence[UnbatchedRequest], now: datetime
) -> None:
    last = batch.items.aggregate(last=Max("position"))["last"] or 0
    BatchItem.objects.bulk_create(
        BatchItem(batch=batch, request_id=member.id, position=place, joined_at=now)
        for place, member in enumerate(members, last + 1)
    )
    log_formation(batch, "batch.joined", [member.id for member in members], now)
    # Announce a request that open pages of this batch already show, so they reload.
    shown = batch.items.filter(left_at__isnull=True).order_by("position")
    notify.announce(*shown.values_list("request", flat=True)[:1])


UNDECIDED = (BatchStatus.FORMING, BatchStatus.OPEN)


def tidy_open_batches() -> int:
    """Tidy every batch that is not decided yet, and release recalled requests from
    decided batches. Returns how many undecided batches changed."""
    waiting = Batch.objects.filter(status__in=UNDECIDED).values_list("pk", flat=True)
    sweeps.run_each(lambda release: release(), [release_recalled_items])
    return sweeps.run_each(lambda pk: tidy_batch(batch_id=pk), waiting)


@operation(
    locks="batch",
    writes="Batch, BatchItem",
    logs="batch.left, batch.closed, batch.dissolved",
)
def tidy_batch(*, batch_id: str) -> bool:
    """Remove members that can no longer be decided; then close a full batch or dissolve
    one that is too small. Returns whether anything changed. Raises NotFound."""
    batch = locks.lock_batch(batch_id)
    if batch.status not in UNDECIDED:
        return False
    now = clock.now()
    members = membership.load_members(batch, now=now)
    gone = [member for member in members if member.gone]
    staying = len(members) - len(gone)
    leaving = members if staying < MIN_MEMBERS else gone
    if leaving:
        rows = BatchItem.objects.filter(pk__in=[member.item.pk for member in leaving])
        rows.update(left_at=now)
        log_formation(batch, "batch.left", [member.id for member in leaving], now)
    return _close_or_dissolve(batch, staying, now) or bool(leaving)


def _close_or_dissolve(batch: Batch, staying: int, now: datetime) -> bool:
    data = {"batch": batch.pk}
    if staying < MIN_MEMBERS:
        changes = {"settled_at": now}
        transitions.batch.apply(
            batch,
            "dissolve",
            actor=FORMATION_ACTOR,
            now=now,
            changes=changes,
            data=data,
        )
        return True
    most = tools.load_definition(batch.tool).batchable
    full = most is None or staying >= most.items
    if batch.status == BatchStatus.FORMING and (full or batch.closes_at <= now):
        transitions.batch.apply(
            batch, "close", actor=FORMATION_ACTOR, now=now, data=data
        )
        return True
    return False


@operation(writes="BatchItem", logs="batch.left")
def release_recalled_items() -> None:
    """Release requests whose approval in a decided batch was recalled: they are open
    again and may join another batch."""
    recalled = BatchItem.objects.filter(
        left_at__isnull=True,
        batch__status=BatchStatus.DECIDED,
        request__status=RequestStatus.PENDING,
    ).exclude(request__tier=Tier.ESCALATE)  # open because the batch escalated them
    by_batch: dict[str, list[BatchItem]] = {}
    for item in recalled.select_related("batch").order_by("pk")[:CHUNK]:
        by_batch.setdefault(item.batch_id, []).append(item)
    now = clock.now()
    for items in by_batch.values():
        rows = BatchItem.objects.filter(pk__in=[item.pk for item in items])
        rows.update(left_at=now)
        log_formation(
            items[0].batch, "batch.left", [item.request_id for item in items], now
        )
