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
    BadKey,
    Conflict,
    DomainError,
    InProgress,
    InvalidJson,
    KeyMissing,
    NotFound,
    TooMany,
)
from policies import tools
from policies.choices import Risk
from reviews.choices import OPEN, ExecutionStatus
from reviews.governance.ruling import Action
from reviews.models import Execution, Proposal
from reviews.models.base import new_proposal_id
from reviews.redaction import redactor as redacting
from reviews.requests import proposals as gate
from reviews.requests.proposals import Origin
from reviews.requests.revisions import Narrative
from reviews.tool_services.readers import Reading

from . import checkpoints, idempotency, locks, representation, transitions
from .checkpoints import Suspended
from .choices import ThreadResult, ThreadStatus
from .idempotency import Stored
from .models import Agent, Thread
from .webhooks import endpoints

# Refusals of malformed or unauthenticated calls, which are not logged.
NOT_LOGGED = (InvalidJson, KeyMissing, BadKey)
# Hand-written SQL with one subquery for each open status: only then does PostgreSQL use
# the partial indexes. Otherwise the cost of a proposal grows with all requests ever.
_CAPS = """
SELECT (SELECT count(*) FROM reviews_proposal
        WHERE agent = %(agent)s AND created_at > %(since)s),
       (SELECT count(*) FROM reviews_approvalrequest
        WHERE status = 'pending' AND agent = %(agent)s)
     + (SELECT count(*) FROM reviews_approvalrequest
        WHERE status = 'recallable' AND agent = %(agent)s)
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """One proposal or revision as the agent sent it, with what the tool's reader said
    before any lock. `uncertain` is the agent's own doubt, 0 to 1."""

    thread: str
    tool: str
    args: Mapping[str, Any]
    preconditions: Mapping[str, Any]
    uncertain: float
    narrative: Narrative
    origin: Origin
    suspended: Suspended | None
    reading: Reading | None
    callback_url: str = ""
    resembles: bool = False  # it names somebody who only resembles a known person


@dataclass(frozen=True, slots=True)
class Key:
    """The idempotency key of one call, and the digest of method, path and body."""

    text: str
    fingerprint: str


@transaction.atomic(durable=True)
def propose(*, agent: Agent, key: Key, asked: Asked) -> Stored:
    """Create a proposal: commit checkpoint, proposal, request, log records and outbox
    messages, and only then answer (invariant I1).

    Raises the agents' codes of api.md. Locks: the idempotency key, the thread, the
    sums.
    """
    restore_epochs.check()
    if not idempotency.take(agent, key.text, key.fingerprint):
        return _replayed(agent, key)
    now = clock.now()
    check_caps(agent, now)
    thread = _thread(agent, asked.thread)
    proposal_id = new_proposal_id()
    if asked.suspended is not None:
        _suspend(thread, asked.suspended, asked, proposal_id, now)
    heard = endpoints.listens(agent, asked.callback_url)
    origin = replace(asked.origin, heard=heard)
    proposal = gate.submit(
        _action(agent, asked, proposal_id), asked.narrative, origin, now=now
    )
    if asked.callback_url:
        endpoints.call_back(agent, proposal.pk, asked.callback_url, now)
    failpoints.point("proposed_uncommitted", asked.thread)
    return _answer(agent, key, proposal.pk, status=201)


def _replayed(agent: Agent, key: Key) -> Stored:
    stored = idempotency.replay(agent, key.text, key.fingerprint)
    if stored is None:
        raise InProgress
    return stored


def _answer(agent: Agent, key: Key, proposal_id: str, *, status: int) -> Stored:
    proposal = representation.load(agent.slug, proposal_id)
    if proposal is None:
        raise NotFound
    body = representation.describe(proposal)
    idempotency.store(agent, key.text, status=status, body=body, proposal=proposal_id)
    return Stored(status, body, proposal_id)


def check_caps(agent: Agent, now: datetime) -> None:
    """Raise TooMany when the agent has reached its limit of proposals a minute or of
    waiting requests."""
    limits, since = settings.HOLDPOINT, now - timedelta(minutes=1)
    with connection.cursor() as cursor:
        cursor.execute(_CAPS, {"agent": agent.slug, "since": since})
        recent, waiting = cursor.fetchone()
    if recent >= limits.agent_rate_per_minute:
        raise TooMany("Too many proposals in a minute. Wait.", retry_after=10)
    if waiting >= limits.agent_pending_cap:
        raise TooMany("Too many requests of this agent wait.", retry_after=60)


def _thread(agent: Agent, name: str) -> Thread:
    """Return the running thread, locked. The thread's first proposal starts it. Raises
    Conflict when it is finished."""
    try:
        thread = locks.thread(agent, name)
    except NotFound:
        transitions.start(agent, name, now=clock.now())
        thread = locks.thread(agent, name)
    if thread.status != ThreadStatus.RUNNING:
        raise Conflict("This thread is finished. Start another.")
    return thread


def _suspend(
    thread: Thread, suspended: Suspended, asked: Asked, proposal: str, now: datetime
) -> None:
    tool = tools.current(asked.tool)
    redactor = redacting.of(
        thread.agent.slug,
        thread.name,
        tools.definition(tool) if tool else None,
        asked.args,
        proposal=proposal,
    )
    checkpoints.save(thread, suspended, proposal=proposal, redactor=redactor, now=now)


def _action(agent: Agent, asked: Asked, proposal_id: str) -> Action:
    return Action(
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
def revise(*, agent: Agent, key: Key, proposal_id: str, asked: Asked) -> Stored:
    """Replace what is proposed by a new revision. Raises NotFound, and what
    `reviews.requests.proposals.revise` raises. Locks: the idempotency key, the thread,
    the request, the sums."""
    restore_epochs.check()
    if not idempotency.take(agent, key.text, key.fingerprint):
        return _replayed(agent, key)
    thread = _thread_of(agent, proposal_id)
    now = clock.now()
    if asked.suspended is not None:
        _suspend(thread, asked.suspended, asked, proposal_id, now)
    gate.revise(
        _action(agent, asked, proposal_id),
        asked.narrative,
        now=now,
        expires_in=asked.origin.expires_in,
    )
    return _answer(agent, key, proposal_id, status=200)


def _thread_of(agent: Agent, proposal_id: str) -> Thread:
    proposal = Proposal.objects.filter(pk=proposal_id, agent=agent.slug).first()
    if proposal is None:
        raise NotFound
    return locks.thread(agent, proposal.thread)


@transaction.atomic(durable=True)
def withdraw(*, agent: Agent, proposal_id: str) -> None:
    """Take a proposal back. Raises NotFound, Decided. Locks: thread, request."""
    _thread_of(agent, proposal_id)
    gate.withdraw(
        proposal_id,
        agent=agent.slug,
        actor=log.Actor("agent", agent.slug),
        now=clock.now(),
        code="withdrawn_by_agent",
    )


@transaction.atomic(durable=True)
def finish(*, agent: Agent, name: str, result: ThreadResult) -> Thread:
    """Finish a run: withdraw its open requests and revoke its unredeemed grants.

    A repeated call with the same result returns the thread unchanged, for an agent that
    did not get the first answer. Raises NotFound, and IllegalTransition when the run
    was finished with another result. Locks: the thread, then its requests by pk.
    """
    thread = locks.thread(agent, name)
    if thread.status == ThreadStatus.FINISHED and thread.result == result:
        return thread
    actor = log.Actor("agent", agent.slug)
    end(thread, result, actor=actor, now=clock.now())
    return thread


def end(
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
    for proposal_id in _unsettled(agent.slug, name):
        gate.withdraw(
            proposal_id, agent=agent.slug, actor=actor, now=now, code="thread_finished"
        )


def _unsettled(agent: str, thread: str) -> list[str]:
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
    redactor = redacting.of(agent.slug, "")
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
