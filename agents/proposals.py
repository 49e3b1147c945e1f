"""The operations of agents: propose, revise, withdraw, finish. Each is one durable
transaction. Proposing and revising store their answer with the call's idempotency key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from journal import clock, failpoints, log, restore_epochs
from journal.errors import (
    AgentRateLimited,
    Conflict,
    DomainError,
    IdempotencyKeyMissing,
    InProgress,
    InvalidAgentKey,
    InvalidJson,
    NotFound,
)
from policies import tools
from policies.choices import Risk
from reviews.choices import OPEN, ExecutionStatus
from reviews.governance.ruling import ProposedAction
from reviews.models import Execution, Proposal
from reviews.models.base import new_proposal_id
from reviews.redaction.redactor import load_redactor
from reviews.requests import proposals
from reviews.requests.proposals import ProposalOrigin
from reviews.requests.revisions import Narrative
from reviews.tool_services.readers import ToolReading

from . import checkpoints, idempotency, locks, representation, transitions
from .checkpoints import SuspendedState
from .choices import ThreadResult, ThreadStatus
from .idempotency import StoredAnswer
from .models import Agent, Thread
from .webhooks import endpoints

# Refusals of malformed or unauthenticated calls, which are not logged.
NOT_LOGGED = (InvalidJson, IdempotencyKeyMissing, InvalidAgentKey)
# Hand-written SQL with one subquery for each open status: only then does PostgreSQL use
# the partial indexes. Otherwise the cost of a proposal grows with all requests ever.
_COUNTS_SQL = """
SELECT (SELECT count(*) FROM reviews_proposal
        WHERE agent = %(agent)s AND created_at > %(since)s),
       (SELECT count(*) FROM reviews_approvalrequest
        WHERE status = 'pending' AND agent = %(agent)s)
     + (SELECT count(*) FROM reviews_approvalrequest
        WHERE status = 'recallable' AND agent = %(agent)s)
"""


@dataclass(frozen=True, slots=True)
class ProposalInput:
    """One proposal or revision as the agent sent it, with what the tool's reader said
    before any lock. `uncertain` is the agent's own doubt, 0 to 1."""

    thread: str
    tool: str
    args: Mapping[str, Any]
    preconditions: Mapping[str, Any]
    uncertain: float
    narrative: Narrative
    origin: ProposalOrigin
    suspended: SuspendedState | None
    reading: ToolReading | None
    callback_url: str = ""
    resembles: bool = False  # it names somebody who only resembles a known person


@dataclass(frozen=True, slots=True)
class CallKey:
    """The idempotency key of one call, and the digest of method, path and body."""

    text: str
    fingerprint: str


@transaction.atomic(durable=True)
def propose_action(*, agent: Agent, key: CallKey, asked: ProposalInput) -> StoredAnswer:
    """Create a proposal: commit checkpoint, proposal, request, log records and outbox
    messages, and only then answer (invariant I1).

    Raises the agents' codes of api.md. Locks: the idempotency key, the thread, the
    sums.
    """
    restore_epochs.check_not_restored()
    if not idempotency.claim_key(agent, key.text, key.fingerprint):
        return _load_stored_answer(agent, key)
    now = clock.now()
    check_caps(agent, now)
    thread = _lock_or_start_thread(agent, asked.thread)
    proposal_id = new_proposal_id()
    if asked.suspended is not None:
        _save_checkpoint(thread, asked.suspended, asked, proposal_id, now)
    heard = endpoints.has_listener(agent, asked.callback_url)
    origin = replace(asked.origin, heard=heard)
    proposal = proposals.submit_proposal(
        _build_action(agent, asked, proposal_id), asked.narrative, origin, now=now
    )
    if asked.callback_url:
        endpoints.record_callback(agent, proposal.pk, asked.callback_url, now)
    failpoints.point("proposed_uncommitted", asked.thread)
    return _store_answer(agent, key, proposal.pk, status=201)


def _load_stored_answer(agent: Agent, key: CallKey) -> StoredAnswer:
    stored = idempotency.find_stored_answer(agent, key.text, key.fingerprint)
    if stored is None:
        raise InProgress
    return stored


def _store_answer(
    agent: Agent, key: CallKey, proposal_id: str, *, status: int
) -> StoredAnswer:
    proposal = representation.find_proposal(agent.slug, proposal_id)
    if proposal is None:
        raise NotFound
    body = representation.build_proposal_json(proposal)
    idempotency.store_answer(
        agent, key.text, status=status, body=body, proposal=proposal_id
    )
    return StoredAnswer(status, body, proposal_id)


def check_caps(agent: Agent, now: datetime) -> None:
    """Raise TooMany when the agent has reached its limit of proposals a minute or of
    waiting requests."""
    limits, since = settings.HOLDPOINT, now - timedelta(minutes=1)
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS_SQL, {"agent": agent.slug, "since": since})
        recent, waiting = cursor.fetchone()
    if recent >= limits.agent_rate_per_minute:
        raise AgentRateLimited(
            "This agent has too many proposals in one minute. Nothing was proposed.",
            retry_after=10,
        )
    if waiting >= limits.agent_pending_cap:
        raise AgentRateLimited(
            "This agent has too many pending requests. Nothing was proposed.",
            retry_after=60,
        )


def _lock_or_start_thread(agent: Agent, name: str) -> Thread:
    """Return the running thread, locked. The thread's first proposal starts it. Raises
    Conflict when it is finished."""
    try:
        thread = locks.lock_thread(agent, name)
    except NotFound:
        transitions.start_thread(agent, name, now=clock.now())
        thread = locks.lock_thread(agent, name)
    if thread.status != ThreadStatus.RUNNING:
        raise Conflict("This thread is finished. Nothing was done. Start another.")
    return thread


def _save_checkpoint(
    thread: Thread,
    suspended: SuspendedState,
    asked: ProposalInput,
    proposal: str,
    now: datetime,
) -> None:
    tool = tools.find_current_tool(asked.tool)
    redactor = load_redactor(
        thread.agent.slug,
        thread.name,
        tools.load_definition(tool) if tool else None,
        asked.args,
        proposal=proposal,
    )
    checkpoints.save_checkpoint(
        thread, suspended, proposal=proposal, redactor=redactor, now=now
    )


def _build_action(
    agent: Agent, asked: ProposalInput, proposal_id: str
) -> ProposedAction:
    return ProposedAction(
        proposal=proposal_id,
        tool=asked.tool,
        args=asked.args,
        agent=agent.slug,
        thread=asked.thread,
        preconditions=asked.preconditions,
        reading=asked.reading,
        uncertain=asked.uncertain,
        resembles=asked.resembles,
        unattended=agent.unattended,
        risk_ceiling=Risk(agent.risk_ceiling),
        agent_version=agent.version,
    )


@transaction.atomic(durable=True)
def revise_proposal(
    *, agent: Agent, key: CallKey, proposal_id: str, asked: ProposalInput
) -> StoredAnswer:
    """Replace what is proposed by a new revision. Raises NotFound, and what
    `reviews.requests.proposals.revise_proposal` raises. Locks: the idempotency key,
    the thread, the request, the sums."""
    restore_epochs.check_not_restored()
    if not idempotency.claim_key(agent, key.text, key.fingerprint):
        return _load_stored_answer(agent, key)
    thread = _lock_proposal_thread(agent, proposal_id)
    now = clock.now()
    if asked.suspended is not None:
        _save_checkpoint(thread, asked.suspended, asked, proposal_id, now)
    proposals.revise_proposal(
        _build_action(agent, asked, proposal_id),
        asked.narrative,
        now=now,
        expires_in=asked.origin.expires_in,
    )
    return _store_answer(agent, key, proposal_id, status=200)


def _lock_proposal_thread(agent: Agent, proposal_id: str) -> Thread:
    proposal = Proposal.objects.filter(pk=proposal_id, agent=agent.slug).first()
    if proposal is None:
        raise NotFound
    return locks.lock_thread(agent, proposal.thread)


@transaction.atomic(durable=True)
def withdraw_proposal(*, agent: Agent, proposal_id: str) -> None:
    """Take a proposal back. Raises NotFound, Decided. Locks: thread, request."""
    _lock_proposal_thread(agent, proposal_id)
    proposals.withdraw_proposal(
        proposal_id,
        agent=agent.slug,
        actor=log.Actor("agent", agent.slug),
        now=clock.now(),
        code="withdrawn_by_agent",
    )


@transaction.atomic(durable=True)
def finish_thread(*, agent: Agent, name: str, result: ThreadResult) -> Thread:
    """Finish a run: withdraw its open requests and revoke its unredeemed grants.

    A repeated call with the same result returns the thread unchanged, for an agent that
    did not get the first answer. Raises NotFound, and IllegalTransition when the run
    was finished with another result. Locks: the thread, then its requests by pk.
    """
    thread = locks.lock_thread(agent, name)
    if thread.status == ThreadStatus.FINISHED and thread.result == result:
        return thread
    actor = log.Actor("agent", agent.slug)
    apply_finish(thread, result, actor=actor, now=clock.now())
    return thread


def apply_finish(
    thread: Thread, result: ThreadResult, *, actor: log.Actor, now: datetime
) -> None:
    """The step of `finish_thread`, without its own transaction. Caller holds the
    thread's lock."""
    agent, name = thread.agent, thread.name
    transitions.thread.apply(
        thread,
        "finish",
        actor=actor,
        now=now,
        changes={"result": result, "finished_at": now},
        data={"result": result},
    )
    for proposal_id in _list_unsettled(agent.slug, name):
        proposals.withdraw_proposal(
            proposal_id, agent=agent.slug, actor=actor, now=now, code="thread_finished"
        )


def _list_unsettled(agent: str, thread: str) -> list[str]:
    """List the thread's proposals with an open request, by the request's pk, then those
    with a grant that the agent could still redeem."""
    own = Proposal.objects.filter(agent=agent, thread=thread)
    asked = own.filter(request__status__in=OPEN).order_by("request__pk")
    # Executions that the gate itself performs continue.
    granted = Execution.objects.filter(
        proposal__in=own, status=ExecutionStatus.QUEUED, by_agent=True
    ).order_by("grant")
    waiting = list(asked.values_list("pk", flat=True))
    return [*waiting, *granted.values_list("proposal_id", flat=True)]


@transaction.atomic(durable=True)
def log_refusal(
    *, agent: Agent, error: DomainError, call: str, unasked: int = 0
) -> None:
    """Log a refused call: agent, error code and paths, nothing of the body.

    A path may hold a name that the agent chose, so it is redacted like the agent's
    texts. `unasked` is how many calls the rate limit refused before this one without
    processing them.
    """
    redactor = load_redactor(agent.slug, "")
    paths = [str(entry["path"])[:200] for entry in error.errors][:20]
    call, *paths = map(redactor.text, (call, *paths))
    log.append(
        "proposal.refused",
        actor=log.Actor("agent", agent.slug),
        at=clock.now(),
        agent=agent.slug,
        data={
            "call": call,
            "code": error.code,
            "paths": paths,
            **({"unasked": unasked} if unasked else {}),
        },
    )
