"""What must still hold right before an effect (gate.md section 7).

The checks run outside any transaction and only read, except that a new reading of the
business state is stored. A check that fails returns a Refusal with a code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from journal import canonical, clock
from policies import active, tools
from policies.choices import Tier
from policies.documents import ToolDefinition
from policies.evaluation import Evaluation
from policies.models import PolicyVersion, Tool
from reviews.choices import GrantStatus, RequestStatus, StopMode
from reviews.evidence import log_hashes
from reviews.governance import readings
from reviews.governance.ruling import is_reading_incomplete, reevaluate_revision
from reviews.grants import approvers
from reviews.grants.approvers import Ballot
from reviews.models import (
    ApprovalRequest,
    Decision,
    Execution,
    Grant,
    Revision,
    StateReading,
)
from reviews.stops import stops
from reviews.tool_services import readers, verifiers
from reviews.tool_services.readers import ToolReading


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an execution must not run now. `later`: the reason is temporary, so it is
    tried again; `free`: this does not count as an attempt."""

    code: str
    detail: str
    later: bool = False
    free: bool = False


OTHER_BYTES = Refusal(
    "bytes_changed", "The stored action is not the one that was granted."
)
OTHER_RECORD = replace(
    OTHER_BYTES, detail="The audit log records another action than the stored one."
)
STOPPED = Refusal("stopped", "This was stopped before it ran.")
STOPPED_SINCE = Refusal(
    "taken_back", "It was stopped after it was granted: it is asked anew."
)
AFTER_WINDOW = Refusal("window_closed", "The execution window is over.")
APPROVER_GONE = Refusal("approver_revoked", "An approver no longer has the authority.")
WITHOUT_VOTES = Refusal(
    "votes_missing", "The votes that its approval needs are not there."
)
TIGHTENED = Refusal("policy_tightened", "The policy now asks for more authority.")


def find_refusal(execution: Execution, definition: ToolDefinition) -> Refusal | None:
    """The first reason not to perform this execution now, or None; cheapest check
    first. Readers and verifiers may take seconds, so call `find_final_refusal` as well,
    right before the effect."""
    policy = active.find_active_policy()
    request = _find_request(execution)
    return (
        find_stop_refusal(execution)
        or _find_bytes_refusal(execution)
        or _find_tool_change(execution, policy)
        or _find_policy_refusal(execution, request, policy)
        or _find_state_refusal(execution, request, definition)
        or _find_verifier_refusal(execution, request, definition)
    )


def find_final_refusal(execution: Execution) -> Refusal | None:
    """Repeat the checks whose answer may have changed during the others, which take
    seconds: the execution window, the approvers, and last the stops and pauses."""
    # guard: last-approvers
    # guard: last-window
    return (
        _find_window_refusal(execution)
        or _find_approver_refusal(execution)
        or find_stop_refusal(execution)
    )


def _find_approver_refusal(execution: Execution) -> Refusal | None:
    ballot = _load_ballot(_find_request(execution))
    if (no := _find_vote_refusal(execution, ballot)) or ballot is None:
        return no
    votes, revision = approvers.list_votes(ballot), execution.grant.revision
    held = approvers.are_approvers_valid(votes, ballot.request, revision)
    return None if held else APPROVER_GONE


def find_stop_refusal(execution: Execution) -> Refusal | None:
    """A stop or pause of the thread, agent, tool or everything since the grant was
    issued [I24]; None without one."""
    proposal, granted_at = execution.grant.proposal, execution.grant.issued_at
    action = (proposal.agent, proposal.thread, proposal.tool_name)
    mode = stops.find_blocking_mode(action, granted_at)
    if mode is StopMode.STOPPED:
        return (
            STOPPED
            if stops.find_stop_mode(*action) is StopMode.STOPPED
            else STOPPED_SINCE
        )
    if mode is StopMode.PAUSED:
        return Refusal("paused", "This is paused.", later=True, free=True)
    return None


def find_lasting_stop_refusal(execution: Execution) -> Refusal | None:
    """A stop since the grant was issued; None for a pause, which is temporary."""
    no = find_stop_refusal(execution)
    return no if no is not None and not no.later else None


def find_tool_refusal(execution: Execution) -> Refusal | None:
    """Why the current tool no longer fits: it is gone, takes other arguments or acts
    elsewhere. None while it fits."""
    return _find_tool_change(execution, active.find_active_policy())


def _find_bytes_refusal(execution: Execution) -> Refusal | None:
    grant = execution.grant
    stored = canonical.digest(bytes(grant.revision.canonical))
    # guard: stored-bytes
    if not stored == grant.revision.action_hash == grant.action_hash:
        return OTHER_BYTES
    proposal, number = grant.proposal_id, grant.revision.number
    if not log_hashes.has_logged_hash(proposal, number, stored):  # guard: logged-bytes
        return OTHER_RECORD
    return None


def _find_tool_change(
    execution: Execution, policy: PolicyVersion | None
) -> Refusal | None:
    """A new tool version may describe the tool better. Its arguments, executor and
    destination must stay as decided: an effect elsewhere is another effect."""
    revision = execution.grant.revision
    proposed = revision.known_tool
    current = tools.find_current_tool(proposed.name, policy)
    if current is None:
        return Refusal("tool_changed", "The tool is no longer registered.")
    if tools.list_argument_errors(
        proposed, revision.args
    ) or tools.list_argument_errors(current, revision.args):
        return Refusal("tool_changed", "The arguments no longer fit the tool.")
    if _collect_destination(current) != _collect_destination(
        proposed
    ):  # guard: elsewhere
        return Refusal("tool_changed", "The tool now acts elsewhere.")
    return None


def _collect_destination(tool: Tool) -> tuple[object, str]:
    definition = tools.load_definition(tool)
    return definition.executor, definition.destination


def _find_policy_refusal(
    execution: Execution,
    request: ApprovalRequest | None,
    policy: PolicyVersion | None,
) -> Refusal | None:
    """The authority that the current policy requires, on the facts known when it was
    proposed, was given by people who may still give it, on these bytes [I11, I18]."""
    revision = execution.grant.revision
    reading = _reread_state(revision, policy)
    asked = reevaluate_revision(revision, policy, now=clock.now(), reading=reading)
    return _find_shortfall(execution, request, asked)


def _reread_state(
    revision: Revision, policy: PolicyVersion | None
) -> ToolReading | None:
    """Read the state again by the tool's current definition, where the policy in force
    needs facts that the stored reading lacks; None where it does not."""
    if policy is None or not is_reading_incomplete(revision, policy):
        return None
    current = tools.find_current_tool(revision.known_tool.name, policy)
    if current is None:
        return None
    asker = readings.build_asker(revision.proposal)
    definition = tools.load_definition(current)
    return readers.read_state(definition, revision.args, asker=asker, rehearse=False)


def find_authority_refusal(execution: Execution, asked: Evaluation) -> Refusal | None:
    """Why the given authority is less than `asked`; None when it is enough."""
    return _find_shortfall(execution, _find_request(execution), asked)


def _find_shortfall(
    execution: Execution, request: ApprovalRequest | None, asked: Evaluation
) -> Refusal | None:
    revision = execution.grant.revision
    # guard: tightened-tier
    if asked.tier.rank > _compute_decided_tier(execution, request).rank:
        return build_tightened_refusal(revision, asked)
    ballot = _load_ballot(request)
    votes = approvers.list_votes(ballot) if ballot else []
    # guard: votes-bytes
    if any(vote.seen not in {"", execution.grant.action_hash} for vote in votes):
        return OTHER_BYTES
    if (no := _find_vote_refusal(execution, ballot)) or ballot is None:
        return no
    if not approvers.are_approvers_valid(votes, ballot.request, revision):
        return APPROVER_GONE
    if _collect_requirements(asked) == _collect_requirements(
        Evaluation.from_json(revision.evaluation)
    ):
        return None
    # guard: tightened-votes
    return (
        None
        if approvers.has_enough_votes(votes, asked)
        else build_tightened_refusal(revision, asked)
    )


def build_tightened_refusal(revision: Revision, asked: Evaluation) -> Refusal:
    """Build the refusal of an approval that is no longer enough, with the cause."""
    return replace(
        TIGHTENED, detail=f"{TIGHTENED.detail} {describe_tightening(revision, asked)}"
    )


def describe_tightening(revision: Revision, asked: Evaluation) -> str:
    """Describe what requires more authority now than when this was proposed: new rules,
    else other people, else another queue, else a step-up."""
    was = Evaluation.from_json(revision.evaluation)
    known = {(rule.id, rule.text, rule.effect) for rule in was.rules}
    new = [
        rule for rule in asked.rules if (rule.id, rule.text, rule.effect) not in known
    ]
    said = [f"{rule.id} ({rule.effect}): {rule.text}" for rule in new]
    if not said and _describe_people(asked) != _describe_people(was):
        said = [
            f"It asks for {_describe_people(asked)}; "
            f"this was for {_describe_people(was)}."
        ]
    if not said and asked.queue != was.queue:
        said = [f"It asks in the queue {asked.queue}; this was asked in {was.queue}."]
    if not said and asked.step_up:
        said = ["It asks everybody who approves for a fresh sign-in."]
    return " ".join(said) or "The people who approved are too few or of other roles."


def _describe_people(evaluation: Evaluation) -> str:
    found = [f"{step.required} {step.role}" for step in evaluation.steps]
    return " and ".join(found) or "nobody"


def _load_ballot(request: ApprovalRequest | None) -> Ballot | None:
    return approvers.load_ballot(request) if request else None


def _find_vote_refusal(execution: Execution, ballot: Ballot | None) -> Refusal | None:
    """Count the votes again from their rows, because a status alone proves nothing
    [I18]. An action that the policy alone allows has no request and needs no votes."""
    if ballot is None:
        alone = Tier(execution.grant.revision.tier) in {Tier.AUTO, Tier.NOTIFY}
        return None if alone else WITHOUT_VOTES
    if ballot.request.status != RequestStatus.AUTHORIZED:
        return WITHOUT_VOTES
    if not approvers.has_all_votes(ballot):  # guard: effect-votes
        return WITHOUT_VOTES
    return None


def _collect_requirements(evaluation: Evaluation) -> tuple[object, ...]:
    """The people, the queue and the step-up that an evaluation requires."""
    return evaluation.steps, evaluation.queue, evaluation.step_up


def _find_request(execution: Execution) -> ApprovalRequest | None:
    """The request behind an execution; None when the policy alone allowed it."""
    rows = ApprovalRequest.objects.select_related("queue")
    return rows.filter(proposal=execution.proposal_id).first()


def _compute_decided_tier(
    execution: Execution, request: ApprovalRequest | None
) -> Tier:
    """The tier of authority that was given."""
    return Tier(request.tier if request else execution.grant.revision.tier)


def _find_window_refusal(execution: Execution) -> Refusal | None:
    """The execution window is still open by the database's clock, which moved on while
    readers and verifiers were asked."""
    grant = Grant.objects.filter(
        pk=execution.grant_id,
        status=GrantStatus.SPENT,
        expires_at__gt=clock.ClockTimestamp(),
    )
    if grant.exists():
        return None
    return Refusal("window_closed", "The execution window is over.")


def _find_state_refusal(
    execution: Execution, request: ApprovalRequest | None, definition: ToolDefinition
) -> Refusal | None:
    """The business state still meets the preconditions that the last approver was
    shown. The new reading is stored."""
    revision = execution.grant.revision
    shown = readings.load_shown_reading(_find_shown_reading(request), revision)
    expected = {**shown.get("preconditions", {}), **revision.preconditions}
    if definition.reader is None or not expected:
        return None
    asker = readings.build_asker(revision.proposal)
    fresh = readers.read_state(definition, revision.args, asker=asker, rehearse=False)
    readings.create_reading(revision, fresh, cause=readings.CLAIMED)
    if fresh.problem:
        return Refusal(
            "unread", f"The current state could not be read: {fresh.problem}", True
        )
    if _has_expected_values(expected, fresh.preconditions):  # guard: record-changed
        return None
    return Refusal("precondition", "The record changed after it was shown.")


def _find_shown_reading(request: ApprovalRequest | None) -> StateReading | None:
    """The reading that the last approver was shown; None for the revision's own."""
    if request is None:
        return None
    last = (
        Decision.objects.filter(request=request, version=request.version, counts=True)
        .select_related("reading")
        .order_by("-at")
        .first()
    )
    return last.reading if last else None


def _has_expected_values(expected: Mapping[str, Any], fresh: Mapping[str, Any]) -> bool:
    return all(fresh.get(name) == value for name, value in expected.items())


def _find_verifier_refusal(
    execution: Execution, request: ApprovalRequest | None, definition: ToolDefinition
) -> Refusal | None:
    revision, given = (
        execution.grant.revision,
        _compute_decided_tier(execution, request),
    )
    queue = request.queue.name if request else revision.evaluation["queue"]
    asked = verifiers.list_verifiers(definition, queue)
    if not asked:
        return None
    sealed = {
        "execution": execution.pk,
        "tool": execution.grant.proposal.tool_name,
        "args": revision.args,
        "action_hash": revision.action_hash,
        "tier": given,
    }
    found = verifiers.run_verifiers(asked, sealed, stage="effect")
    if isinstance(found, verifiers.VerifierRefusal):
        return Refusal("verifier", found.detail)
    if found is None or found.tier.rank <= given.rank:
        return None
    return Refusal("verifier", "A verifier asks for more authority.")
