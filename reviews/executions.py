"""From a grant to one effect: claim, re-check, perform, record (gate.md section 7).

Recovery never runs a tool itself: it queues again, and the claim decides.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from journal import canonical, clock, encryption, faults, log
from journal.errors import StaleFence
from policies import facts, tools
from policies.choices import ExecutionClass

from . import alarms, claims, executors, locks, rechecks, redacting, transitions, turns
from .choices import BY_LOOK_UP, BY_PERSON
from .claims import Claim
from .executors import Outcome
from .models import Execution
from .rechecks import No
from .redacting import Redactor

logger = structlog.get_logger(__name__)
HIGHEST = 2**31 - 1  # of the fences that a report may name
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


def run(execution_id: str) -> None:
    """Take an execution and see it through, as far as this process lives.

    Safe to call any number of times at once: only one caller gets the claim.
    """
    faults.point("before_claim", execution_id)
    claim = claims.take(execution_id=execution_id, actor=claims.EXECUTOR)
    if claim is None:
        return
    structlog.contextvars.bind_contextvars(
        proposal=claim.execution.proposal_id, execution=execution_id
    )
    faults.point("after_claim", execution_id)
    try:
        outcome = _attempt(claim)
    except StaleFence:
        logger.warning("stale_fence", execution=execution_id, fence=claim.fence)
        return
    faults.point("before_record", execution_id)
    try:
        _conclude(claim, outcome)
    except StaleFence:
        _too_late(claim, outcome)
        return
    faults.point("after_record", execution_id)


def _too_late(claim: Claim, outcome: Outcome | No) -> None:
    """Another attempt took over while this one was held up: what it did is kept."""
    logger.warning("stale_fence", execution=claim.execution.pk, fence=claim.fence)
    if isinstance(outcome, Outcome) and not outcome.looked_up:
        keep_late(
            execution_id=claim.execution.pk,
            fence=claim.fence,
            action_hash=claim.execution.grant.action_hash,
            outcome=outcome,
            actor=claims.EXECUTOR,
        )


def _attempt(claim: Claim) -> Outcome | No:
    """Look up what an earlier attempt did, re-check the world, perform."""
    untouched = claim.untouched
    if not untouched and claim.definition.look_up is not None:
        found = executors.look_up(claim.definition, claim.call)
        faults.point("looked_up", claim.execution.pk)
        if found.code != "not_found" and not _may_repeat(claim, found):
            return found
        if claim.over:
            return No(claim.over, "It never ran, and nothing is begun any more.")
        untouched = found.code == "not_found"
    no = rechecks.check(claim.execution, claim.definition)
    if no is not None and untouched:
        return no
    if no is not None and no.code != "precondition":
        return Outcome("unknown", code=no.code, detail=no.detail)
    # A keyed provider answers a repeated key from its memory, so a state that our
    # own earlier attempt changed is no reason to stop here.
    faults.point("rechecked", claim.execution.pk)
    no = note_outside()
    claims.check_held(claim)
    no = no or rechecks.switches(claim.execution)  # nothing is asked after this [I24]
    if no is not None:
        return no if untouched else Outcome("unknown", code=no.code, detail=no.detail)
    faults.point("before_effect", claim.execution.pk)
    outcome = executors.perform(claim.definition, claim.call)
    faults.point("after_effect", claim.execution.pk)
    if outcome.this_attempt_only and not untouched:
        return Outcome("unknown", code=outcome.code, detail=outcome.detail)
    return outcome


def _may_repeat(claim: Claim, found: Outcome) -> bool:
    """A keyed provider that cannot say is asked for the effect itself: under the same
    key that is no second one."""
    keyed = claims.class_of(claim.execution) is ExecutionClass.KEYED
    return keyed and found.status == "unknown" and not claim.over


def note_outside() -> No | None:
    """Why nothing may be begun: what cannot be written down beside the database could
    be forgotten with it."""
    try:
        claims.note_outside()
    except OSError as error:
        logger.error("epoch.not_written", error=str(error))
        return No("unwritten", "This host cannot write its note of it.", True, True)
    return None


def _conclude(claim: Claim, outcome: Outcome | No) -> None:
    if isinstance(outcome, No):
        refuse(execution_id=claim.execution.pk, fence=claim.fence, no=outcome)
        return
    record(
        execution_id=claim.execution.pk,
        fence=claim.fence,
        outcome=outcome,
        actor=claims.EXECUTOR,
    )


@transaction.atomic(durable=True)
def record(
    *, execution_id: str, fence: int, outcome: Outcome, actor: log.Actor
) -> Execution:
    """Write what became of an attempt, under its fence [I22].

    Raises NotFound, StaleFence.
    """
    execution = claims.fenced(execution_id, fence)
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
        alarms.keep(execution, said=said, actor=actor, now=now, counted=True)
    faults.point("record_uncommitted", execution_id)
    return execution


def _is_late(execution: Execution, now: datetime) -> bool:
    """Whether the holder had been told to be done by an earlier time."""
    lapsed = execution.lease_until is not None and execution.lease_until <= now
    return lapsed or execution.grant.expires_at <= now


@transaction.atomic(durable=True)
def keep_late(
    *,
    execution_id: str,
    fence: int,
    action_hash: str,
    outcome: Outcome,
    actor: log.Actor,
) -> None:
    """Keep what was said of an effect when it could no longer count. It settles
    nothing. Raises NotFound."""
    execution = locks.execution(execution_id)
    said = _report(execution, fence, action_hash, redacted(execution, outcome))
    alarms.keep(execution, said=said, actor=actor, now=clock.now())


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


def _succeed(
    execution: Execution, outcome: Outcome, actor: log.Actor, now: datetime
) -> None:
    found = kept(execution, outcome.result or {}) | {"looked_up": outcome.looked_up}
    digest = found["result_digest"]
    claims.finish(execution, "succeed", actor, now, found, digest=digest)
    alarms.succeeded(execution, now)
    alarms.counted(execution, outcome.effects, now)


def redacted(execution: Execution, outcome: Outcome) -> Outcome:
    """The same, its words as they may be kept and logged: a service or an agent chose
    them."""
    redactor = _redactor(execution)
    code = redactor.text(outcome.code)[:64]
    code = "failed" if code in {BY_PERSON, BY_LOOK_UP} else code
    return replace(outcome, code=code, detail=redactor.text(outcome.detail))


def _redactor(execution: Execution) -> Redactor:
    proposal, revision = execution.grant.proposal, execution.grant.revision
    return redacting.of(
        proposal.agent,
        proposal.thread,
        tools.definition(revision.known_tool),
        revision.args,
        proposal=proposal.pk,
    )


def kept(execution: Execution, result: dict[str, Any]) -> dict[str, Any]:
    """A result's columns: sealed for the agent, redacted for people, a digest."""
    blob = canonical.encode(result)
    return {
        "result": encryption.seal(
            settings.HOLDPOINT.data_key, blob, execution.pk.encode()
        ),
        "result_shown": _redactor(execution).foreign(result),
        "result_digest": "sha256:" + hashlib.sha256(blob).hexdigest(),
    }


def result_of(execution: Execution) -> dict[str, Any] | None:
    """The whole result, for the agent that asked for the effect."""
    if execution.result is None:
        return None
    blob = encryption.open(
        settings.HOLDPOINT.data_key, bytes(execution.result), execution.pk.encode()
    )
    value: dict[str, Any] = canonical.parse(blob)
    return value


def _fail(
    execution: Execution, outcome: Outcome, actor: log.Actor, now: datetime
) -> None:
    """Known: no effect. Try again later if only this attempt never left the house."""
    due = now + _back_off(execution)
    again = (
        (outcome.this_attempt_only or outcome.again)
        and _tries_left(execution)
        and due < execution.grant.expires_at
    )
    if again:
        _requeue(execution, outcome.code, outcome.detail, due, actor, now)
        return
    why = {"code": outcome.code, "detail": outcome.detail}
    claims.finish(execution, "fail", actor, now, why, code=outcome.code)
    turns.halt(execution, now)
    proposal = execution.grant.proposal
    facts.release(proposal.pk)
    facts.observe_failure(agent=proposal.agent, proposal=proposal.pk, at=now)


def _doubt(
    execution: Execution, outcome: Outcome, actor: log.Actor, now: datetime
) -> None:
    """It may have happened. A keyed or queryable tool is asked again, soon."""
    due = now + _back_off(execution)
    again = (
        claims.class_of(execution) is not ExecutionClass.OPAQUE
        and _tries_left(execution)
        and due < execution.grant.expires_at
        and not execution.by_agent
    )
    if again:
        Execution.objects.filter(pk=execution.pk, fence=execution.fence).update(
            lease_until=due, code=outcome.code, detail=outcome.detail
        )
        return
    claims.lose(execution, outcome.code, outcome.detail, now, actor)


def _back_off(execution: Execution) -> timedelta:
    """Before the next attempt, after as many as the row counts."""
    return claims.definition_of(execution).retry.after(execution.attempts)


def _tries_left(execution: Execution) -> bool:
    return execution.attempts < claims.definition_of(execution).retry.attempts


def _requeue(
    execution: Execution,
    code: str,
    detail: str,
    due: datetime,
    actor: log.Actor,
    now: datetime,
    **changes: Any,
) -> None:
    transitions.execution.apply(
        execution,
        "requeue",
        actor=actor,
        now=now,
        changes={
            "lease_until": None,
            "due_at": due,
            "code": code,
            "detail": detail,
            **changes,
        },
        data={"execution": execution.pk, "code": code},
    )


@transaction.atomic(durable=True)
def give_back(*, claim: Claim, no: No) -> None:
    """A check said no to what an agent redeemed, and nobody was given it: nothing of it
    happens, or after an attempt that may have had an effect all is as before a switch.

    Raises StaleFence, also when a repeated call was given it meanwhile: what may be
    under way stands.
    """
    execution = claims.fenced(claim.execution.pk, claim.fence)
    if execution.began_at is not None:
        raise StaleFence
    if claim.untouched:
        _refuse(execution, no)
    elif no.code in {"stopped", "paused"}:
        Execution.objects.filter(pk=execution.pk, fence=claim.fence).update(
            lease_until=clock.now(), attempts=execution.attempts - 1
        )


@transaction.atomic(durable=True)
def refuse(*, execution_id: str, fence: int, no: No) -> Execution:
    """A re-check said no, and no attempt has reached the world. Raises StaleFence."""
    execution = claims.fenced(execution_id, fence)
    _refuse(execution, no)
    return execution


def _refuse(execution: Execution, no: No) -> None:
    now = clock.now()
    due = now + _back_off(execution)
    again = (execution, no.code, no.detail, due, claims.EXECUTOR, now)
    if no.free:
        _requeue(*again, attempts=execution.attempts - 1)
    elif no.later and _tries_left(execution):
        _requeue(*again)
    else:
        claims.refuse(execution, no, now)
