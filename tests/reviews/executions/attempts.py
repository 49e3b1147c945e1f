"""Effects to be attempted, and what their attempts come to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from reviews import grants
from reviews.executors import KnownFailure
from reviews.models import Execution, Grant
from tests.conftest import Gate
from tests.factories import decide, propose

MOST_ATTEMPTS = 5  # of a tool that says nothing else


def granted(gate: Gate, tool: str = "pay", **fields: Any) -> Execution:
    """An execution that one reviewer has just authorised."""
    request = propose(gate.agent, tool, **fields).request
    decide(request, gate.rita)
    return Execution.objects.get(proposal=request.proposal_id)


def deployment(gate: Gate) -> tuple[Execution, str]:
    """An effect that its agent may redeem, and the token."""
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    execution = Execution.objects.get(proposal=request.proposal_id)
    return execution, grants.token(execution.grant_id)


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
