"""That people have seen what was announced to them, and what nearly went wrong. It
changes nothing that ran; near misses say which class of effects to look at."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from journal import clock, log
from policies.models import Person

from .models import Execution, Sighting

MOST = 200  # in one call


@transaction.atomic(durable=True)
def see(
    *, person: Person, executions: Collection[Execution], near_miss: bool = False
) -> int:
    """Mark announced effects as seen, or one as a near miss; how many are new.

    Who asks has checked that they are this person's to see.
    """
    now = clock.now()
    found = Sighting.objects.filter(person=person, execution__in=executions)
    before = dict(found.values_list("execution_id", "near_miss"))
    new = [x for x in executions if before.get(x.pk) in _LESS[near_miss]][:MOST]
    Sighting.objects.bulk_create(
        [
            Sighting(person=person, execution=x, near_miss=near_miss, at=now)
            for x in new
        ],
        update_conflicts=True,
        unique_fields=["person", "execution"],
        update_fields=["near_miss"],
    )
    log.append_many(_entry(person, x, near_miss, now) for x in new)
    return len(new)


# What an answer adds to: nothing said, or said less. A near miss stays one.
_LESS: dict[bool, tuple[bool | None, ...]] = {False: (None,), True: (None, False)}


def _entry(
    person: Person, execution: Execution, near_miss: bool, now: datetime
) -> log.Entry:
    proposal = execution.proposal
    return log.Entry(
        "announced.near_miss" if near_miss else "announced.seen",
        actor=log.Actor("person", person.public_id),
        at=now,
        proposal=proposal.pk,
        agent=proposal.agent,
        thread=proposal.thread,
        data={"execution": execution.pk},
    )
