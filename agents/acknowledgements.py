"""Acknowledgement of outcomes by agents. Counterseal offers an outcome as often as it
is asked for, across every crash, until the agent acknowledges it; after that it offers
the outcome to nobody."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Greatest

from journal import clock, failpoints, log, notify
from journal.errors import Conflict, NotFound
from journal.models import LogRecord
from journal.operations import operation
from reviews.choices import ENDED
from reviews.models import Execution, Proposal

from . import locks, representation, transitions
from .choices import DeliveryStatus, TakenBy, ThreadStatus
from .models import Acknowledgement, Agent, Delivery, Thread

UNDELIVERED = (DeliveryStatus.WAITING, DeliveryStatus.DEAD, DeliveryStatus.HELD)


@operation(
    locks="outcome (advisory), deliveries by id",
    writes="Delivery, Acknowledgement",
    logs="delivery.taken, outcome.acknowledged",
    after="wake-up",
)
def acknowledge_outcome(*, agent: Agent, proposal_id: str, outcome: str) -> None:
    """Record that the agent has this outcome, and mark its deliveries as taken. A
    repeated call changes nothing, nor does one for an outcome that a newer one has
    replaced. Raises NotFound, and Conflict for an id that is not an outcome of this
    proposal."""
    proposal = representation.find_proposal(agent.slug, proposal_id)
    if proposal is None:
        raise NotFound
    # An id cannot be parsed, so the given one is compared with all possible ones.
    if not any(outcome in possible for possible in list_possible_ids(proposal)):
        raise Conflict("This proposal has no such outcome. Nothing was recorded.")
    locks.lock_outcome(outcome)
    actor, now = log.Actor("agent", agent.slug), clock.now()
    untaken = Delivery.objects.filter(event=outcome, status__in=UNDELIVERED)
    for delivery in locks.lock_deliveries(untaken):
        transitions.delivery.apply(
            delivery,
            "take",
            actor=actor,
            now=now,
            changes={"ended_at": now, "busy_until": None},
        )
    record_acknowledgement(agent, proposal, outcome, TakenBy.CALL, now)
    failpoints.point("acknowledged_uncommitted", proposal.pk)


def record_acknowledgement(
    agent: Agent, proposal: Proposal, outcome: str, by: TakenBy, now: datetime
) -> bool:
    """Write the acknowledgement and its log record; return False, and write nothing,
    when the outcome is acknowledged already. Caller holds a transaction."""
    row = Acknowledgement(
        outcome=outcome, proposal=proposal.pk, agent=agent, by=by, at=now
    )
    if Acknowledgement.objects.filter(pk=outcome).exists():
        return False
    Acknowledgement.objects.bulk_create([row], ignore_conflicts=True)
    log.append(
        "outcome.acknowledged",
        actor=log.Actor("agent", agent.slug),
        at=now,
        proposal=proposal.pk,
        agent=agent.slug,
        thread=proposal.thread,
        data={"outcome": outcome, "by": by},
    )
    notify.announce(proposal.pk)
    return True


def filter_unacknowledged(proposals: QuerySet[Proposal]) -> QuerySet[Any]:
    """Those with an outcome that their agent has not acknowledged, in runs that the
    agent has not finished."""
    newest = Execution.objects.filter(proposal=OuterRef("pk")).order_by("-queued_at")
    taken = Acknowledgement.objects.filter(proposal=OuterRef("pk")).order_by("-at")
    finished = Thread.objects.filter(
        agent__slug=OuterRef("agent"),
        name=OuterRef("thread"),
        status=ThreadStatus.FINISHED,
    )
    rows: QuerySet[Any] = representation.annotate_status(proposals).annotate(
        by_agent=Subquery(newest.values("by_agent")[:1]),
        since=Greatest(
            "created_at",
            "request__settled_at",
            Subquery(newest.values("finished_at")[:1]),
            Subquery(newest.values("unknown_at")[:1]),
        ),
        taken_at=Subquery(taken.values("at")[:1]),
    )
    has_outcome = Q(said__in=representation.FINAL_STATUSES) | Q(by_agent=True)
    untaken = Q(taken_at__isnull=True) | Q(taken_at__lt=F("since"))
    return rows.filter(has_outcome & untaken & ~Exists(finished))


def list_possible_ids(proposal: Proposal) -> list[list[str]]:
    """The ids of every outcome that the proposal has had, or may have had: for each
    outcome the id under the present TAG_KEY, then those under the former ones."""
    outcomes: list[list[str | int]] = [["settled"]]
    # From the log: the execution's row has only the last time, and only until the grant
    # is redeemed.
    retried = LogRecord.objects.filter(proposal=proposal.pk, kind="execution.retried")
    again = [None, *retried.values_list("at", flat=True)]
    for execution in Execution.objects.filter(proposal=proposal):
        for fence in range(execution.fence + 1):
            outcomes += [["ended", status, fence] for status in ENDED]
            outcomes += [representation.name_offer(fence, at) for at in again]
    return [representation.list_outcome_ids(proposal.pk, *what) for what in outcomes]
