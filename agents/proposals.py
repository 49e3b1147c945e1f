"""What an agent may ask of the gate: propose, revise, withdraw, finish. One durable
transaction each; the answer is stored with the key that asked for it."""

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

# A refusal of these kinds says nothing of an agent that we know.
NOT_LOGGED = (InvalidJson, KeyMissing, BadKey)
# By hand: each open status is asked for on its own, or no partial index would serve and
# the cost of a proposal would grow with all that was ever asked.
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
    """One proposal as it came in, with what our look-ups said before the lock."""

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
    resembles: bool = False  # it names nobody, but somebody much like a person here


@dataclass(frozen=True, slots=True)
class Key:
    """The idempotency key of one call, and what its body was."""

    text: str
    fingerprint: str


@transaction.atomic(durable=True)
def propose(*, agent: Agent, key: Key, asked: Asked) -> Stored:
    """Commit checkpoint, proposal, request, log and outbox, and then answer [I1].

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
    """Raises TooMany: proposals a minute, and requests waiting of this agent."""
    limits, since = settings.HOLDPOINT, now - timedelta(minutes=1)
    with connection.cursor() as cursor:
        cursor.execute(_CAPS, {"agent": agent.slug, "since": since})
        recent, waiting = cursor.fetchone()
    if recent >= limits.agent_rate_per_minute:
        raise TooMany("Too many proposals in a minute. Wait.", retry_after=10)
    if waiting >= limits.agent_pending_cap:
        raise TooMany("Too many requests of this agent wait.", retry_after=60)


def _thread(agent: Agent, name: str) -> Thread:
    """The running thread, locked; started when this is its first proposal."""
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
    """Replace what is proposed. Raises as `revising.revise`. Locks: thread, request."""
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
    """The run is over: what waits is withdrawn, what is not redeemed is revoked.

    Said again it is the same answer, for an agent that did not hear the first. Raises
    NotFound, IllegalTransition when it is finished otherwise. Locks: the thread, then
    its requests by pk.
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
    """The same as a step. Caller holds the thread's lock."""
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
    """Proposals of the thread with an open request, by its pk, or with a grant that the
    agent may redeem."""
    own = Proposal.objects.filter(agent=agent, thread=thread)
    asked = own.filter(request__status__in=OPEN).order_by("request__pk")
    # Only what the agent itself redeems: the gate's own executions go on.
    granted = Execution.objects.filter(
        proposal__in=own, status=ExecutionStatus.QUEUED, by_agent=True
    ).order_by("grant")
    waiting = list(asked.values_list("pk", flat=True))
    return [*waiting, *granted.values_list("proposal_id", flat=True)]


@transaction.atomic(durable=True)
def log_refusal(
    *, agent: Agent, error: DomainError, call: str, unasked: int = 0
) -> None:
    """A refused call is a record: agent, code and paths, and nothing of the body. A
    path may hold a name that the agent chose, so it is redacted like its texts.
    `unasked` is how many before it were refused like it without being looked at."""
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
