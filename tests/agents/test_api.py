from __future__ import annotations

import json
from typing import Any

import pytest

from agents import keys
from agents.models import AgentKey, Checkpoint
from journal.models import LogRecord
from reviews import executions, stops
from reviews.choices import Scope, StopMode
from reviews.models import ApprovalRequest, Execution, Proposal
from tests import factories
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import decide


def code(response: Any) -> str:
    assert response["Content-Type"] == "application/problem+json"
    return str(response.json()["code"])


def test_a_proposal_is_answered_with_its_request(caller: Caller) -> None:
    response = caller.propose()
    body = response.json()
    assert response.status_code == 201
    assert (body["status"], body["tier"], body["risk"]) == (
        "pending",
        "approve",
        "high",
    )
    assert body["request"]["steps"] == [{"role": "reviewer", "required": 1, "given": 0}]
    assert body["action_hash"].startswith("sha256:")


def test_the_same_key_and_body_replays_the_answer(caller: Caller) -> None:
    first = caller.propose(key="one")
    again = caller.propose(key="one")
    assert again.status_code == 200
    assert again["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()
    assert Proposal.objects.count() == 1


def test_the_same_key_with_another_body_is_refused(caller: Caller) -> None:
    caller.propose(key="one")
    response = caller.propose(key="one", amount="41.00")
    assert (response.status_code, code(response)) == (422, "key_reused")


def test_a_proposal_needs_a_key(caller: Caller) -> None:
    response = caller.post("/proposals", {"thread": "t", "tool": "look", "args": {}})
    assert (response.status_code, code(response)) == (400, "key_missing")


@pytest.mark.parametrize("key", ["", "nonsense", "hp_aaaaaaaa_bbbb"])
def test_without_a_good_key_nothing_is_said(gate: Gate, key: str) -> None:
    response = Caller(key, iter(range(9))).get("/whoami")
    assert (response.status_code, code(response)) == (401, "bad_key")


def test_a_revoked_key_ends_at_once(caller: Caller, gate: Gate) -> None:
    assert caller.get("/whoami").json()["agent"] == "riley"
    keys.revoke(key=AgentKey.objects.get(), by=gate.owen)
    assert caller.get("/whoami").status_code == 401


def test_a_key_without_the_scope_may_only_read(gate: Gate) -> None:
    text = keys.issue(agent=gate.agent, by=gate.owen, scopes=(keys.AgentScope.READ,))
    caller = Caller(text, iter(range(9)))
    assert caller.get("/tools").status_code == 200
    assert caller.propose().status_code == 403


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"thread": "t", "tool": "look"}, "args"),
        ({"thread": "t t", "tool": "look", "args": {}}, "thread"),
        ({"thread": "t", "tool": "look", "args": {}, "colour": 1}, "colour"),
        ({"thread": "t", "tool": "look", "args": {}, "uncertain": 2}, "uncertain"),
        ({"thread": "t", "tool": "look", "args": []}, "args"),
    ],
)
def test_a_wrong_field_is_named(caller: Caller, body: Any, path: str) -> None:
    response = caller.post("/proposals", body, **{"Idempotency-Key": "k"})
    assert (response.status_code, code(response)) == (422, "invalid")
    assert any(path in entry["path"] for entry in response.json()["errors"])
    assert not Proposal.objects.exists()


def test_wrong_arguments_are_named(caller: Caller) -> None:
    response = caller.propose(args={"customer": "C-1", "amount": 4, "currency": "USD"})
    assert (response.status_code, code(response)) == (422, "invalid_args")
    assert response.json()["errors"][0]["path"] == "args.amount"


def test_a_precondition_nobody_can_confirm_is_named(caller: Caller) -> None:
    response = caller.propose(preconditions={"moon": "full"})
    assert (response.status_code, code(response)) == (422, "invalid_args")
    assert response.json()["errors"][0]["path"] == "preconditions.moon"


def test_what_is_not_strict_json_is_refused(caller: Caller) -> None:
    raw = b'{"thread": "t", "tool": "look", "args": {"q": "a", "q": "b"}}'
    response = caller.post("/proposals", raw, **{"Idempotency-Key": "k"})
    assert (response.status_code, code(response)) == (400, "invalid_json")


def test_a_refusal_is_a_record_without_the_body(caller: Caller) -> None:
    caller.propose(args={"customer": "C-1", "amount": "a secret", "currency": "USD"})
    record = LogRecord.objects.get(kind="proposal.refused")
    leaf = json.loads(bytes(record.leaf))
    assert leaf["data"]["code"] == "invalid_args"
    assert b"a secret" not in bytes(record.leaf)


def test_arguments_over_64_kib_are_too_large(caller: Caller) -> None:
    response = caller.propose("look", args={"q": "x" * 70_000})
    assert (response.status_code, code(response)) == (413, "too_large")


def test_a_body_over_one_mib_is_too_large(caller: Caller) -> None:
    raw = b'{"args": "' + b"x" * 1_100_000 + b'"}'
    response = caller.post("/proposals", raw, **{"Idempotency-Key": "k"})
    assert (response.status_code, code(response)) == (413, "too_large")


def test_an_unknown_tool_is_blocked_not_refused(caller: Caller) -> None:
    response = caller.propose("wire_money", args={"to": "x"})
    body = response.json()
    assert (response.status_code, body["status"]) == (201, "blocked")
    assert body["policy"]["rules"][0]["id"] == "tool.unknown"


def test_a_stopped_agent_is_refused(caller: Caller, gate: Gate) -> None:
    stops.stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="odd")
    response = caller.propose()
    assert (response.status_code, code(response)) == (403, "agent_stopped")


def test_a_paused_agent_may_still_propose(caller: Caller, gate: Gate) -> None:
    stops.stop(
        scope=Scope.AGENT,
        key="riley",
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="x",
    )
    assert caller.propose().status_code == 201


def test_another_agents_proposal_is_not_there(caller: Caller, gate: Gate) -> None:
    other = factories.propose(factories.agent(gate.owen, "other"))
    response = caller.get(f"/proposals/{other.pk}")
    assert (response.status_code, code(response)) == (404, "not_found")


def test_the_outcome_follows_the_decision(caller: Caller, gate: Gate) -> None:
    body = caller.propose().json()
    decide(ApprovalRequest.objects.get(), gate.rita)
    said = caller.get(f"/proposals/{body['id']}").json()
    assert said["status"] == "granted"
    assert said["decision"]["verdict"] == "approve"
    assert "rita" not in json.dumps(said)
    executions.run(Execution.objects.get().pk)
    said = caller.get(f"/proposals/{body['id']}").json()
    assert said["status"] == "executed"
    assert said["execution"]["result"]["done"]


def test_a_rejection_reaches_the_agent_as_data(caller: Caller, gate: Gate) -> None:
    body = caller.propose().json()
    request = ApprovalRequest.objects.get()
    decide(request, gate.rita, "reject", reason_code="wrong_amount", reason="half it")
    said = caller.get(f"/proposals/{body['id']}").json()
    assert said["status"] == "rejected"
    decision = said["decision"]
    assert (decision["reason_code"], decision["reason"]) == ("wrong_amount", "half it")


def test_a_list_is_filtered_and_paged(caller: Caller) -> None:
    for n in range(3):
        caller.propose("look", thread=f"t-{n}")
    caller.propose("wire_money", args={})
    page = caller.get("/proposals?status=granted&thread=t-1").json()
    assert [item["thread"] for item in page["items"]] == ["t-1"]
    assert caller.get("/proposals?status=nonsense").status_code == 422
    assert caller.get("/proposals?cursor=nonsense").status_code == 422


def test_an_agent_redeems_and_reports(caller: Caller, gate: Gate) -> None:
    caller.propose("deploy")
    request = ApprovalRequest.objects.get()
    decide(request, gate.sue)
    decide(request, gate.sam)
    token = caller.get(f"/proposals/{request.proposal_id}").json()["grant"]["token"]
    taken = caller.post("/grants/redeem", {"token": token}).json()
    assert taken["args"] == {"ref": "v1"}
    again = caller.post("/grants/redeem", {"token": token})
    assert (again.status_code, code(again)) == (409, "grant_spent")
    outcome = {
        "fence": taken["fence"],
        "status": "succeeded",
        "result": {"build": 7},
        "action_hash": taken["action_hash"],
    }
    said = caller.post(f"/executions/{taken['execution']}/outcome", outcome).json()
    assert (said["status"], said["execution"]["result"]) == ("executed", {"build": 7})
    again = caller.post(f"/executions/{taken['execution']}/outcome", outcome)
    assert (again.status_code, again.json()) == (200, said), "its answer was lost"
    other = outcome | {"result": {"build": 8}}
    late = caller.post(f"/executions/{taken['execution']}/outcome", other)
    assert (late.status_code, code(late)) == (409, "stale_fence")


def test_the_checkpoint_comes_back_whole_and_is_stored_sealed(caller: Caller) -> None:
    blob = "c2VjcmV0IHN0YXRl"
    caller.propose(
        checkpoint={
            "summary": "call casey@example.org",
            "state": {"step": 2},
            "blob": blob,
            "resume_at": "execute",
        }
    )
    said = caller.get("/threads/t-1/checkpoint").json()
    assert said["checkpoint"]["blob"] == blob
    assert said["checkpoint"]["state"] == {"step": 2}
    assert said["outcome"]["status"] == "pending"
    row = Checkpoint.objects.get()
    assert b"secret state" not in bytes(row.blob or b"")
    assert "casey" not in row.summary


def test_a_finished_thread_withdraws_what_waits(caller: Caller) -> None:
    proposal = caller.propose().json()["id"]
    done = caller.post("/threads/t-1/finish", {"result": "completed"})
    again = caller.post("/threads/t-1/finish", {"result": "completed"})
    assert (again.status_code, again.json()) == (200, done.json())
    other = caller.post("/threads/t-1/finish", {"result": "failed"})
    assert (other.status_code, code(other)) == (409, "conflict")
    assert done.json()["status"] == "finished"
    assert caller.get(f"/proposals/{proposal}").json()["status"] == "withdrawn"
    assert caller.propose().status_code == 409


def test_a_batch_is_answered_item_by_item(caller: Caller) -> None:
    item = {"thread": "t", "tool": "look", "args": {"q": "a"}, "idempotency_key": "b1"}
    wrong = {**item, "args": {"z": 1}, "idempotency_key": "b2"}
    items = caller.post("/proposals/batch", {"items": [item, wrong, item]}).json()
    assert [entry["status"] for entry in items["items"]] == [201, 422, 200]


def test_too_many_proposals_in_a_minute_wait(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.HOLDPOINT = settings.HOLDPOINT.model_copy(
        update={"agent_rate_per_minute": 2}
    )
    for _ in range(2):
        assert caller.propose("look").status_code == 201
    response = caller.propose("look")
    assert (response.status_code, code(response)) == (429, "too_many")
    assert int(response["Retry-After"]) > 0


def test_tools_name_their_schemas(caller: Caller) -> None:
    tools = {tool["name"]: tool for tool in caller.get("/tools").json()}
    assert tools["pay"]["schema"]["required"] == ["customer", "amount", "currency"]
    assert "wire_money" not in tools


@pytest.mark.parametrize("path", ["/requests", "/requests/r-1"])
def test_an_agents_key_opens_no_route_of_people(caller: Caller, path: str) -> None:
    response = caller.get(path)
    assert (response.status_code, code(response)) == (403, "not_a_person")
    decide_ = caller.post("/requests/r-1/decide", {"version": 1})
    assert decide_.status_code == 403


def test_the_schema_of_the_api_is_openapi_3_1(caller: Caller) -> None:
    schema = caller.get("/openapi.json").json()
    assert schema["openapi"].startswith("3.1")
    assert "/api/v1/proposals" in schema["paths"]


def test_who_waits_for_a_replay_hears_what_became_of_it(
    caller: Caller, gate: Gate
) -> None:
    """Its connection was cut while it waited, and it asks again under the same key."""
    first = caller.propose(key="again")
    decide(ApprovalRequest.objects.get(), gate.rita, "reject", reason_code="unsafe")
    replayed = caller.propose(key="again")
    waited = caller.propose(key="again", wait=30)
    assert replayed.json() == first.json()
    assert waited["Idempotent-Replayed"] == "true"
    assert (first.json()["status"], waited.json()["status"]) == ("pending", "rejected")
    assert "Holdpoint-Wait" not in waited


@pytest.mark.parametrize(("most", "status"), [(12, 422), (3, 422), (20, 201)])
def test_the_policy_says_how_much_evidence_a_proposal_may_have(
    caller: Caller, gate: Gate, most: int, status: int
) -> None:
    factories.policy(
        gate.people, factories.document_of_tests() | {"evidence_items": most}
    )
    evidence = [{"kind": "note", "text": str(number)} for number in range(13)]
    response = caller.propose(evidence=evidence)
    assert response.status_code == status, response.content
    if status == 422:
        (error,) = response.json()["errors"]
        assert error == {
            "path": "evidence",
            "message": f"at most {most} items: 13 were given",
        }
