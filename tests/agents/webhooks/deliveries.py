"""The outbox and the post, driven by a test instead of by a worker: what is due goes,
and nobody waits for a clock."""

from __future__ import annotations

from datetime import timedelta

from agents.models import Agent, Delivery, Endpoint
from agents.webhooks import delivery, endpoints, enqueue, lanes
from journal import clock
from journal.models import OutboxMessage
from journal.state_machine import PROPOSAL_TOLD
from policies.models import Person
from reviews.executions import run
from reviews.models import Proposal
from tests import factories
from tests.conftest import Gate


def register(agent: Agent, url: str, by: Person) -> tuple[Endpoint, str]:
    return endpoints.register_endpoint(agent=agent, url=url, by=by)


def promised() -> list[str]:
    """Do what the outbox promised: write the letters."""
    told = OutboxMessage.objects.filter(topic=PROPOSAL_TOLD, done_at=None).order_by(
        "pk"
    )
    made = []
    for message in told:
        made += enqueue.enqueue_deliveries(message=message)
    OutboxMessage.objects.filter(topic=PROPOSAL_TOLD).update(done_at=clock.now())
    return made


def carry() -> int:
    """Send what is due until nothing is; how many tries."""
    promised()
    tries = 0
    while found := lanes.list_due_deliveries():
        for pk in found:
            delivery.attempt_delivery(pk)
            tries += 1
    return tries


def come_due(**where: object) -> None:
    """Move what rests to now; the clock is never moved."""
    past = clock.now() - timedelta(seconds=1)
    Delivery.objects.filter(status="waiting", **where).update(next_at=past)
    Endpoint.objects.filter(rest_until__isnull=False).update(rest_until=past)


def ran(gate: Gate, tool: str = "pay", **fields: object) -> Proposal:
    """A proposal that was approved and executed."""
    proposal = factories.propose(gate.agent, tool, **fields)
    factories.decide(proposal.request, gate.rita)
    run.run_execution(proposal.executions.get().pk)
    return proposal


def rejected(gate: Gate, **fields: object) -> Proposal:
    proposal = factories.propose(gate.agent, "pay", **fields)
    factories.decide(proposal.request, gate.rita, "reject")
    return proposal
