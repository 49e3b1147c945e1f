"""Acknowledgement of outcomes by agents. Counterseal offers an outcome as often as it
is asked for, across every crash, until the agent acknowledges it; after that it offers
the outcome to nobody."""

from __future__ import annotations

from datetime import datetime

from journal import clock, failpoints, log, notify
from journal.errors import Conflict, NotFound
from journal.models import LogRecord
from journal.operations import operation
from reviews.choices import ENDED
from reviews.models import Execution, Proposal

from . import locks, representation, transitions
from .choices import DeliveryStatus, TakenBy
from .models import Acknowledgement, Agent, Delivery

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
    if outcome not in _collect_outcome_ids(proposal):
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


def _collect_outcome_ids(proposal: Proposal) -> set[str]:
    """Collect the ids of every outcome that the proposal has had, or may have had. An
    id cannot be parsed, so the given one is compared with all possible ones."""
    outcome_ids = {representation.compute_settled_id(proposal.pk)}
    # From the log: the execution's row has only the last time, and only until the grant
    # is redeemed.
    retried = LogRecord.objects.filter(proposal=proposal.pk, kind="execution.retried")
    again = list(retried.values_list("at", flat=True))
    for execution in Execution.objects.filter(proposal=proposal):
        for fence in range(execution.fence + 1):
            outcome_ids.add(representation.compute_offered_id(proposal.pk, fence))
            outcome_ids |= {
                representation.compute_ended_id(proposal.pk, e, fence) for e in ENDED
            }
            outcome_ids |= {
                representation.compute_offered_id(proposal.pk, fence, at)
                for at in again
            }
    return outcome_ids
