"""Alike requests join the batch that takes them, or form one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet

from journal import clock, notify
from policies import active
from reviews import locks, transitions
from reviews.forming.loose import LEAST, WINDOW, Loose, loose_among, sorted_out
from reviews.forming.records import FORMER, note
from reviews.models import ApprovalRequest, Batch, BatchItem, RequestVersion

from . import membership, similarity


def form_around(request_id: str) -> list[str]:
    """Put one new request with those like it; the ids of the batches it touched."""
    asked = ApprovalRequest.objects.select_related("proposal").filter(pk=request_id)
    for request in asked:
        like = ApprovalRequest.objects.filter(
            queue=request.queue_id,
            proposal__agent=request.proposal.agent,
            proposal__tool_name=request.proposal.tool_name,
        )
        return _form(like)
    return []


def form_all() -> list[str]:
    """The same for whatever was missed: the guarantee behind the nudge."""
    policy = active.active_or_none()
    if policy is None:
        return []
    found = active.compiled(policy).tools
    names = [name for name, tool in found.items() if tool.batchable]
    return _form(ApprovalRequest.objects.filter(proposal__tool_name__in=names))


def _form(among: QuerySet[ApprovalRequest]) -> list[str]:
    now = clock.now()
    loose = list(loose_among(among, now))
    touched = []
    for key, group, members in sorted_out(loose, now):
        try:
            touched += _gather(key=key, group=group, members=members)
        except IntegrityError:
            continue  # formed elsewhere at this moment; the sweep looks again
    return touched


@transaction.atomic(durable=True)
def _gather(*, key: str, group: str, members: Sequence[Loose]) -> list[str]:
    """Let them join the batch that is forming under this key, or form one."""
    batch = locks.batch_forming(key)
    now = clock.now()
    inside = membership.load(batch, now=now) if batch else []
    fitting = _fitting([m.version for m in inside if not m.gone], members)
    if batch is None and len(fitting) < LEAST:
        return []
    if batch is None:
        batch = _create(key, group, fitting, now)
    if fitting:
        _join(batch, fitting, now)
    return [batch.pk]


def _fitting(inside: Sequence[RequestVersion], members: Sequence[Loose]) -> list[Loose]:
    """As many as the tool's ceilings leave room for, the oldest first."""
    versions, taken = list(inside), []
    for one in members:
        batch = one.definition.batchable
        total = similarity.total_of([*versions, one.version])
        if batch is None or len(versions) >= batch.items:
            break
        if not similarity.too_much(total, one.definition):
            versions.append(one.version)
            taken.append(one)
    return taken


def _create(key: str, group: str, members: Sequence[Loose], now: datetime) -> Batch:
    first = members[0].version
    since = now if group else min(one.version.created_at for one in members)
    batch = Batch(
        key=key,
        tool=first.revision.known_tool,
        queue_id=first.queue_id,
        agent=first.request.proposal.agent,
        group=group,
        formed_at=now,
        closes_at=since + WINDOW,
    )
    return transitions.batch.create(
        batch, "form", actor=FORMER, now=now, data={"batch": batch.pk}
    )


def _join(batch: Batch, members: Sequence[Loose], now: datetime) -> None:
    last = batch.items.aggregate(last=Max("position"))["last"] or 0
    BatchItem.objects.bulk_create(
        BatchItem(batch=batch, request_id=one.id, position=place, joined_at=now)
        for place, one in enumerate(members, last + 1)
    )
    note(batch, "batch.joined", [one.id for one in members], now)
    # Pages that show the batch hear of it by a row that they have.
    shown = batch.items.filter(left_at__isnull=True).order_by("position")
    notify.announce(*shown.values_list("request", flat=True)[:1])
