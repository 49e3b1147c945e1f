"""Words that agents and services choose beside their texts: bounded and redacted."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents import keys
from journal.models import LogRecord
from reviews.choices import SETTLED_BY_PERSON
from reviews.executions import claims, record
from reviews.models import ApprovalRequest, Execution
from reviews.tool_services.executors import EffectOutcome
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.security.world import BACKEND

ADDRESS = "dana.private@mail.example"


@pytest.fixture
def caller(gate: Gate) -> Caller:
    return Caller(keys.issue_key(agent=gate.agent, by=gate.owen), iter(range(99)))


@pytest.fixture
def taken(gate: Gate, caller: Caller) -> dict[str, Any]:
    """An effect that the agent has redeemed."""
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    token = caller.get(f"/proposals/{request.proposal_id}").json()["grant"]["token"]
    found: dict[str, Any] = caller.post("/grants/redeem", {"token": token}).json()
    return found


def report(caller: Caller, taken: dict[str, Any], **said: Any) -> int:
    body = {"fence": taken["fence"], "action_hash": taken["action_hash"], **said}
    path = f"/executions/{taken['execution']}/outcome"
    return int(caller.post(path, body).status_code)


@pytest.mark.parametrize("status", ["failed", "unknown"])
def test_why_an_agents_effect_failed_is_redacted(
    caller: Caller, taken: dict[str, Any], status: str
) -> None:
    said = {"code": ADDRESS, "detail": f"{ADDRESS} bounced"}
    assert report(caller, taken, status=status, **said) == 200
    execution = Execution.objects.get()
    assert "redacted" in execution.detail
    assert ADDRESS not in execution.code + execution.detail
    for leaf in LogRecord.objects.values_list("leaf", flat=True):
        assert ADDRESS.encode() not in bytes(leaf)


def test_the_code_of_a_failure_is_quoted_and_never_one_of_our_flags(
    gate: Gate, caller: Caller, taken: dict[str, Any]
) -> None:
    code = "approved\u202e_by_supervisor"
    assert report(caller, taken, status="failed", code=code) == 200
    client = Client()
    client.force_login(gate.sue, BACKEND)
    for path in ("/log/", f"/requests/{ApprovalRequest.objects.get().pk}/"):
        source = client.get(path).content.decode()
        assert "pproved\u202e" not in source
        assert "pproved by supervisor" not in source
        quoted = (
            '<bdi dir="auto" translate="no" hx-disable>'
            'approved<span class="ctl">⟦U+202E⟧</span>'
        )
        assert f'answer <b class="chip">{quoted}' in source


def test_nobody_but_a_person_says_that_a_person_said_so(
    gate: Gate, caller: Caller, taken: dict[str, Any]
) -> None:
    assert report(caller, taken, status="failed", code=SETTLED_BY_PERSON) == 200
    assert Execution.objects.get().code == "failed"
    client = Client()
    client.force_login(gate.sue, BACKEND)
    source = client.get(f"/requests/{ApprovalRequest.objects.get().pk}/").content
    assert b"A person recorded this" not in source


def test_a_services_words_are_redacted_as_well(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita)
    execution = Execution.objects.get()
    claim = claims.claim_execution(
        execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR
    )
    assert claim
    record.record_outcome(
        execution_id=execution.pk,
        fence=claim.fence,
        outcome=EffectOutcome("failed", code="refused", detail=f"no {ADDRESS}"),
        actor=claims.EXECUTOR_ACTOR,
    )
    execution.refresh_from_db()
    assert ADDRESS not in execution.detail
    assert execution.code == "refused"


def test_an_agents_result_has_a_size(caller: Caller, taken: dict[str, Any]) -> None:
    result = {"log": "x" * 200_000}
    assert report(caller, taken, status="succeeded", result=result) == 200
    execution = Execution.objects.get()
    assert execution.result_shown == {"truncated": True, "bytes": 200_010}


def test_a_refused_name_is_not_kept_for_ever(caller: Caller) -> None:
    body = {"thread": "t", "tool": "look", "args": {"q": "a"}, ADDRESS: 1}
    answer = caller.post("/proposals", body, **{"Idempotency-Key": "k"})
    assert answer.status_code == 422
    assert caller.post(f"/threads/{ADDRESS}/finish", {}).status_code == 422
    leaves = LogRecord.objects.filter(kind="proposal.refused").values_list("leaf")
    assert len(leaves) == 2
    for (leaf,) in leaves:
        assert ADDRESS.encode() not in bytes(leaf)
