"""One verdict on every item of a list, or on none: the checks of each are those of a
decision on it alone (gate.md section 6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from journal import clock, failpoints, restore_epochs
from journal.errors import BatchChanged, Decided, DomainError
from policies.models import Person
from reviews import freezing, locks, transitions
from reviews.choices import BatchStatus
from reviews.decisions import checks, verdicts
from reviews.decisions.preflight import Outside
from reviews.decisions.votes import Vote
from reviews.models import Batch, BatchItem
from reviews.said import Said

from . import lists, membership, records
from . import outside as batches_outside
from .membership import Member
from .outside import Outsides
from .said import SaidOfMany, naming, said_of

KNOWN = re.compile(r"r-[a-z0-9]{1,38}")  # what may stand in a record in plain


def decide(said: SaidOfMany) -> Batch:
    """Record one verdict on every item of the list, or on none.

    Raises BatchChanged with what changed, Decided, NotFound, Invalid, Policy above the
    tool's ceiling, and for any single item what `decisions.decide` raises; `errors`
    then names the item. A refusal is logged in a transaction of its own.
    """
    try:
        return _record(said, batches_outside.look(said))
    except DomainError as error:
        _log_refused(said, error)
        raise


@transaction.atomic(durable=True)
def _record(said: SaidOfMany, asked: Outsides) -> Batch:
    restore_epochs.check()
    batch = locks.batch(said.batch_id)
    if batch.status not in (BatchStatus.FORMING, BatchStatus.OPEN):
        raise _over(batch)
    inside = batch.items.filter(left_at__isnull=True)
    requests = locks.approval_requests(inside.values_list("request", flat=True))
    now = clock.now()
    for request in requests.values():
        freezing.catch_up(request, now)
    members = membership.load(batch, now=now, requests=requests)
    lists.check(said, members)
    # Read anew: an authority taken away while we waited is gone.
    said = replace(said, person=Person.objects.get(pk=said.person.pk))
    chosen = [member for member in members if member.id in set(said.items)]
    lists.check_total(batch, chosen)
    found = _examined(said, chosen, asked, now)
    if said.objection is not None:
        raise said.objection  # and all of the above is rolled back
    _close(batch, said, members, now)
    verdicts.VERDICTS[said.verdict](found)
    failpoints.point("batch_uncommitted", batch.pk)
    return batch


def _over(batch: Batch) -> DomainError:
    if batch.status == BatchStatus.DECIDED:
        return Decided("This batch has been decided. Your decision was not recorded.")
    return BatchChanged(
        "This batch was dissolved: too few of its items are left. None was decided."
        " Decide them alone."
    )


def _examined(
    said: SaidOfMany, chosen: Sequence[Member], asked: Outsides, now: datetime
) -> list[Vote]:
    """Each item's case, and for an approval the place it fills: the same checks as for
    a decision on it alone, and one look at what they need."""
    each = {member.id: _said_of(said, member) for member in chosen}
    requests = {member.id: member.request for member in chosen}
    known = checks.look(list(each.values()), requests)
    votes = []
    for member in chosen:
        one, outside = each[member.id], asked.get(member.id, Outside())
        with naming(member):
            case = checks.examine(one, member.request, outside, known, now=now)
            votes.append(checks.vote(case))
    return votes


def _said_of(said: SaidOfMany, member: Member) -> Said:
    return replace(
        said_of(said, member),
        flags=said.flags,
        check=said.samples.get(member.id, {}),
        # One page was read for all of them, and one copy of it is kept.
        seen=said.seen if member.id == said.items[0] else None,
    )


def _close(
    batch: Batch, said: SaidOfMany, members: Sequence[Member], now: datetime
) -> None:
    """The batch is decided; whoever is not in the list goes back to the queue."""
    leaving = [member for member in members if member.id not in set(said.items)]
    rows = BatchItem.objects.filter(pk__in=[one.item.pk for one in leaving])
    rows.update(left_at=now)
    transitions.batch.apply(
        batch,
        "decide",
        actor=said.actor,
        now=now,
        changes={
            "settled_at": now,
            "digest": said.digest,
            "stop_at_failure": said.stop_at_failure,
        },
        verdict=said.verdict,
        data={
            "batch": batch.pk,
            "digest": said.digest,
            "requests": list(said.items),
            "left_out": [member.id for member in leaving],
            "opened": dict(said.samples),
            "reason_code": said.reason_code,
            **({"view": said.seen.digest} if said.seen else {}),
        },
        private={"reason": said.reason},
    )


@transaction.atomic(durable=True)
def _log_refused(said: SaidOfMany, error: DomainError) -> None:
    """A verdict without effect is a log record of its own [I8, I30]."""
    batch = Batch.objects.filter(pk=said.batch_id).first()
    if batch is None:
        return
    paths = [one["path"] for one in error.errors]
    records.note(
        batch,
        "batch.refused",
        said.actor,
        clock.now(),
        {
            "code": error.code,
            "seen": said.digest[:80],
            "requests": [pk for pk in paths if KNOWN.fullmatch(pk)],
        },
        verdict=said.verdict,
    )
