"""What must still hold right before an effect (docs/invariants.md I11, I18, I24).

The checks run outside any transaction and only read, except that a new reading of the
business state is stored. A check that fails returns a Refusal with a code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from journal import canonical, restore_epochs
from journal.statements import Statement
from policies import active, tools
from policies.choices import Tier, describe_methods
from policies.documents import ToolDefinition
from policies.evaluation import Evaluation
from policies.models import PolicyVersion
from reviews import permissions
from reviews.choices import RequestStatus, StopMode
from reviews.evidence import log_hashes
from reviews.governance import readings
from reviews.governance.ruling import is_reading_incomplete, reevaluate_revision
from reviews.grants import approvers
from reviews.grants.approvers import ApproverVote, Ballot, Deciders
from reviews.grants.grants import ExpectedValue
from reviews.models import ApprovalRequest, Execution, Revision, StateReading
from reviews.standing_grants import uses
from reviews.stops import gate_state, stops
from reviews.stops.gate_state import GateState
from reviews.tool_services import readers, verifiers
from reviews.tool_services.readers import ToolReading


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an execution must not run now. `retryable`: the reason is temporary, so it
    is tried again; `costs_attempt`: this counts as an attempt."""

    code: str
    detail: str
    retryable: bool = False
    costs_attempt: bool = True


OTHER_BYTES = Refusal(
    "bytes_changed", "The stored action is not the one that was granted."
)
OTHER_RECORD = replace(
    OTHER_BYTES, detail="The audit log records another action than the stored one."
)
STOPPED = Refusal("stopped", "This was stopped before it ran.")
STOPPED_SINCE = Refusal(
    "taken_back",
    "It was stopped after its permit was issued, and needs a new approval.",
)
AFTER_WINDOW = Refusal("window_closed", "The execution window has ended.")
APPROVER_GONE = Refusal("approver_revoked", "An approver no longer has the authority.")
WITHOUT_VOTES = Refusal(
    "votes_missing", "Votes that its approval requires are missing."
)
UNRECORDED_VOTES = Refusal(
    "votes_unrecorded",
    "A vote that its approval counts was not cast through Counterseal: it has no record"
    " in the audit log, or no valid seal.",
)
UNREADABLE_CONDITION = Refusal(
    "condition",
    "The tool has no reader, so the approval's conditions cannot be checked.",
)
STANDING_REVOKED = Refusal(
    "standing_revoked", "The standing grant that allowed it no longer holds."
)
UNRECORDED_STANDING = Refusal(
    "standing_unrecorded",
    "The standing grant that allowed it was not issued through Counterseal: it has no"
    " record in the audit log, or no valid seal.",
)


_FACTS = Statement(f"""
SELECT {gate_state.COLUMNS}, {log_hashes.HASHES_COLUMN}, {approvers.BALLOT_COLUMNS}
FROM {approvers.BALLOT_TABLES}
""")  # noqa: S608 constants
# A row for each of the people who voted, or one row.
_FINAL_FACTS = Statement(f"""
SELECT {gate_state.COLUMNS},
    EXISTS (SELECT FROM reviews_grant AS own
            WHERE own.id = %(grant)s AND own.status = 'spent'
              AND own.expires_at > clock_timestamp()),
    request.status, request.version, request.action_hash,
    (SELECT count(*) FROM reviews_decision AS vote
     WHERE vote.request_id = request.id AND vote.counts),
    {permissions.DECIDER_COLUMNS}
FROM (SELECT 1) AS always
LEFT JOIN reviews_approvalrequest AS request ON request.proposal_id = %(proposal)s
LEFT JOIN policies_person AS who ON who.id = ANY(%(people)s::bigint[])
""")  # noqa: S608 constants


@dataclass(frozen=True, slots=True)
class RecheckFacts:
    """The facts of the checks before an effect. They stay with the execution in hand
    until the effect: a new reading is stored with the next write."""

    state: GateState
    logged: Sequence[str] | None  # the action hashes in the log
    ballot: Ballot | None
    deciders: Deciders
    readings: list[StateReading] = field(default_factory=list)


class _SeenRequest(NamedTuple):
    """The columns of a request that change, and the number of its counting votes. For a
    proposal without a request the columns are None and `votes` is 0."""

    status: str | None
    version: int | None
    action_hash: str | None
    votes: int


def _describe_request(ballot: Ballot | None) -> _SeenRequest:
    if ballot is None:
        return _SeenRequest(None, None, None, 0)
    row = ballot.request
    return _SeenRequest(row.status, row.version, row.action_hash, len(ballot.cast))


def find_refusal(execution: Execution, definition: ToolDefinition) -> Refusal | None:
    """The first reason not to perform this execution now, or None; cheapest check
    first. Readers and verifiers may take seconds, so call `find_final_refusal` as well,
    right before the effect."""
    facts = execution.recheck_facts = _load_facts(execution)
    state = facts.state
    return (
        find_stop_refusal(execution, state)
        or _find_bytes_refusal(execution, facts.logged)
        or _find_tool_change(execution, state.policy)
        or _find_standing_refusal(execution)
        or _find_policy_refusal(execution, facts)
        or _find_state_refusal(execution, facts, definition)
        or _find_verifier_refusal(execution, facts, definition)
    )


def load_state(execution: Execution) -> GateState:
    """The state of the gate for an execution, with every stop since its grant."""
    return gate_state.load_state(
        stops.build_action_key(execution.grant.proposal),
        since=execution.grant.issued_at,
    )


def _load_facts(execution: Execution) -> RecheckFacts:
    grant = execution.grant
    state, rows = gate_state.load_rows(
        _FACTS,
        [stops.build_action_key(execution.grant.proposal)],
        since=grant.issued_at,
        proposal=grant.proposal_id,
        revision=str(grant.revision.number),
    )
    ballot, deciders = approvers.build_ballot([row[1:] for row in rows])
    return RecheckFacts(state, rows[0][0], ballot, deciders)


def find_final_refusal(execution: Execution) -> Refusal | None:
    """Repeat the checks whose answer may have changed during the others, which take
    seconds: the execution window, the approvers, and last the stops and pauses. Raises
    DatabaseRestored."""
    known: RecheckFacts | None = execution.recheck_facts
    ballot = known.ballot if known else None
    state, rows = gate_state.load_rows(
        _FINAL_FACTS,
        [stops.build_action_key(execution.grant.proposal)],
        since=execution.grant.issued_at,
        grant=execution.grant_id,
        proposal=execution.proposal_id,
        people=[row.reviewer_id for row in ballot.cast] if ballot else [],
    )
    restore_epochs.check_not_restored(state.halted)  # guard: restored-since
    is_open, *request_columns = rows[0][:5]
    seen = _SeenRequest(*request_columns)
    deciders = permissions.collect_deciders(row[5:] for row in rows)
    # guard: last-approvers
    # guard: last-window
    return (
        _find_window_refusal(is_open)
        or _find_approver_refusal(execution, seen, deciders)
        or _find_standing_refusal(execution, again=True)
        or find_stop_refusal(execution, state)
    )


def _find_approver_refusal(
    execution: Execution, seen: _SeenRequest, deciders: Deciders
) -> Refusal | None:
    """Versions and votes never change, so those of the first check are used again,
    unless there are others by now. The people are those of this moment."""
    known: RecheckFacts | None = execution.recheck_facts
    ballot = known.ballot if known else None
    if seen != _describe_request(ballot):
        ballot, deciders = approvers.load_ballot_of_proposal(execution.proposal_id)
    if (refusal := _find_vote_refusal(execution, ballot)) or ballot is None:
        return refusal
    votes, revision = approvers.list_votes(ballot, deciders), execution.grant.revision
    valid = approvers.are_approvers_valid(votes, ballot.request, revision)
    return None if valid else APPROVER_GONE


def find_stop_refusal(
    execution: Execution, state: GateState | None = None
) -> Refusal | None:
    """A stop or pause of the thread, agent, tool or everything since the grant was
    issued (docs/invariants.md I24); None without one. `state` holds every stop since
    the grant; without it, one query reads them."""
    action = stops.build_action_key(execution.grant.proposal)
    if state is None:
        mode = stops.find_blocking_mode(action, execution.grant.issued_at)
    else:
        mode = state.mode
    if mode is StopMode.STOPPED:
        in_force = stops.find_stop_mode(*action) is StopMode.STOPPED
        return STOPPED if in_force else STOPPED_SINCE
    if mode is StopMode.PAUSED:
        return Refusal("paused", "This is paused.", retryable=True, costs_attempt=False)
    return None


def find_lasting_stop_refusal(execution: Execution) -> Refusal | None:
    """A stop since the grant was issued; None for a pause, which is temporary."""
    refusal = find_stop_refusal(execution)
    return refusal if refusal is not None and not refusal.retryable else None


def find_tool_refusal(execution: Execution) -> Refusal | None:
    """Why the current tool no longer fits: it is gone, takes other arguments or acts
    elsewhere. None while it fits."""
    return _find_tool_change(execution, active.find_active_policy())


def _find_bytes_refusal(
    execution: Execution, logged: Sequence[str] | None
) -> Refusal | None:
    grant = execution.grant
    stored = canonical.digest(bytes(grant.revision.canonical))
    # guard: stored-bytes
    if not stored == grant.revision.action_hash == grant.action_hash:
        return OTHER_BYTES
    if not log_hashes.is_logged_hash(logged, stored):  # guard: logged-bytes
        return OTHER_RECORD
    return None


def _find_tool_change(
    execution: Execution, policy: PolicyVersion | None
) -> Refusal | None:
    """A new tool version may describe the tool better. Its arguments, executor and
    destination must stay as decided: an effect elsewhere is another effect."""
    revision = execution.grant.revision
    proposed = revision.known_tool
    current = tools.find_successor(proposed, policy)
    if current is None:
        return Refusal("tool_changed", "The tool is no longer registered.")
    if any(
        tools.list_argument_errors(tool, revision.args) for tool in (proposed, current)
    ):
        return Refusal("tool_changed", "The arguments no longer fit the tool.")
    was, now = tools.load_definition(proposed), tools.load_definition(current)
    # guard: elsewhere
    if (now.executor, now.destination) != (was.executor, was.destination):
        return Refusal("tool_changed", "The tool now acts elsewhere.")
    return None


def _find_policy_refusal(execution: Execution, facts: RecheckFacts) -> Refusal | None:
    """The authority that the current policy requires, on the facts known when it was
    proposed, was given by people who may still give it, on these bytes."""
    revision, state = execution.grant.revision, facts.state
    reading = _reread_state(revision, state.policy)
    asked = reevaluate_revision(revision, state.policy, now=state.now, reading=reading)
    asked = uses.apply_standing_grant(execution, asked, state.policy)
    return _find_shortfall(execution, facts.ballot, facts.deciders, asked, state.policy)


def _find_standing_refusal(
    execution: Execution, *, again: bool = False
) -> Refusal | None:
    """The standing grant was issued through Counterseal, which never changes and is not
    checked `again`, and still holds."""
    standing = uses.load_standing_grant(execution)
    if standing is None:
        return None
    # guard: standing-use-recorded
    if not again and not uses.is_recorded(*standing):
        return UNRECORDED_STANDING
    return STANDING_REVOKED if uses.is_revoked(*standing) else None


def _reread_state(
    revision: Revision, policy: PolicyVersion | None
) -> ToolReading | None:
    """Read the state again by the tool's current definition, where the policy in force
    needs facts that the stored reading lacks; None where it does not."""
    if policy is None or not is_reading_incomplete(revision, policy):
        return None
    current = tools.find_successor(revision.known_tool, policy)
    if current is None:
        return None
    asker = readings.build_asker(revision.proposal)
    definition = tools.load_definition(current)
    return readers.read_state(definition, revision.args, asker=asker, rehearse=False)


def find_authority_refusal(execution: Execution, asked: Evaluation) -> Refusal | None:
    """Why the given authority is less than `asked`; None when it is enough."""
    ballot, deciders = approvers.load_ballot_of_proposal(execution.proposal_id)
    policy = active.find_active_policy()
    return _find_shortfall(execution, ballot, deciders, asked, policy)


def _find_shortfall(
    execution: Execution,
    ballot: Ballot | None,
    deciders: Deciders,
    asked: Evaluation,
    policy: PolicyVersion | None,
) -> Refusal | None:
    revision, request = execution.grant.revision, ballot.request if ballot else None
    # guard: tightened-tier
    if asked.tier.rank > _compute_decided_tier(execution, request).rank:
        return _build_tightened_refusal(revision, asked)
    # guard: votes-bytes
    if ballot and approvers.names_other_bytes(ballot, execution.grant.action_hash):
        return OTHER_BYTES
    if (refusal := _find_vote_refusal(execution, ballot)) or ballot is None:
        return refusal
    votes = approvers.list_votes(ballot, deciders)
    if not approvers.are_approvers_valid(votes, ballot.request, revision):
        return APPROVER_GONE
    # A version that asks for less than the policy was written past Counterseal.
    if not approvers.can_fill_steps(votes, asked.steps):  # guard: votes-policy
        return _build_tightened_refusal(revision, asked)
    if refusal := _find_proof_refusal(votes, ballot.request, asked, policy):
        return refusal
    was = Evaluation.from_json(revision.evaluation)
    if (asked.steps, asked.queue, asked.step_up) == (was.steps, was.queue, was.step_up):
        return None
    # A person may have moved it: where the policy chooses the same queue as before, the
    # people of the queue that it was moved to decide.
    moved = asked.queue == was.queue
    queue = ballot.request.queue.name if moved else asked.queue
    enough = approvers.has_enough_votes(votes, asked, queue=queue)
    # guard: tightened-votes
    return None if enough else _build_tightened_refusal(revision, asked)


def _find_proof_refusal(
    votes: Sequence[ApproverVote],
    request: ApprovalRequest,
    asked: Evaluation,
    policy: PolicyVersion | None,
) -> Refusal | None:
    """Each proof that a step-up demands is one that the policy takes now. The proofs
    were checked by the policy that the request was opened under."""
    demanded = asked.step_up or Tier(request.tier) is Tier.ESCALATE
    if policy is None or not demanded:
        return None
    methods = active.load_stored_policy(policy.pk).step_up_methods[asked.risk]
    weaker = [vote for vote in votes if vote.proof and vote.proof not in methods]
    if not weaker:  # guard: tightened-proof
        return None
    detail = f"{describe_methods(methods)} An approval was confirmed by another way."
    return Refusal("policy_tightened", detail)


def _build_tightened_refusal(revision: Revision, asked: Evaluation) -> Refusal:
    cause = describe_tightening(revision, asked)
    detail = f"The policy now requires more approval. {cause}"
    return Refusal("policy_tightened", detail)


def describe_tightening(revision: Revision, asked: Evaluation) -> str:
    """Describe what requires more authority now than when this was proposed: new rules,
    else other people, else another queue, else a step-up."""
    was = Evaluation.from_json(revision.evaluation)
    known = {(rule.id, rule.text, rule.effect) for rule in was.rules}
    new = [
        rule for rule in asked.rules if (rule.id, rule.text, rule.effect) not in known
    ]
    causes = [f"{rule.id} ({rule.effect}): {rule.text}" for rule in new]
    if not causes and _describe_people(asked) != _describe_people(was):
        causes = [
            f"It asks for {_describe_people(asked)}; "
            f"this was for {_describe_people(was)}."
        ]
    if not causes and asked.queue != was.queue:
        causes = [f"It asks in the queue {asked.queue}; this was asked in {was.queue}."]
    if not causes and asked.step_up:
        causes = ["It requires everybody who approves to enter their password."]
    return " ".join(causes) or "The people who approved are too few or of other roles."


def _describe_people(evaluation: Evaluation) -> str:
    steps = [f"{step.required} {step.role}" for step in evaluation.steps]
    return " and ".join(steps) or "nobody"


def _find_vote_refusal(execution: Execution, ballot: Ballot | None) -> Refusal | None:
    """Count the votes again from their rows, because a status alone proves nothing. An
    action that the policy alone allows has no request and needs no votes."""
    if ballot is None:
        alone = Tier(execution.grant.revision.tier) in {Tier.AUTO, Tier.NOTIFY}
        return None if alone else WITHOUT_VOTES
    if ballot.request.action_hash != execution.grant.action_hash:  # guard: grant-asked
        return OTHER_BYTES
    if approvers.has_unrecorded_vote(ballot):  # guard: effect-recorded
        return UNRECORDED_VOTES
    if ballot.request.status != RequestStatus.AUTHORIZED:
        return WITHOUT_VOTES
    if not approvers.has_all_votes(ballot):  # guard: effect-votes
        return WITHOUT_VOTES
    return None


def _compute_decided_tier(
    execution: Execution, request: ApprovalRequest | None
) -> Tier:
    return Tier(request.tier if request else execution.grant.revision.tier)


def _find_window_refusal(is_open: bool) -> Refusal | None:
    """The execution window is still open by the database's clock, which moved on while
    readers and verifiers were asked."""
    return None if is_open else AFTER_WINDOW


def _find_state_refusal(
    execution: Execution, facts: RecheckFacts, definition: ToolDefinition
) -> Refusal | None:
    """The business state still meets the preconditions that the last approver was
    shown, and the conditions of every approval."""
    revision = execution.grant.revision
    shown = readings.load_shown_reading(_find_shown_reading(facts.ballot), revision)
    known = {**shown.get("preconditions", {}), **revision.preconditions}
    conditions = _list_expected_values(execution, facts.ballot)
    if definition.reader is None or not (known or conditions):
        return UNREADABLE_CONDITION if conditions else None
    asker = readings.build_asker(revision.proposal)
    fresh = readers.read_state(definition, revision.args, asker=asker, rehearse=False)
    row = readings.build_reading(
        revision, fresh, cause=readings.CLAIMED, at=facts.state.now
    )
    facts.readings.append(row)
    if fresh.problem:
        return Refusal(
            "unread", f"The current state could not be read: {fresh.problem}", True
        )
    now = fresh.preconditions
    # guard: record-changed
    if any(now.get(name) != value for name, value in known.items()):
        return Refusal("precondition", "The record changed after it was shown.")
    return _find_condition_refusal(conditions, fresh)


def _list_expected_values(
    execution: Execution, ballot: Ballot | None
) -> list[ExpectedValue]:
    """The values that the grant and its approvals expect. The approvals are asked too,
    because a grant alone proves nothing."""
    of_grant = [ExpectedValue(**stored) for stored in execution.grant.expected or ()]
    of_votes = approvers.join_vote_conditions(ballot).expected if ballot else ()
    return [*of_grant, *(value for value in of_votes if value not in of_grant)]


def _find_condition_refusal(
    conditions: Sequence[ExpectedValue], fresh: ToolReading
) -> Refusal | None:
    """Every value that an approval expects is still the same. Compared as canonical
    JSON, in which 1 is not true."""
    known = readings.list_plain_values(fresh.as_json())
    failed = [
        condition.field
        for condition in conditions
        if condition.field not in known
        or canonical.encode([known[condition.field]])
        != canonical.encode([condition.value])
    ]
    if failed:  # guard: condition-values
        names = ", ".join(dict.fromkeys(failed))
        return Refusal(
            "condition", f"A condition of the approval no longer holds: {names}."
        )
    return None


def _find_shown_reading(ballot: Ballot | None) -> StateReading | None:
    """The reading that the last approver was shown; None for the revision's own."""
    if ballot is None:
        return None
    votes = [vote for vote in ballot.cast if vote.version == ballot.request.version]
    return max(votes, key=lambda vote: vote.at).reading if votes else None


def _find_verifier_refusal(
    execution: Execution, facts: RecheckFacts, definition: ToolDefinition
) -> Refusal | None:
    request = facts.ballot.request if facts.ballot else None
    revision = execution.grant.revision
    given = _compute_decided_tier(execution, request)
    queues = [revision.evaluation["queue"], *([request.queue.name] if request else ())]
    asked = verifiers.list_verifiers(definition, queues, facts.state.policy)
    if not asked:
        return None
    sealed = {
        "execution": execution.pk,
        "tool": execution.grant.proposal.tool_name,
        "args": revision.args,
        "action_hash": revision.action_hash,
        "tier": given,
    }
    answer = verifiers.run_verifiers(asked, sealed, stage="effect")
    if isinstance(answer, verifiers.VerifierRefusal):
        return Refusal("verifier", answer.detail)
    if answer is None or answer.tier.rank <= given.rank:
        return None
    return Refusal("verifier", "A verifier requires more approval.")
