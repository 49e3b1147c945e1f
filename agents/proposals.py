"""The operations of agents: propose, revise, withdraw, finish. Each is one durable
transaction. Proposing and revising store their answer with the call's idempotency key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings

from journal import clock, failpoints, log, restore_epochs, writes
from journal.errors import (
    AgentRateLimited,
    Conflict,
    DomainError,
    IdempotencyKeyMissing,
    InvalidAgentKey,
    InvalidJson,
    NotFound,
)
from journal.operations import operation
from journal.statements import Statement
from policies import facts as policies_facts
from policies import tools
from policies.choices import Risk
from policies.models import PolicyVersion
from policies.tool_descriptions import NOTHING_SAID, ToolDescription
from reviews.choices import OPEN, ExecutionStatus
from reviews.governance.ruling import KnownSums, ProposedAction, lock_action_sums
from reviews.models import Execution, Proposal
from reviews.models.base import new_proposal_id
from reviews.questions import questions
from reviews.redaction.redactor import load_redactor
from reviews.requests import proposals, repeats
from reviews.requests.proposals import ProposalOrigin
from reviews.requests.repeats import EarlierProposals
from reviews.requests.revisions import Narrative
from reviews.stops import gate_state, stops
from reviews.stops.gate_state import GateState
from reviews.tool_services.readers import ToolReading

from . import (
    budgets,
    checkpoints,
    idempotency,
    iterations,
    locks,
    representation,
    transitions,
)
from .checkpoints import SuspendedState
from .choices import ThreadResult, ThreadStatus
from .idempotency import CallKey, StoredAnswer
from .models import Agent, Thread
from .webhooks import endpoints

# Refusals of malformed or unauthenticated calls, which are not logged.
NOT_LOGGED = (InvalidJson, IdempotencyKeyMissing, InvalidAgentKey)
# One subquery for each open status: only then does PostgreSQL use the partial indexes.
# Otherwise the cost of a proposal grows with all requests ever.
_OPEN_REQUESTS = " + ".join(
    f"""(SELECT count(*) FROM reviews_approvalrequest
 WHERE status = '{status}' AND agent = %(agent)s AND NOT canary)"""  # noqa: S608 constants
    for status in OPEN
)
_USAGE_COLUMNS = f"""
(SELECT count(*) FROM reviews_proposal
 WHERE agent = %(agent)s AND created_at > statement_timestamp() - interval '1 minute'
   AND NOT canary),
{_OPEN_REQUESTS}
"""  # noqa: S608 constants
_AGENT_USAGE = Statement(f"SELECT {gate_state.COLUMNS}, {_USAGE_COLUMNS}")
_FACTS = Statement(f"""
SELECT {gate_state.COLUMNS}, {_USAGE_COLUMNS},
    (SELECT number FROM agents_checkpoint WHERE thread_id = %(thread)s
     ORDER BY number DESC LIMIT 1),
    nextval('reviews_revision_id_seq'),
    EXISTS (SELECT FROM agents_endpoint
            WHERE agent_id = %(agent_id)s AND NOT by_proposal),
    {policies_facts.WINDOWS_COLUMN}
""")  # noqa: S608 constants


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
    policy: PolicyVersion | None = None  # active when the input was checked
    resembles: bool = False  # it names somebody who only resembles a known person
    claimed: Sequence[str] = ()  # who may not decide it because of what the agent says
    described: ToolDescription = (
        NOTHING_SAID  # of a tool that the policy does not declare
    )


@dataclass(frozen=True, slots=True)
class ProposalFacts:
    """What a proposal or a revision needs to know, read under the thread's lock."""

    state: GateState
    usage: AgentUsage
    checkpoint: int  # the number of the thread's newest; 0 without one
    revision_key: int
    has_endpoint: bool  # the agent has registered one
    sums: KnownSums | None


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """An agent's proposals of the last minute, and its open requests."""

    recent: int
    waiting: int


def load_agent_usage(
    agent: Agent, thread: str, tool: str
) -> tuple[GateState, AgentUsage]:
    """The state of the gate for an action, and the usage of its agent. One query."""
    state, row = gate_state.load_row(
        _AGENT_USAGE, [(agent.slug, thread, tool)], agent=agent.slug
    )
    return state, AgentUsage(*row)


def _load_facts(
    agent: Agent,
    thread: Thread,
    tool: str,
    policy: PolicyVersion | None = None,
    windows: Mapping[str, Any] = policies_facts.NO_WINDOW_VALUES,
) -> ProposalFacts:
    """`windows` names the sums to read, which are locked under `policy`."""
    state, row = gate_state.load_row(
        _FACTS,
        [(agent.slug, thread.name, tool)],
        agent=agent.slug,
        agent_id=agent.pk,
        thread=thread.pk,
        **windows,
    )
    recent, waiting, checkpoint, revision_key, has_endpoint, window_rows = row
    return ProposalFacts(
        state,
        AgentUsage(recent, waiting),
        checkpoint or 0,
        revision_key,
        has_endpoint,
        KnownSums(policy, policies_facts.parse_windows(window_rows))
        if policy
        else None,
    )


class _PolicyChanged(Exception):
    """Another policy is active than when the sums were locked."""


def propose_action(*, agent: Agent, key: CallKey, asked: ProposalInput) -> StoredAnswer:
    """Create a proposal: commit checkpoint, proposal, request, log records and outbox
    messages, and only then answer (docs/invariants.md I1). Raises the refusals of
    agents in `journal.errors`."""
    try:
        try:
            return _create_proposal(agent, key, asked)
        except _PolicyChanged:  # all sums are locked in one call, by the new policy
            return _create_proposal(agent, key, replace(asked, policy=None))
    except iterations.IterationCapReached as reached:
        raise iterations.pause_run(reached) from reached


@operation(
    entry="propose_action",
    locks="idempotency key, thread, the agent's daily limit (advisory), "
    "the agent's listeners (advisory, shared), "
    "superseded request or the open request of the same action, sums, standing grant",
    writes="IdempotencyKey, Thread, Checkpoint, Proposal, Revision, Observation; "
    "ApprovalRequest and RequestVersion, or Grant and Execution; StandingGrant for a "
    "use; Endpoint and Callback for a callback; Stop for a repeat that pauses the run; "
    "Tool for one that the policy does not declare",
    logs="thread.started; request.superseded; proposal.submitted, proposal.blocked, "
    "proposal.repeated or request.joined; request.opened, or grant.issued and "
    "execution.queued; stop.raised",
    after="mail, nudge, webhook, wake-up",
)
def _create_proposal(agent: Agent, key: CallKey, asked: ProposalInput) -> StoredAnswer:
    earlier_answer = idempotency.claim_key(agent, key)
    if earlier_answer is not None:
        return earlier_answer
    thread = lock_or_start_thread(agent, asked.thread)
    if budgets.has_daily_limit(agent):
        locks.lock_daily_limit(agent)
    action = build_proposed_action(agent, asked, new_proposal_id())
    same = repeats.build_action_values(action, asked.policy)
    earlier = locks.lock_listeners_and_find_earlier(agent, same)
    alone = asked.origin.supersedes or asked.origin.again
    if earlier.open_request and not alone:
        joined = _join_proposal(agent, key, asked, thread, action, earlier)
        if joined is not None:
            return joined
        # It may have been rejected while this call waited for its lock.
        earlier = locks.lock_listeners_and_find_earlier(agent, same)
    # A superseded request is locked before the sums, so the sums are locked there.
    policy = None if asked.origin.supersedes else asked.policy
    windows = lock_action_sums(action, policy)
    facts = _load_facts(agent, thread, asked.tool, policy, windows)
    restore_epochs.check_not_restored(facts.state.halted)
    check_caps(facts.usage)
    budgets.check_daily_limit(agent, facts.state.now)
    if policy is not None and policy != facts.state.policy:
        raise _PolicyChanged
    replaced = [asked.origin.supersedes] if asked.origin.supersedes else []
    budgets.check_daily_money(agent, action, facts.state, apart_from=replaced)
    check_running(thread)
    # A stop or pause that is in force is the answer, rather than another pause.
    stops.check_run_may_propose(facts.state.mode, agent.slug, thread.name)
    iterations.check_cap(thread, asked.tool, facts.state.policy, asked.suspended)
    with writes.unit_of_work():
        origin = replace(
            asked.origin,
            has_listener=facts.has_endpoint or bool(asked.callback_url),
            repeats=earlier.rejected,
        )
        proposal = proposals.submit_proposal(
            action,
            asked.narrative,
            origin,
            state=facts.state,
            sums=facts.sums,
            revision_key=facts.revision_key,
        )
        if asked.suspended is not None:
            _save_checkpoint(thread, asked.suspended, action, facts)
        answer = _store_answer(agent, key, proposal, facts, status=201)
    if asked.callback_url:
        endpoints.record_callback(
            agent, proposal.pk, asked.callback_url, facts.state.now
        )
    failpoints.point("proposed_uncommitted", asked.thread)
    return answer


def _join_proposal(
    agent: Agent,
    key: CallKey,
    asked: ProposalInput,
    thread: Thread,
    action: ProposedAction,
    earlier: EarlierProposals,
) -> StoredAnswer | None:
    """Answer with the open proposal of the same action, or return None if this call
    must be judged by itself. The checkpoint and the callback address of the call are
    kept: the agent resumes from its newest state."""
    facts = _load_facts(agent, thread, asked.tool)
    restore_epochs.check_not_restored(facts.state.halted)
    stops.check_run_may_propose(facts.state.mode, agent.slug, thread.name)
    check_running(thread)
    origin = asked.origin
    with writes.unit_of_work():
        proposal = repeats.join_request(
            earlier.open_request,
            action,
            [*origin.barred, *origin.kept_out],
            now=facts.state.now,
        )
        if proposal is None:
            return None
        if asked.suspended is not None:
            own = replace(action, proposal=proposal.pk)
            _save_checkpoint(thread, asked.suspended, own, facts, has_earlier=True)
        if asked.callback_url:
            proposals.mark_has_callback(proposal)
            endpoints.record_callback(
                agent, proposal.pk, asked.callback_url, facts.state.now
            )
        return _store_answer(agent, key, proposal, facts, status=200, undecided=False)


def _store_answer(
    agent: Agent,
    key: CallKey,
    proposal: Proposal,
    facts: ProposalFacts,
    *,
    status: int,
    undecided: bool = True,
) -> StoredAnswer:
    """`undecided`: this call made the version that it returns: nobody has voted on
    it."""
    body = representation.build_proposal_json(proposal, undecided=undecided)
    refused_under = idempotency.describe_refusal(
        agent, facts.state.policy, proposal.blocked_by
    )
    return idempotency.store_answer(
        agent,
        key,
        status=status,
        body=body,
        proposal=proposal.pk,
        refused_under=refused_under,
    )


def check_caps(usage: AgentUsage) -> None:
    """Raise AgentRateLimited when the agent has reached its limit of proposals a minute
    or of waiting requests."""
    limits = settings.COUNTERSEAL
    if usage.recent >= limits.agent_rate_per_minute:
        raise AgentRateLimited(
            "This agent has too many proposals in one minute. Nothing was proposed.",
            retry_after=10,
        )
    if usage.waiting >= limits.agent_pending_cap:
        raise AgentRateLimited(
            "This agent has too many pending requests. Nothing was proposed.",
            retry_after=60,
        )


def lock_or_start_thread(agent: Agent, name: str) -> Thread:
    """The agent's thread of this name, locked; its first call starts it."""
    try:
        return locks.lock_thread(agent, name)
    except NotFound:
        transitions.start_thread(agent, name, now=clock.now())
        return locks.lock_thread(agent, name)


def check_running(thread: Thread) -> None:
    """Raises Conflict for a finished thread."""
    if thread.status != ThreadStatus.RUNNING:
        raise Conflict("This thread is finished. Nothing was done. Start another.")


def _save_checkpoint(
    thread: Thread,
    suspended: SuspendedState,
    action: ProposedAction,
    facts: ProposalFacts,
    *,
    has_earlier: bool = False,
) -> None:
    """`has_earlier`: the proposal has earlier revisions, whose redacted values count
    too."""
    tool = tools.find_current_tool(action.tool, facts.state.policy)
    redactor = load_redactor(
        action.agent,
        action.thread,
        tools.load_definition(tool) if tool else None,
        action.args,
        proposal=action.proposal if has_earlier else "",
    )
    checkpoints.save_checkpoint(
        thread,
        suspended,
        number=facts.checkpoint + 1,
        proposal=action.proposal,
        redactor=redactor,
        now=facts.state.now,
    )


def build_proposed_action(
    agent: Agent, asked: ProposalInput, proposal_id: str
) -> ProposedAction:
    """The exact action that an agent asks for, under this id."""
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
        barred=[*asked.origin.barred, *asked.origin.kept_out],
        claimed=asked.claimed,
        unattended=agent.unattended,
        risk_ceiling=Risk(agent.risk_ceiling),
        agent_version=agent.version,
        described=asked.described,
    )


@operation(
    locks="idempotency key, thread, the agent's daily limit (advisory), request, sums",
    writes="IdempotencyKey, Checkpoint, Proposal, Revision, ApprovalRequest, "
    "RequestVersion, Observation",
    logs="request.revised",
    after="wake-up",
)
def revise_proposal(
    *, agent: Agent, key: CallKey, proposal_id: str, asked: ProposalInput
) -> StoredAnswer:
    """Replace what is proposed by a new revision. Raises NotFound, AgentRateLimited for
    more money than the agent may move, and what
    `reviews.requests.proposals.revise_proposal` raises."""
    earlier_answer = idempotency.claim_key(agent, key)
    if earlier_answer is not None:
        return earlier_answer
    thread = _lock_proposal_thread(agent, proposal_id)
    if agent.daily_money is not None:
        locks.lock_daily_limit(agent)
    facts = _load_facts(agent, thread, asked.tool)
    restore_epochs.check_not_restored(facts.state.halted)
    action = build_proposed_action(agent, asked, proposal_id)
    budgets.check_daily_money(agent, action, facts.state, apart_from=[proposal_id])
    with writes.unit_of_work():
        request = proposals.revise_proposal(
            action,
            asked.narrative,
            state=facts.state,
            expires_in=asked.origin.expires_in,
            revision_key=facts.revision_key,
        )
        if asked.suspended is not None:
            _save_checkpoint(thread, asked.suspended, action, facts, has_earlier=True)
        return _store_answer(agent, key, request.proposal, facts, status=200)


def _lock_proposal_thread(agent: Agent, proposal_id: str) -> Thread:
    proposal = Proposal.objects.filter(pk=proposal_id, agent=agent.slug).first()
    if proposal is None:
        raise NotFound
    return locks.lock_thread(agent, proposal.thread)


@operation(
    locks="thread, request",
    writes="ApprovalRequest, or Grant and Execution; Observation",
    logs="request.withdrawn, or grant.revoked and execution.refused or "
    "execution.unknown",
    after="mail, webhook, wake-up",
)
def withdraw_proposal(*, agent: Agent, proposal_id: str) -> None:
    """Take a proposal back. Raises NotFound, AlreadyDecided."""
    _lock_proposal_thread(agent, proposal_id)
    proposals.withdraw_proposal(
        proposal_id,
        agent=agent.slug,
        actor=log.Actor("agent", agent.slug),
        now=clock.now(),
        code="withdrawn_by_agent",
    )


@operation(
    locks="thread, requests, questions",
    writes="Thread; ApprovalRequest, Grant, Execution, Observation; Question",
    logs="thread.finished; request.withdrawn, or grant.revoked and execution.refused "
    "or execution.unknown; question.withdrawn",
    after="mail, webhook, wake-up",
)
def finish_thread(*, agent: Agent, name: str, result: ThreadResult) -> Thread:
    """Finish a run: withdraw its open requests and questions, and revoke its unredeemed
    grants. A repeated call with the same result returns the thread unchanged, for an
    agent that did not get the first answer. Raises NotFound, and IllegalTransition when
    the run was finished with another result."""
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
    questions.withdraw_of_run(agent.slug, name, actor=actor, now=now)


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


@operation(logs="proposal.refused")
def log_refusal(
    *, agent: Agent, error: DomainError, call: str, unasked: int = 0
) -> None:
    """Log a refused call: agent, error code and paths, nothing of the body. A path may
    hold a name that the agent chose, so it is redacted like the agent's texts.
    `unasked` is how many calls the rate limit refused before this one without
    processing them."""
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
