from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import jwt
import pytest

from agents.adapters.authzen import approvals, tasks
from agents.models import Checkpoint
from journal import clock
from journal.models import LogRecord
from policies.choices import Role
from reviews.choices import Scope, StopMode
from reviews.grants import tokens
from reviews.models import Execution, Grant
from reviews.stops import stops
from tests import factories
from tests.agents.adapters.authzen.conftest import (
    REQUESTS,
    EnforcementPoint,
    approved,
    build_denial,
    connect,
    deployment,
    request_of,
)
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import decide
from tests.security.world import changed, digests


def claims_of(approval: dict[str, Any]) -> dict[str, Any]:
    return dict(jwt.decode(approval["state"], options={"verify_signature": False}))


def refused(
    pep: EnforcementPoint,
    body: dict[str, Any],
    approval: dict[str, Any],
    reason: str,
    next_action: str,
) -> dict[str, Any]:
    """The context of a denial in spite of an approval."""
    said = pep.reevaluate(body, approval)
    assert said["decision"] is False
    context: dict[str, Any] = said["context"]
    assert (context["reason"], context["next_action"]) == (reason, next_action)
    assert ("access_request" in context) == (next_action == "request")
    assert ("retry_after" in context) == (next_action == "retry")
    assert "obligations" not in context
    return context


def test_the_state_says_what_was_approved_for_whom_and_until_when(
    pep: EnforcementPoint, gate: Gate, settings: Any
) -> None:
    body = deployment(thread="t-7", time="now")
    approval = approved(pep, gate, body)
    grant = Grant.objects.get()
    header = jwt.get_unverified_header(approval["state"])
    assert header == {
        "alg": "EdDSA",
        "kid": tokens.build_jwk_set()["keys"][0]["kid"],
        "typ": "counterseal-approval+jwt",
    }
    claims = claims_of(approval)
    here = settings.COUNTERSEAL.base_url
    assert claims == {
        "iss": here,
        "aud": here,
        "iat": int(grant.issued_at.timestamp()),
        "nbf": int(grant.issued_at.timestamp()),
        "exp": int(grant.expires_at.timestamp()),
        "approval_id": grant.pk,
        "task_id": grant.proposal_id,
        "evaluation_id": claims["evaluation_id"],
        "client_id": "riley",
        "status": "approved",
        "approved_at": approval["approved_at"],
        "approved_until": approval["approved_until"],
        "subject": body["subject"],
        "resource": body["resource"],
        "action": body["action"],
        "context": {"thread": "t-7"},
        "binding_context_members": ["thread"],
        "action_hash": grant.action_hash,
        "approved_by": [{"role": "supervisor", "required": 2}],
    }
    assert approval["id"] == grant.pk


def test_the_state_is_the_same_whenever_it_is_asked_for(
    pep: EnforcementPoint, gate: Gate
) -> None:
    approval = approved(pep, gate, deployment())
    task = {"id": Grant.objects.get().proposal_id}
    assert pep.poll(task)["result"]["approval"] == approval


def test_an_approval_permits_exactly_what_was_approved_and_is_not_used_up(
    pep: EnforcementPoint, gate: Gate
) -> None:
    body = deployment(time="20:15")
    approval = approved(pep, gate, body)
    before = digests(log=True)
    for context in ({}, {"time": "20:43"}):
        permit = pep.reevaluate({**body, "context": context}, approval)
        assert permit["decision"] is True
        assert permit["context"]["approval"] == {
            "id": approval["id"],
            "approved_until": approval["approved_until"],
        }
    assert changed(before, log=True) == []
    assert pep.reevaluate(body, {"id": approval["id"]})["decision"] is True


def test_the_permit_is_redeemed_once_right_before_the_effect(
    pep: EnforcementPoint, gate: Gate
) -> None:
    approval = approved(pep, gate, deployment())
    permit = pep.reevaluate(deployment(), approval)
    claim = pep.redeem(permit)
    assert claim.status_code == 200
    assert claim.json()["args"] == {"ref": "v1"}
    assert pep.redeem(permit, "another").json()["code"] == "grant_spent"
    context = refused(pep, deployment(), approval, "approval_in_use", "retry")
    assert 0 < context["retry_after"] <= 61

    execution = Execution.objects.get()
    factories.lapsed(execution)  # the process died: its agent may redeem again
    permit = pep.reevaluate(deployment(), approval)
    claim = pep.redeem(permit, "again").json()
    assert claim["fence"] == 2
    outcome = {key: claim[key] for key in ("fence", "action_hash")}
    path = f"/api/v1/executions/{claim['execution']}/outcome"
    done = pep.call("POST", path, {**outcome, "status": "succeeded"})
    assert done.json()["status"] == "executed"
    refused(pep, deployment(), approval, "approval_spent", "none")


@pytest.mark.parametrize(
    ("status", "reason", "next_action"),
    [
        ("failed", "approval_spent", "request"),
        ("unknown", "outcome_unknown", "none"),
    ],
)
def test_after_an_outcome_an_approval_is_spent(
    pep: EnforcementPoint, gate: Gate, status: str, reason: str, next_action: str
) -> None:
    approval = approved(pep, gate, deployment())
    claim = pep.redeem(pep.reevaluate(deployment(), approval)).json()
    outcome = {key: claim[key] for key in ("fence", "action_hash")}
    path = f"/api/v1/executions/{claim['execution']}/outcome"
    pep.call("POST", path, {**outcome, "status": status, "code": "down"})
    refused(pep, deployment(), approval, reason, next_action)


CHANGES: dict[str, dict[str, Any]] = {
    "other arguments": {"action": {"name": "invoke", "properties": {"ref": "v2"}}},
    "another tool": {"resource": {"type": "tool", "id": "look"}},
    "another person": {"subject": {"type": "user", "id": "mallory@example.com"}},
    "another run": {"context": {"thread": "t-2"}},
    "no run": {"context": {}},
}


@pytest.mark.parametrize("what", CHANGES)
def test_an_approval_of_something_else_permits_nothing(
    pep: EnforcementPoint, gate: Gate, what: str
) -> None:
    body = deployment(thread="t-1")
    approval = approved(pep, gate, body)
    other = {**copy.deepcopy(body), **CHANGES[what]}
    if what == "another tool":
        other["action"] = {"name": "invoke", "properties": {"q": "shoes"}}
    context = refused(pep, other, approval, "out_of_scope", "request")
    (record,) = LogRecord.objects.filter(kind="proposal.refused")
    assert b"out_of_scope" in bytes(record.leaf)
    denial = build_denial(context)
    assert pep.submit({**other, "denial": denial}).status_code in {201, 202}
    assert pep.reevaluate(body, approval)["decision"] is True


def test_what_is_out_of_scope_and_forbidden_leaves_nothing_to_do(
    pep: EnforcementPoint, gate: Gate
) -> None:
    approval = approved(pep, gate, deployment())
    other = deployment()
    other["resource"]["id"] = "nothing"
    refused(pep, other, approval, "out_of_scope", "none")


def test_an_approval_that_is_not_ours_permits_nothing(
    pep: EnforcementPoint, gate: Gate
) -> None:
    approval = approved(pep, gate, deployment())
    claims = claims_of(approval)
    kind = approvals.APPROVAL_TYPE
    second = approved(pep, gate, deployment("v2"))
    attempts = [
        {**approval, "id": "g-00000000000000000000"},
        {**approval, "id": second["id"]},
        {**approval, "state": second["state"]},
        {**approval, "state": approval["state"][:-4] + "AAAA"},
        {**approval, "state": ""},
        {**approval, "state": tokens.sign_claims(claims)},
        {**approval, "state": tokens.sign_claims({**claims, "aud": "x"}, typ=kind)},
        {**approval, "state": tokens.sign_claims({**claims, "iss": "x"}, typ=kind)},
    ]
    for attempt in attempts:
        refused(pep, deployment(), attempt, "approval_unverifiable", "none")
    logged = LogRecord.objects.filter(kind="proposal.refused")
    assert logged.count() == len(attempts)
    assert pep.reevaluate(deployment(), approval)["decision"] is True


def test_another_agent_cannot_use_it(pep: EnforcementPoint, gate: Gate) -> None:
    approval = approved(pep, gate, deployment())
    robin = connect(factories.agent(gate.owen, "robin"), gate)
    refused(robin, deployment(), approval, "approval_unverifiable", "none")


def test_the_grant_of_a_plain_proposal_is_no_approval(
    pep: EnforcementPoint, caller: Caller, gate: Gate
) -> None:
    task = {"id": caller.propose("deploy").json()["id"]}
    for person in (gate.sue, gate.sam):
        decide(request_of(task), person)
    grant = {"id": Grant.objects.get().pk}
    refused(pep, deployment(), grant, "approval_unverifiable", "none")


def test_after_its_window_an_approval_has_expired(
    pep: EnforcementPoint, gate: Gate
) -> None:
    approval = approved(pep, gate, deployment())
    past = clock.now() - timedelta(seconds=1)
    Grant.objects.update(expires_at=past)
    refused(pep, deployment(), approval, "approval_expired", "request")


@pytest.mark.parametrize(
    ("paused", "reason", "next_action"),
    [(True, "paused", "retry"), (False, "policy_denied", "none")],
)
def test_a_pause_is_waited_for_and_a_stop_is_not(
    pep: EnforcementPoint, gate: Gate, paused: bool, reason: str, next_action: str
) -> None:
    approval = approved(pep, gate, deployment())
    mode = StopMode.PAUSED if paused else StopMode.STOPPED
    stops.create_stop(
        scope=Scope.TOOL, key="deploy", mode=mode, person=gate.sue, reason="odd"
    )
    refused(pep, deployment(), approval, reason, next_action)


def test_a_revoked_approver_revokes_the_approval(
    pep: EnforcementPoint, gate: Gate
) -> None:
    approval = approved(pep, gate, deployment())
    gate.sam.groups.clear()
    refused(pep, deployment(), approval, "approval_expired", "request")


def test_a_policy_that_is_stricter_by_now_asks_again(
    pep: EnforcementPoint, gate: Gate
) -> None:
    approval = approved(pep, gate, deployment())
    document = factories.document_of_tests()
    document["steps"]["escalate"] = [{"role": "supervisor", "required": 3}]
    factories.admitted("sol", Role.SUPERVISOR)
    factories.policy(gate.people, document)
    refused(pep, deployment(), approval, "approval_expired", "request")


def test_a_withdrawn_grant_has_expired(
    pep: EnforcementPoint, caller: Caller, gate: Gate
) -> None:
    approval = approved(pep, gate, deployment())
    task = {"id": Grant.objects.get().proposal_id}
    caller.post(f"/proposals/{task['id']}/withdraw")
    assert pep.poll(task)["task"]["status"] == "approved", "a task settles once"
    refused(pep, deployment(), approval, "approval_expired", "request")


def test_what_a_reviewer_changed_is_approved_as_changed(
    pep: EnforcementPoint, gate: Gate
) -> None:
    """The approval is for the new bytes: those that were asked for stay denied."""
    body = deployment()
    body["resource"] = {"type": "tool", "id": "write"}
    asked = {"to": "a friend", "text": "hello"}
    final = {"to": "a friend", "text": "good morning"}
    body["action"]["properties"] = asked
    body["context"] = {"business_justification": "They asked."}
    task = pep.request(body)
    decide(request_of(task), gate.rita, "modify", args=final)
    result = pep.poll(task)["result"]
    changed_access = result[tasks.APPROVED_ACCESS]
    assert changed_access["action"] == {"name": "invoke", "properties": final}
    assert claims_of(result["approval"])["action"] == changed_access["action"]
    refused(pep, body, result["approval"], "out_of_scope", "request")
    permit = pep.reevaluate(
        {**body, "action": changed_access["action"]}, result["approval"]
    )
    assert permit["decision"] is True
    assert pep.redeem(permit).json()["args"] == final


def test_no_erased_state_permits_anything(pep: EnforcementPoint, gate: Gate) -> None:
    approval = approved(pep, gate, deployment())
    grant = Grant.objects.get()
    thread = Checkpoint.objects.get(proposal=grant.proposal_id).thread
    thread.wrapped_key = None
    thread.save(update_fields=["wrapped_key"])
    refused(pep, deployment(), approval, "approval_unverifiable", "none")
    path = f"{REQUESTS}/{grant.proposal_id}"
    assert pep.call("GET", path).status_code == 410
