from __future__ import annotations

import json
import random
import uuid
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from agents import keys, registry
from agents.models import AgentKey, Checkpoint, IdempotencyKey, Thread
from agents.registry import AgentChange
from journal import ids
from journal.models import LogRecord
from reviews import redaction
from reviews.choices import Scope, StopMode
from reviews.executions import run
from reviews.models import ApprovalRequest, Execution, Proposal
from reviews.stops import stops
from tests import factories, worlds
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import decide, proposal_body, propose
from tests.reviews.outbound.test_trace_context import GIVEN


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


def test_a_proposal_belongs_to_the_trace_of_its_field_or_its_header(
    caller: Caller,
) -> None:
    other = GIVEN.replace("00f0", "11f0")
    body = proposal_body("pay").model_dump(mode="json", exclude_unset=True)
    sent = [
        ({**body, "traceparent": GIVEN}, other, GIVEN),
        (body, GIVEN, GIVEN),
        (body, "00-nonsense", ""),
        (body, "", ""),
    ]
    for number, (said, header, kept) in enumerate(sent):
        named = {**said, "thread": f"trace-{number}"}
        heads = {"Idempotency-Key": f"trace-{number}", "traceparent": header}
        answer = caller.post("/proposals", named, **heads)
        proposal = Proposal.objects.get(pk=answer.json()["id"])
        assert (answer.status_code, proposal.traceparent) == (201, kept)
    # A process that repeats the call after a crash is in another span.
    again = {**sent[0][0], "thread": "trace-0", "traceparent": other}
    answer = caller.post("/proposals", again, **{"Idempotency-Key": "trace-0"})
    assert answer.status_code == 200
    answer = caller.post(
        "/proposals", {**body, "traceparent": "00-x"}, **{"Idempotency-Key": "other"}
    )
    (fault,) = answer.json()["errors"]
    assert answer.status_code == 422
    assert fault["path"].endswith("traceparent")
    assert "must be a W3C traceparent" in fault["message"]


def test_a_proposal_needs_a_key(caller: Caller) -> None:
    response = caller.post("/proposals", {"thread": "t", "tool": "look", "args": {}})
    assert (response.status_code, code(response)) == (400, "key_missing")


@pytest.mark.parametrize("key", ["", "nonsense", "cs_aaaaaaaa_bbbb"])
def test_without_a_good_key_nothing_is_said(gate: Gate, key: str) -> None:
    response = Caller(key, iter(range(9))).get("/whoami")
    assert (response.status_code, code(response)) == (401, "bad_key")


def test_an_agent_reads_what_is_left_of_its_limits(caller: Caller, gate: Gate) -> None:
    identity = caller.get("/whoami").json()
    assert identity["daily_proposals"] is identity["daily_money"] is None
    change = AgentChange(daily_proposals=2, daily_money={"USD": "100.00"})
    registry.change_agent(agent=gate.agent, change=change, by=gate.adam)
    gate.agent.refresh_from_db()
    propose(gate.agent, amount="60.00")
    identity = caller.get("/whoami").json()
    assert identity["daily_proposals"] == {"limit": 2, "left": 1}
    assert identity["daily_money"] == [
        {"currency": "USD", "limit": "100.00", "left": "40.00"}
    ]


def test_a_revoked_key_ends_at_once(caller: Caller, gate: Gate) -> None:
    assert caller.get("/whoami").json()["agent"] == "riley"
    keys.revoke_key(key=AgentKey.objects.get(), by=gate.owen)
    assert caller.get("/whoami").status_code == 401


def test_a_key_without_the_scope_may_only_read(gate: Gate) -> None:
    text = keys.issue_key(
        agent=gate.agent, by=gate.owen, scopes=(keys.AgentScope.READ,)
    )
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


STRINGS: list[tuple[str, Any]] = [
    ("uncertain", "0"),
    ("uncertain", "true"),
    ("uncertain", "0.5"),
    ("expires_in", "600"),
    ("expires_in", 600.0),
    ("rationale", 5),
    ("evidence", {"kind": "note", "text": "a"}),
    ("alternatives", "none"),
    ("on_behalf_of.chain", "rita"),
]


@pytest.mark.parametrize(("path", "value"), STRINGS)
def test_a_text_is_no_number_no_boolean_and_no_list(
    caller: Caller, path: str, value: Any
) -> None:
    body: dict[str, Any] = {"thread": "t", "tool": "look", "args": {"q": "a"}}
    outer, _, inner = path.partition(".")
    body[outer] = {"kind": "user", inner: value} if inner else value
    response = caller.post("/proposals", body, **{"Idempotency-Key": "k"})
    assert (response.status_code, code(response)) == (422, "invalid")
    assert any(path in entry["path"] for entry in response.json()["errors"])
    items = {"items": [{**body, "idempotency_key": "b"}]}
    item = caller.post("/proposals/batch", items).json()["items"][0]
    assert item["status"] == 422
    assert not Proposal.objects.exists()


@pytest.mark.parametrize("value", [0, 1, 0.5, True, False])
def test_a_number_and_a_boolean_are_uncertainties(caller: Caller, value: Any) -> None:
    assert caller.propose("look", uncertain=value).status_code == 201


NAMES = ["parent", "group", "source", "checkpoint.resume_at", "Idempotency-Key"]
PRIVATE = [
    ("e-mail", "ann.walker@mail.example"),
    ("phone", "775-190-5257"),
    ("card", "4111 1111 1111 1111"),
    ("national id", "123-45-6789"),
    ("secret", "sk-abcdefghijklmnopqrstuv"),
]


@pytest.mark.parametrize("path", NAMES)
@pytest.mark.parametrize(("kind", "value"), PRIVATE)
def test_a_name_that_holds_a_private_value_is_refused_and_not_stored(
    caller: Caller, path: str, kind: str, value: str
) -> None:
    said = f"for {value}"
    body: dict[str, Any] = {"thread": "t", "tool": "look", "args": {"q": "a"}}
    key = "k"
    if path == "Idempotency-Key":
        key = said
    elif path == "checkpoint.resume_at":
        body["checkpoint"] = {"resume_at": said}
    else:
        body[path] = said
    response = caller.post("/proposals", body, **{"Idempotency-Key": key})
    assert (response.status_code, code(response)) == (422, "invalid")
    [error] = response.json()["errors"]
    assert error["path"] == path
    assert kind in error["message"]
    assert not Proposal.objects.exists()
    assert not IdempotencyKey.objects.exists()
    assert value.encode() not in logged()


@pytest.mark.parametrize("thread", ["123-45-6789", "t:775-190-5257", "sk-" + "ab" * 10])
def test_a_thread_named_by_a_private_value_is_refused(
    caller: Caller, thread: str
) -> None:
    response = caller.propose("look", thread=thread)
    assert (response.status_code, code(response)) == (422, "invalid")
    assert response.json()["errors"][0]["path"] == "thread"
    assert not Thread.objects.exists()


def test_a_revision_that_resumes_at_a_private_value_is_refused(caller: Caller) -> None:
    proposal = caller.propose().json()["id"]
    body = {"args": {}, "checkpoint": {"resume_at": "mail ann@mail.example"}}
    path = f"/proposals/{proposal}/revisions"
    response = caller.post(path, body, **{"Idempotency-Key": "k-r"})
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == "checkpoint.resume_at"


ODD_TOOLS = [
    "ann@mail.example",
    "wire money",
    "wire\nmoney",
    "123-45-6789",
    "AKIAIOSFODNN7EXAMPLE",
    "<b>",
    "\u0430ction",
]


@pytest.mark.parametrize("tool", ODD_TOOLS)
def test_an_unknown_tool_is_logged_only_under_a_name_that_a_tool_may_have(
    caller: Caller, tool: str
) -> None:
    response = caller.propose(tool, args={"to": "x"})
    assert (response.status_code, code(response)) == (422, "invalid")
    assert response.json()["errors"][0]["path"] == "tool"
    assert tool.encode() not in logged()


def test_a_key_that_is_stored_already_still_gets_its_answer(
    caller: Caller, gate: Gate
) -> None:
    """A key that was used before a rule saw what is private in it."""
    first = caller.propose("look", key="plain").json()
    stored = IdempotencyKey.objects.get()
    worlds.rewrite(IdempotencyKey, stored.pk, key="ann@mail.example")
    again = caller.propose("look", key="ann@mail.example")
    assert (again.status_code, again.json()) == (200, first)


@pytest.mark.parametrize("field", ["parent", "supersedes"])
@pytest.mark.parametrize("id_", ["p-egnad11394z8y6ecsfan", "p-006902390xk1b8nmspey"])
def test_an_id_of_the_gate_is_never_taken_for_a_private_value(
    caller: Caller, field: str, id_: str
) -> None:
    assert redaction.list_kinds(id_)
    named: dict[str, Any] = {field: id_}
    response = caller.propose(**named)
    assert response.status_code != 422
    assert b"must not contain" not in response.content


def test_ordinary_names_and_keys_hold_nothing_private() -> None:
    """The same names each time: of random URL-safe texts some 1 in 20,000 begins like
    a provider's key, or has the letters of a postcode."""
    dice = random.Random(7)
    names = [str(uuid.UUID(int=dice.getrandbits(128), version=4)) for _ in range(3000)]
    names += [ids.derive_id("p", b"names", n) for n in range(3000)]
    names += [
        urlsafe_b64encode(dice.randbytes(24)).decode().rstrip("=") for _ in range(3000)
    ]
    names += [dice.randbytes(20).hex() for _ in range(3000)]
    names += [f"ticket-{n}" for n in range(70_000, 73_000)]
    names += [f"1732440{n:03}.{n:06}" for n in range(1000)]
    names += ["case-2026-11-24", "order/78213", "answer the customer", "message m-17"]
    assert [name for name in names if redaction.list_kinds(name)] == []


def logged() -> bytes:
    leaves = LogRecord.objects.values_list("leaf", flat=True)
    return b"".join(map(bytes, leaves))


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
    stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="odd")
    response = caller.propose()
    assert (response.status_code, code(response)) == (403, "agent_stopped")


def test_a_paused_agent_may_still_propose(caller: Caller, gate: Gate) -> None:
    stops.create_stop(
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
    run.run_execution(Execution.objects.get().pk)
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
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
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
    assert "Counterseal-Wait" not in waited


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
