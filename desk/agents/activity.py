"""Which runs are active or idle. Agents need not finish their runs, so the status alone
does not tell. A run is active while something of it waits, or happened within a day; it
is idle while nothing of it waits or is under way."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    BooleanField,
    Exists,
    ExpressionWrapper,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)
from django.db.models.functions import Greatest

from agents.models import Checkpoint, Thread
from reviews.choices import IN_FLIGHT, OPEN
from reviews.models import ApprovalRequest, Execution, Proposal

DAY = timedelta(hours=24)


def annotate_goes_on(
    runs: QuerySet[Thread], slug: str | OuterRef, now: datetime
) -> QuerySet[Any]:
    """Annotate runs of one agent, given by its slug or a reference to it, with
    `goes_on`: whether the run is active; with `under_way`: whether something of it
    waits or is being executed; and for idle runs with `idle_since` and `blocked_by`:
    what blocked its last proposal, if anything."""
    since = now - DAY
    own = {"agent": slug, "thread": OuterRef("name")}
    theirs = {f"proposal__{name}": value for name, value in own.items()}
    asks = ApprovalRequest.objects.filter(status__in=OPEN, **theirs)
    runs_now = Execution.objects.filter(status__in=IN_FLIGHT, **theirs)
    proposed = Proposal.objects.filter(created_at__gt=since, **own)
    asked = ApprovalRequest.objects.filter(
        Q(status__in=OPEN) | Q(settled_at__gt=since), **theirs
    )
    performed = Execution.objects.filter(
        Q(status__in=IN_FLIGHT) | Q(finished_at__gt=since), **theirs
    )
    left = Checkpoint.objects.filter(created_at__gt=since, thread=OuterRef("pk"))
    is_active = Q(started_at__gt=since) | Q(Exists(proposed)) | Q(Exists(asked))
    is_active |= Q(Exists(performed)) | Q(Exists(left))
    newest = Proposal.objects.filter(**own).order_by("-created_at")
    return runs.annotate(
        goes_on=ExpressionWrapper(is_active, output_field=BooleanField()),
        under_way=ExpressionWrapper(
            Q(Exists(asks)) | Q(Exists(runs_now)), output_field=BooleanField()
        ),
        idle_since=Greatest(
            "started_at",
            _find_last(newest, "created_at"),
            _find_last(ApprovalRequest.objects.filter(**theirs), "settled_at"),
            _find_last(Execution.objects.filter(**theirs), "finished_at"),
            _find_last(Checkpoint.objects.filter(thread=OuterRef("pk")), "created_at"),
        ),
        blocked_by=Subquery(newest.values("blocked_by")[:1]),
    )


def _find_last(rows: QuerySet[Any], column: str) -> Subquery:
    """A subquery: the newest moment in this column; NULL without any."""
    known = rows.filter(**{f"{column}__isnull": False}).order_by(f"-{column}")
    return Subquery(known.values(column)[:1])
