"""What became of an attempt, as it is written under its fence; and what was said of one
too late to count."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from django.db import transaction

from journal import clock, failpoints, log
from policies import facts
from policies.choices import ExecutionClass
from reviews import locks
from reviews.alarms import late_reports, standing
from reviews.choices import ExecutionStatus
from reviews.executors import Outcome
from reviews.grants import approved_tool, sequence
from reviews.models import Execution

from . import claims, finish, leases
from .requeueing import back_off, requeue, tries_left
from .results import kept, redacted

HIGHEST = 2**31 - 1  # of the fences that a report may name
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


@transaction.atomic(durable=True)
def record(
    *, execution_id: str, fence: int, outcome: Outcome, actor: log.Actor
) -> Execution:
    """Write what became of an attempt, under its fence [I22].

    Raises NotFound, StaleFence.
    """
    execution = leases.fenced(execution_id, fence)
    now = clock.now()
    outcome = redacted(execution, outcome)
    late = actor.kind == "agent" and _is_late(execution, now)
    if outcome.status == "succeeded":
        _succeed(execution, outcome, actor, now)
    elif outcome.status == "failed":
        _fail(execution, outcome, actor, now)
    else:
        _doubt(execution, outcome, actor, now)
    if late:
        said = _report(execution, fence, execution.grant.action_hash, outcome)
        late_reports.keep(execution, said=said, actor=actor, now=now, counted=True)
    failpoints.point("record_uncommitted", execution_id)
    return execution


def _is_late(execution: Execution, now: datetime) -> bool:
    """Whether the holder had been told to be done by an earlier time."""
    lapsed = execution.lease_until is not None and execution.lease_until <= now
    return lapsed or execution.grant.expires_at <= now


def _succeed(
    execution: Execution, outcome: Outcome, actor: log.Actor, now: datetime
) -> None:
    found = kept(execution, outcome.result or {}) | {"looked_up": outcome.looked_up}
    digest = found["result_digest"]
    finish.finish(execution, "succeed", actor, now, found, digest=digest)
    facts.count_effect(execution.proposal_id, at=now)
    standing.succeeded(execution, now)
    standing.counted(execution, outcome.effects, now)


def _fail(
    execution: Execution, outcome: Outcome, actor: log.Actor, now: datetime
) -> None:
    """Known: no effect. Try again later if only this attempt never left the house."""
    due = now + back_off(execution)
    again = (
        (outcome.this_attempt_only or outcome.again)
        and tries_left(execution)
        and due < execution.grant.expires_at
    )
    if again:
        requeue(execution, outcome.code, outcome.detail, due, actor, now)
        return
    by_agent = actor.kind == "agent"
    why: dict[str, Any] = {"code": outcome.code, "detail": outcome.detail}
    if by_agent and approved_tool.can_be_asked(execution):
        why["ask_at"] = claims.quiet_from(execution)
    finish.finish(execution, "fail", actor, now, why, code=outcome.code)
    sequence.halt(execution, now)
    proposal = execution.grant.proposal
    if by_agent:  # its word alone would empty the sums that hold it back
        facts.count_effect(proposal.pk, at=now)  # guard: agent-word
    else:
        facts.deny_effect(proposal.pk)
    facts.observe_failure(agent=proposal.agent, proposal=proposal.pk, at=now)


def _doubt(
    execution: Execution, outcome: Outcome, actor: log.Actor, now: datetime
) -> None:
    """It may have happened. A keyed or queryable tool is asked again, soon."""
    due = _asked_again_at(execution, now)
    again = (
        approved_tool.class_of(execution) is not ExecutionClass.OPAQUE
        and tries_left(execution)
        and due < execution.grant.expires_at
        and not execution.by_agent
    )
    if again:
        Execution.objects.filter(pk=execution.pk, fence=execution.fence).update(
            lease_until=due, code=outcome.code, detail=outcome.detail
        )
        return
    finish.lose(execution, outcome.code, outcome.detail, now, actor)


def _asked_again_at(execution: Execution, now: datetime) -> datetime:
    """Where the service is looked up first, not before the lease is over: what it is
    still at, it would deny, and then do beside the attempt that follows."""
    due = now + back_off(execution)
    looked_up = approved_tool.can_be_asked(execution)
    if execution.began_at is None or execution.lease_until is None or not looked_up:
        return due
    return max(due, execution.lease_until)  # guard: lease-later


@transaction.atomic(durable=True)
def keep_late(
    *,
    execution_id: str,
    fence: int,
    action_hash: str,
    outcome: Outcome,
    actor: log.Actor,
) -> bool:
    """Keep what was said of an effect when it could no longer count. It settles
    nothing. Whether it only says again what was recorded. Raises NotFound."""
    execution, now = locks.execution(execution_id), clock.now()
    said = _report(execution, fence, action_hash, redacted(execution, outcome))
    late_reports.keep(execution, said=said, actor=actor, now=now)
    count_found(execution, outcome, now)
    return late_reports.repeats(execution, said)


def keep_found(
    execution: Execution, outcome: Outcome, actor: log.Actor, now: datetime
) -> None:
    """The same as a step, for what a look-up found after somebody had said that it did
    not happen. Caller holds the execution's lock; `outcome` is redacted."""
    said = _report(execution, execution.fence, execution.grant.action_hash, outcome)
    late_reports.keep(execution, said=said, actor=actor, now=now)
    count_found(execution, outcome, now)


def count_found(execution: Execution, outcome: Outcome, now: datetime) -> None:
    """What was thought never to have happened weighs in its sums again when somebody
    says that it did. Caller holds the execution's lock."""
    ended = {ExecutionStatus.FAILED, ExecutionStatus.REFUSED}
    if outcome.status == "succeeded" and execution.status in ended:
        at = execution.grant.revision.created_at
        facts.restore(execution.proposal_id, at=at, ran_by=now)
        facts.count_effect(execution.proposal_id, at=now)


def _report(
    execution: Execution, fence: int, action_hash: str, outcome: Outcome
) -> dict[str, Any]:
    """A report's columns; what was said is redacted already."""
    happened = outcome.status == "succeeded"
    found = kept(execution, outcome.result or {}) if happened else {}
    return {
        "fence": min(fence, HIGHEST),
        "status": outcome.status,
        "action_hash": action_hash if _HASH.fullmatch(action_hash) else "",
        "result_shown": found.get("result_shown"),
        "result_digest": found.get("result_digest", ""),
        "code": outcome.code,
        "detail": outcome.detail,
    }
