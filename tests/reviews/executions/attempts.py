"""Effects to be attempted, and what their attempts come to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from journal import log
from reviews.choices import ExecutionStatus
from reviews.executions import redeem, run
from reviews.grants import tokens
from reviews.models import Execution, Grant
from reviews.tool_services.executors import EffectOutcome, KnownFailure
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose

MOST_ATTEMPTS = 5  # of a tool that says nothing else


def granted(gate: Gate, tool: str = "pay", **fields: Any) -> Execution:
    """An execution that one reviewer has just authorised."""
    request = propose(gate.agent, tool, **fields).request
    decide(request, gate.rita)
    return Execution.objects.get(proposal=request.proposal_id)


def declined(gate: Gate, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> Execution:
    """A payment that its reviewer approved, and that the provider did not make."""

    def no(call: Any) -> None:
        raise KnownFailure("declined", "not now")

    execution = granted(gate, **fields)
    with monkeypatch.context() as patched:
        patched.setattr(worlds, "keyed", no)
        run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.FAILED
    return execution


def deployment(gate: Gate, **fields: Any) -> tuple[Execution, str]:
    """An effect that its agent may redeem, and the token."""
    request = propose(gate.agent, "deploy", **fields).request
    decide(request, gate.sue)
    decide(request, gate.sam)
    execution = Execution.objects.get(proposal=request.proposal_id)
    return execution, tokens.load_token(execution.grant_id)


def reported(execution: Execution, fence: int, outcome: EffectOutcome) -> None:
    """What its agent says of the attempt that it redeemed under this fence."""
    redeem.report_outcome(
        execution=execution,
        fence=fence,
        action_hash=execution.grant.action_hash,
        outcome=outcome,
        actor=log.Actor("agent", "riley"),
    )


def ends(execution: Execution, end: str) -> str:
    """Let its window be over, or its attempts; the code that says so."""
    if end == "window":
        past = execution.queued_at - timedelta(seconds=1)
        Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
        return "window_closed"
    most = MOST_ATTEMPTS
    Execution.objects.filter(pk=execution.pk).update(attempts=most)
    return "tried_out"


def flaky(call: Any) -> dict[str, Any]:
    raise KnownFailure("busy", "ask me later", again=True)
