"""Which runs are active. Agents need not finish their runs, so the status alone does
not tell. A run is active while something of it waits, or happened within a day."""

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
)

from agents.models import Checkpoint, Thread
from reviews.choices import OPEN
from reviews.desk.components.in_flight import UNFINISHED_STATUSES
from reviews.models import ApprovalRequest, Execution, Proposal

DAY = timedelta(hours=24)


def annotate_goes_on(runs: QuerySet[Thread], slug: str, now: datetime) -> QuerySet[Any]:
    """Annotate runs of one agent with `goes_on`: whether the run is active."""
    since = now - DAY
    own = {"agent": slug, "thread": OuterRef("name")}
    theirs = {f"proposal__{name}": value for name, value in own.items()}
    proposed = Proposal.objects.filter(created_at__gt=since, **own)
    asked = ApprovalRequest.objects.filter(
        Q(status__in=OPEN) | Q(settled_at__gt=since), **theirs
    )
    performed = Execution.objects.filter(
        Q(status__in=UNFINISHED_STATUSES) | Q(finished_at__gt=since), **theirs
    )
    left = Checkpoint.objects.filter(created_at__gt=since, thread=OuterRef("pk"))
    found = Q(started_at__gt=since) | Q(Exists(proposed)) | Q(Exists(asked))
    found |= Q(Exists(performed)) | Q(Exists(left))
    return runs.annotate(goes_on=ExpressionWrapper(found, output_field=BooleanField()))
