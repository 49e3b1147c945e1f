from __future__ import annotations

from journal import log
from journal.models import LogRecord
from reviews import claims, grants
from reviews.models import Execution, Grant
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose


def test_the_providers_key_is_a_function_of_proposal_and_bytes(gate: Gate) -> None:
    """I23: the same for every attempt, another for other bytes or another proposal."""
    request = propose(gate.agent).request
    factories.revise(gate.agent, request.proposal)
    decide(request, gate.rita)
    execution = Execution.objects.get()
    same = grants.idempotency_key(request.proposal_id, request.action_hash)
    assert execution.idempotency_key == same
    first, *others = [
        grants.idempotency_key(request.proposal_id, r.action_hash)
        for r in request.proposal.revisions.order_by("-number")
    ]
    assert first == same
    assert same not in others
    assert grants.idempotency_key("p-other", request.action_hash) != same
    claim = claims.take(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    again = claims.take(execution_id=execution.pk, actor=log.SYSTEM)
    assert claim is not None
    assert again is not None
    assert claim.call.idempotency_key == again.call.idempotency_key == same


def test_the_log_never_holds_a_token(gate: Gate) -> None:
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    token = grants.token(Grant.objects.get().pk)
    for record in LogRecord.objects.all():
        assert token.encode() not in bytes(record.leaf)
