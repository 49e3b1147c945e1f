"""The agent's messages about a proposal: answers to people's questions, and its own
questions."""

from __future__ import annotations

from journal import restore_epochs
from journal.errors import Conflict, InvalidInput, NotFound, build_field_error
from journal.operations import operation
from reviews import locks
from reviews.choices import MessageKind
from reviews.dialogue import messages
from reviews.models import ApprovalRequest
from reviews.stops import gate_state, incidents, stops
from reviews.stops.stops import build_action_key

from . import idempotency, representation
from .idempotency import CallKey, StoredAnswer
from .models import Agent


@operation(
    locks="idempotency key, request",
    writes="IdempotencyKey, Message, ApprovalRequest",
    logs="request.asked or request.answered",
    after="mail, wake-up",
)
def send_message(
    *,
    agent: Agent,
    key: CallKey,
    proposal_id: str,
    kind: MessageKind,
    text: str,
    round_: int = 0,
) -> StoredAnswer:
    """Record a message of the agent, and answer with the proposal. `round_` names what
    an answer answers; 0 means the only unanswered question. Raises NotFound, Conflict
    for a proposal that no person is asked about, AgentStopped, InvalidInput,
    InProgress, and what `reviews.dialogue.messages.record_agent_message` raises."""
    earlier_answer = idempotency.claim_key(agent, key)
    if earlier_answer is not None:
        return earlier_answer
    request = _lock_own_request(agent, proposal_id)
    state = gate_state.load_state(build_action_key(request.proposal))
    restore_epochs.check_not_restored(state.halted)
    stops.check_may_propose(state.mode)
    if round_ and kind is not MessageKind.ANSWER:
        rule = "only an answer names a round; leave it out"
        raise InvalidInput(errors=[build_field_error("round", rule)])
    incidents.catch_up_deadline(request, state.now)
    messages.record_agent_message(request, kind, text, now=state.now, round_=round_)
    body = representation.build_proposal_json(request.proposal)
    return idempotency.store_answer(
        agent, key, status=200, body=body, proposal=proposal_id
    )


def _lock_own_request(agent: Agent, proposal_id: str) -> ApprovalRequest:
    proposal = representation.find_proposal(agent.slug, proposal_id)
    if proposal is None:
        raise NotFound
    request = locks.lock_request_of_proposal(proposal_id)
    if request is None:
        raise Conflict(
            "No person is asked about this proposal, so nobody would read it. Nothing "
            "was sent."
        )
    return request
