"""What the log keeps of a batch that forms."""

from __future__ import annotations

from datetime import datetime

from journal import log
from reviews.models import Batch

FORMER = log.Actor("system", "batches")


def note(batch: Batch, kind: str, requests: list[str], now: datetime) -> None:
    log.append(
        kind,
        actor=FORMER,
        at=now,
        agent=batch.agent,
        data={"batch": batch.pk, "requests": requests},
    )
