"""Reversals: a person proposes to undo an effect, as a new proposal of the same agent
and run."""

from __future__ import annotations

from django.db import transaction

from journal import clock, restore_epochs
from journal.errors import Conflict
from policies.choices import Risk
from policies.models import Person
from reviews.executions import reversals
from reviews.executions.reversals import Undoing
from reviews.governance import readings
from reviews.governance.ruling import Action
from reviews.models import Proposal
from reviews.models.base import new_proposal_id
from reviews.tool_services import readers
from reviews.tool_services.readers import Reading

from . import locks
from .models import Agent
from .webhooks import endpoints


def propose(*, execution_id: str, person: Person, reason: str) -> Proposal:
    """Ask the compensating tool's reader outside any transaction, then create the
    proposal.

    Raises NotFound, NotYours, Conflict or Invalid for an effect that this person cannot
    have undone, and what `reviews.requests.proposals.submit` raises.
    """
    undoing = reversals.of(execution_id, person, clock.now())
    original = undoing.execution.proposal
    asker = readings.asker_of(original)
    reading = readers.read(undoing.definition, undoing.args, asker=asker)
    return _propose(undoing=undoing, reading=reading, person=person, reason=reason)


@transaction.atomic(durable=True)
def _propose(
    *, undoing: Undoing, reading: Reading, person: Person, reason: str
) -> Proposal:
    """Create the proposal. Also for a finished run: the run itself does not continue.

    Raises Conflict when the effect is being undone already. Locks: the thread, so that
    the second of two concurrent calls gets that Conflict; the sums.
    """
    restore_epochs.check()
    original = undoing.execution.proposal
    agent = Agent.objects.get(slug=original.agent)
    locks.thread(agent, original.thread)
    now = clock.now()
    if reversals.standing(undoing.execution, now) is not None:
        raise Conflict("It is being undone already. Nothing was proposed.")
    action = action_of(undoing, agent, reading)
    heard = endpoints.listens(agent)
    return reversals.propose(
        undoing, action, person=person, reason=reason, heard=heard, now=now
    )


def action_of(undoing: Undoing, agent: Agent, reading: Reading | None) -> Action:
    """Build the undoing action on which the policy rules, with a new proposal id."""
    original = undoing.execution.proposal
    return Action(
        proposal=new_proposal_id(),
        tool=undoing.tool.name,
        args=undoing.args,
        agent=agent.slug,
        thread=original.thread,
        preconditions={},
        reading=reading,
        unattended=agent.unattended,
        risk_ceiling=Risk(agent.risk_ceiling),
        agent_version=agent.version,
    )
