"""Proposals of an action that the same run has proposed before.

Two proposals are of the same action when their action hashes are equal: agent, run,
tool version, arguments and preconditions. While the first one waits for people, later
calls join its request, so that the queue shows one card. After a rejection, a further
proposal gets that rejection at once. When people reject several proposals of a run in a
row, the run is paused, and it cannot propose until a person resumes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from journal import canonical, log
from journal.statements import Statement
from policies import active
from policies.models import PolicyVersion
from reviews import locks, transitions
from reviews.choices import OPEN
from reviews.governance.ruling import ProposedAction, find_tool
from reviews.models import ApprovalRequest, Proposal
from reviews.stops import stops

from . import versions

# The open request of the same action, and its first proposal that was rejected. One
# subquery for each open status: only then does PostgreSQL use the partial indexes.
_OPEN_REPEATS = ", ".join(
    f"""
    (SELECT id FROM reviews_approvalrequest WHERE status = '{status}'
     AND repeat_key = %(repeat_key)s::uuid AND action_hash = %(action_hash)s LIMIT 1)"""  # noqa: S608 constants
    for status in OPEN
)
COLUMNS = f"""
COALESCE({_OPEN_REPEATS}),
(SELECT proposal_id FROM reviews_approvalrequest WHERE status = 'rejected'
 AND repeat_key = %(repeat_key)s::uuid AND action_hash = %(action_hash)s
 ORDER BY settled_at LIMIT 1)
"""  # noqa: S608 constants
# Rejections of each run since people last approved something in it or resumed it.
_REJECTIONS = Statement("""
SELECT run.agent, run.thread, (
    SELECT count(*)
    FROM reviews_proposal AS proposal
    LEFT JOIN reviews_approvalrequest AS request ON request.proposal_id = proposal.id
    WHERE proposal.agent = run.agent AND proposal.thread = run.thread
      AND (request.status = 'rejected' OR proposal.repeats > '')
      AND coalesce(request.settled_at, proposal.created_at) > greatest(
          '-infinity',
          (SELECT max(approved.settled_at)
           FROM reviews_proposal AS earlier
           JOIN reviews_approvalrequest AS approved
             ON approved.proposal_id = earlier.id
           WHERE earlier.agent = run.agent AND earlier.thread = run.thread
             AND approved.status = 'authorized'),
          (SELECT max(lifted_at) FROM reviews_stop
           WHERE scope = 'thread' AND key = run.agent || '/' || run.thread)))
FROM unnest(%(agents)s::text[], %(threads)s::text[]) AS run (agent, thread)
""")


@dataclass(frozen=True, slots=True)
class EarlierProposals:
    """Earlier proposals of one action: the id of its open request, and the id of the
    proposal whose rejection stands. Each is empty without one."""

    open_request: str = ""
    rejected: str = ""


def build_action_values(
    action: ProposedAction, policy: PolicyVersion | None
) -> Mapping[str, Any]:
    """The parameters of `COLUMNS` for an action under this policy."""
    tool = find_tool(action, policy) if policy else None
    blob = action.canonical(tool.version if tool else 0)
    key = versions.compute_repeat_key(action.agent, action.tool, action.args)
    return {"repeat_key": str(key), "action_hash": canonical.digest(blob)}


def join_request(
    request_id: str, action: ProposedAction, barred: Iterable[str], *, now: datetime
) -> Proposal | None:
    """Count one more call for the open request of this action, and return its proposal.

    Returns None when the request has been settled meanwhile, or when this call must be
    judged by itself: it names people who may decide the open request but not this one,
    or the agent is less sure of it. The caller holds the thread's lock and no lock on
    sums. Locks: the request.
    """
    request = locks.lock_request(request_id)
    proposal, facts = request.proposal, request.proposal.current.facts
    known = {*proposal.barred, *proposal.kept_out}
    if request.status not in OPEN or request.expires_at <= now:
        return None
    if not known.issuperset(barred):  # guard: joined-bars
        return None
    if action.uncertain > proposal.current.uncertain:  # guard: joined-doubt
        return None
    if action.resembles and not facts.get("resembles"):
        return None
    transitions.request.apply(
        request,
        "join",
        actor=log.Actor("agent", action.agent),
        now=now,
        changes={"joined": request.joined + 1},
        data={"joined": request.joined + 1},
    )
    proposal.request = request
    return proposal


def pause_rejected_runs(proposals: Iterable[Proposal], now: datetime) -> None:
    """Pause each of these runs in which people have rejected as many proposals in a row
    as the policy allows. The caller is in the transaction of a rejection."""
    policy = active.find_active_policy()
    limit = active.load_document(policy).rejections_in_a_row if policy else 0
    runs = sorted({(proposal.agent, proposal.thread) for proposal in proposals})
    if not limit:
        return
    counted = _REJECTIONS.fetch_all(
        agents=[agent for agent, _ in runs], threads=[thread for _, thread in runs]
    )
    for agent, thread, count in counted:
        if count >= limit:  # guard: rejections-in-a-row
            stops.pause_rejected_run(agent, thread, count=count, now=now)


def count_repeats(proposal_id: str) -> int:
    """How many proposals got the rejection of this one."""
    return Proposal.objects.filter(repeats=proposal_id).count()


def find_rejected_request(proposal: Proposal) -> ApprovalRequest | None:
    """The request whose rejection this proposal got; None when it got none."""
    if not proposal.repeats:
        return None
    return (
        ApprovalRequest.objects.select_related("proposal")
        .filter(proposal_id=proposal.repeats)
        .first()
    )
