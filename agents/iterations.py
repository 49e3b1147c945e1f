"""The iteration cap: how often an agent may propose in one run before a person takes
part.

A tool of the policy may have an `iteration_cap`, as the tools of coding agents do. When
a run has proposed that often since a person last decided on one of its requests, since
its plan last changed and since it was last resumed, its next proposal of such a tool is
refused, and the run is paused until a person resumes it.
"""

from __future__ import annotations

from journal import clock
from journal.errors import AgentStopped
from journal.operations import operation
from journal.statements import Statement
from policies import tools
from policies.models import PolicyVersion
from reviews.stops import stops

from .checkpoints import SuspendedState
from .models import Checkpoint, Thread

# Proposals of a run since each of the three events that begin the count again. A plan
# changes with a checkpoint that has another one than the checkpoint before it.
_ITERATIONS = Statement("""
SELECT count(*) FROM reviews_proposal AS proposal
WHERE agent = %(agent)s AND thread = %(name)s AND created_at > greatest(
    '-infinity',
    (SELECT max(decision.at)
     FROM reviews_proposal AS decided
     JOIN reviews_approvalrequest AS request ON request.proposal_id = decided.id
     JOIN reviews_decision AS decision ON decision.request_id = request.id
     WHERE decided.agent = %(agent)s AND decided.thread = %(name)s),
    (SELECT max(lifted_at) FROM reviews_stop
     WHERE scope = 'thread' AND key = %(agent)s || '/' || %(name)s),
    (SELECT max(kept.created_at)
     FROM (SELECT created_at, state -> 'plan' AS plan,
                  lag(state -> 'plan') OVER (ORDER BY number) AS earlier
           FROM agents_checkpoint WHERE thread_id = %(thread)s) AS kept
     WHERE kept.plan IS DISTINCT FROM kept.earlier))
""")


class IterationCapReached(Exception):
    """A run has proposed as often as the cap allows: its agent, its thread and how
    often. Its transaction is rolled back, and `pause_run` pauses it."""


def check_cap(
    thread: Thread,
    tool: str,
    policy: PolicyVersion | None,
    suspended: SuspendedState | None,
) -> None:
    """Raise IterationCapReached when a proposal of this tool is one too many. A new
    plan that comes with the proposal itself counts as a change. The caller holds the
    thread's lock. Takes a query only for a tool with a cap."""
    current_tool = tools.find_current_tool(tool, policy) if policy else None
    cap = tools.load_definition(current_tool).iteration_cap if current_tool else 0
    if not cap:
        return
    agent = thread.agent.slug
    (count,) = _ITERATIONS.fetch_one(agent=agent, name=thread.name, thread=thread.pk)
    reached = count >= cap and not _has_new_plan(thread, suspended)
    if reached:  # guard: iteration-cap
        raise IterationCapReached(agent, thread.name, count)


def _has_new_plan(thread: Thread, suspended: SuspendedState | None) -> bool:
    plan = suspended.state.get("plan") if suspended else None
    if not plan:
        return False
    rows = Checkpoint.objects.filter(thread=thread).order_by("-number")
    state = rows.values_list("state", flat=True).first() or {}
    return bool(plan != state.get("plan"))


@operation(
    entry="agents.proposals.propose_action",
    writes="Stop",
    logs="stop.raised",
    after="a task that applies the pause, wake-up",
)
def pause_run(reached: IterationCapReached) -> AgentStopped:
    """Pause the run, and return the error for the agent. A pause or stop that is in
    force stays as it is."""
    agent, thread, count = reached.args
    reason = stops.pause_iterating_run(agent, thread, count=count, now=clock.now())
    return stops.build_paused_error(reason)
