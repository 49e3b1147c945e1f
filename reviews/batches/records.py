"""Log records about a batch as a whole, beside those of the decisions on its items."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from journal import log
from policies.models import Person
from reviews.models import Batch


def build_person_actor(person: Person) -> log.Actor:
    return log.Actor("person", person.public_id)


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
