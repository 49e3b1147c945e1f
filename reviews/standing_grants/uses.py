"""The uses of standing grants: a proposal takes one instead of an approval, and the
checks before the effect ask whether it still holds.

These are steps; the caller holds the transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from journal.models import LogRecord
from journal.statements import Statement
from policies import active, standing_grants, tools
from policies.evaluation import Evaluation, is_narrowing
from policies.models import PolicyVersion, StandingGrant
from reviews import locks, permissions
from reviews.governance.ruling import ProposedAction, Ruling
from reviews.models import Execution, Proposal, Revision
from reviews.permissions import Decider
from reviews.quorum import can_fill_step

ISSUED = "standing_grant.issued"  # the kind of its record in the log
_TAKE = Statement("""
UPDATE policies_standinggrant SET uses = uses + 1
WHERE id = %(pk)s RETURNING uses
""")


@dataclass(frozen=True, slots=True)
class StandingUse:
    """One use of a standing grant, and the ruling as it is under the grant."""

    grant: StandingGrant
    number: int
    ruling: Ruling


def take_use(
    proposal: Proposal, action: ProposedAction, ruling: Ruling
) -> StandingUse | None:
    """Take one use for a proposal that is about to be stored; None where people must be
    asked. Locks: the standing grant."""
    if describe_uncovered(ruling, action):  # guard: standing-covers
        return None
    grant = locks.lock_usable_standing_grant(action.agent, action.thread, action.tool)
    if grant is None:
        return None
    issuer = permissions.load_deciders([grant.issued_by_id])[grant.issued_by_id]
    money = ruling.money
    if not is_recorded(grant, issuer):  # guard: standing-recorded
        return None
    # guard: standing-issuer
    if not may_still_issue(grant, issuer) or proposal.bars(issuer.person.public_id):
        return None
    # guard: standing-ceiling
    if money and permissions.is_above_ceiling(
        issuer.person, money.minor, money.currency
    ):
        return None
    (number,) = _TAKE.fetch_one(pk=grant.pk)
    text = (
        f"A {grant.role} allowed calls of this tool in this run in advance: use"
        f" {number} of {grant.budget}."
    )
    lowered = standing_grants.lower_evaluation(ruling.evaluation, text)
    return StandingUse(grant, number, replace(ruling, evaluation=lowered))


def describe_uncovered(ruling: Ruling, action: ProposedAction) -> str:
    """Why no standing grant can cover this action, as the end of a sentence; "" if one
    can."""
    if ruling.policy is None or ruling.definition is None:
        return "its tool is not in the policy"
    if ruling.facts.get("indicators") or is_narrowing(ruling.facts):
        return "Counterseal found something in it that people must look at"
    document = active.load_document(ruling.policy)
    return standing_grants.find_uncovered_reason(
        document, ruling.definition, ruling.evaluation, action.args
    )


def may_still_issue(grant: StandingGrant, issuer: Decider) -> bool:
    """Whether the person who issued it could do so now: active, not stopped, admitted
    to the queue, and in the role in which they did."""
    role = permissions.find_deciding_role(issuer.person)
    return (
        role is not None
        and can_fill_step(role, grant.role)
        and not issuer.is_stopped
        and grant.queue_id in permissions.queues_of(issuer.person)
    )


def is_recorded(grant: StandingGrant, issuer: Decider) -> bool:
    """Whether it was issued through Counterseal: the log has its own record, and its
    seal is valid."""
    issued = LogRecord.objects.filter(
        kind=ISSUED,
        agent=grant.agent,
        thread=grant.thread,
        request=grant.request,
        actor_id=issuer.person.public_id,
    )
    return grant.is_sealed() and any(
        record.data.get("standing_grant") == grant.pk for record in issued
    )


def load_standing_grant(execution: Execution) -> tuple[StandingGrant, Decider] | None:
    """The standing grant that stands for the execution's approval, if any, and its
    issuer as they are now."""
    needed = execution.grant.standing_grant_id
    if needed is None:
        return None
    grant = StandingGrant.objects.get(pk=needed)
    issuer = permissions.load_deciders([grant.issued_by_id])[grant.issued_by_id]
    return grant, issuer


def is_revoked(grant: StandingGrant, issuer: Decider) -> bool:
    """Whether it was revoked, or its issuer could no longer issue it. One that expired
    after the use still holds."""
    if grant.revoked_at is not None:  # guard: standing-revoked
        return True
    return not may_still_issue(grant, issuer)  # guard: standing-issuer-now


def apply_standing_grant(
    execution: Execution, asked: Evaluation, policy: PolicyVersion | None
) -> Evaluation:
    """What `policy` asks for the execution now, with its standing grant, if the policy
    still lets one cover it."""
    revision: Revision = execution.grant.revision
    if execution.grant.standing_grant_id is None or policy is None:
        return asked
    tool = tools.find_successor(revision.known_tool, policy)
    if tool is None:
        return asked
    uncovered = standing_grants.find_uncovered_reason(
        active.load_document(policy), tools.load_definition(tool), asked, revision.args
    )
    # guard: standing-still-covers
    return asked if uncovered else standing_grants.lower_evaluation(asked, "")
