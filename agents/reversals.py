"""Reversals: a person proposes to undo an effect, as a new proposal of the same agent
and run."""

from __future__ import annotations

from journal import clock, restore_epochs
from journal.errors import Conflict
from journal.operations import operation
from policies.choices import Risk
from policies.models import Person
from reviews.executions import reversals
from reviews.executions.reversals import ReversalPlan
from reviews.governance import readings
from reviews.governance.ruling import ProposedAction
from reviews.models import Proposal
from reviews.models.base import new_proposal_id
from reviews.stops import gate_state
from reviews.tool_services import readers
from reviews.tool_services.readers import ToolReading

from . import locks
from .models import Agent
from .webhooks import endpoints


def propose_reversal(*, execution_id: str, person: Person, reason: str) -> Proposal:
    """Ask the compensating tool's reader outside any transaction, then create the
    proposal. Raises NotFound, NotPermitted, Conflict or InvalidInput for an effect that
    this person cannot have undone, and what
    `reviews.requests.proposals.submit_proposal` raises."""
    undoing = reversals.plan_reversal(execution_id, person, clock.now())
    original = undoing.execution.proposal
    asker = readings.build_asker(original)
    reading = readers.read_state(undoing.definition, undoing.args, asker=asker)
    return _create_reversal(
        undoing=undoing, reading=reading, person=person, reason=reason
    )


@operation(
    entry="propose_reversal",
    locks="thread, the agent's listeners (advisory, shared), sums",
    writes="Reversal, Proposal, Revision, Observation, ApprovalRequest, RequestVersion",
    logs="reversal.proposed, proposal.submitted, request.opened; or proposal.blocked",
    after="mail, webhook, wake-up",
)
def _create_reversal(
    *, undoing: ReversalPlan, reading: ToolReading, person: Person, reason: str
) -> Proposal:
    """Create the proposal. Also for a finished run: the run itself does not continue.
    Raises Conflict when the effect is being undone already: the thread's lock makes the
    second of two concurrent calls find the first."""
    original = undoing.execution.proposal
    agent = Agent.objects.get(slug=original.agent)
    locks.lock_thread(agent, original.thread)
    state = gate_state.load_state((agent.slug, original.thread, undoing.tool.name))
    restore_epochs.check_not_restored(state.halted)
    if reversals.find_standing_reversal(undoing.execution, state.now) is not None:
        raise Conflict("This effect is already being undone. Nothing was proposed.")
    action = build_action(undoing, agent, reading)
    has_listener = endpoints.has_listener(agent)
    return reversals.propose_reversal(
        undoing,
        action,
        person=person,
        reason=reason,
        has_listener=has_listener,
        state=state,
    )


def build_action(
    undoing: ReversalPlan, agent: Agent, reading: ToolReading | None
) -> ProposedAction:
    """Build the undoing action on which the policy rules, with a new proposal id."""
    original = undoing.execution.proposal
    return ProposedAction(
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
