from __future__ import annotations

from typing import Any

import pytest

from agents import representation
from agents.adapters.authzen import tasks
from agents.models import Checkpoint, Thread
from journal.models import LogRecord
from reviews import deadlines
from reviews.choices import Scope
from reviews.executions import run
from reviews.models import ApprovalRequest, Execution, Proposal
from reviews.stops import stops
from tests import factories, worlds
from tests.agents.adapters.authzen.conftest import (
    REQUESTS,
    EnforcementPoint,
    access,
    approve,
    connect,
    deployment,
    payment,
    request_of,
)
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import decide

URN = "urn:openid:authzen:access-request:error:"


def test_every_status_of_a_proposal_has_one_of_a_task() -> None:
    assert set(tasks.TASK_STATUSES) == set(representation.STATUSES)
    assert set(tasks.TASK_STATUSES.values()) == set(tasks.TITLES)


def test_an_access_request_is_a_proposal_with_its_records(
    pep: EnforcementPoint, settings: Any
) -> None:
    task = pep.request(payment(thread="t-7", business_justification="It is cracked."))
    proposal = Proposal.objects.get()
    assert (task["id"], task["status"]) == (proposal.pk, "pending")
    assert (proposal.agent, proposal.thread) == ("riley", "t-7")
    assert proposal.source == "authzen"
    assert proposal.current.args == payment()["action"]["properties"]
    assert proposal.current.rationale == "It is cracked."
    kinds = LogRecord.objects.order_by("pk").values_list("kind", flat=True)
    assert {"proposal.submitted", "request.opened"} <= set(kinds)
    base = settings.COUNTERSEAL.base_url
    endpoint = f"{base}{REQUESTS}/{proposal.pk}"
    assert task["status_endpoint"] == endpoint
    assert task["links"] == {
        "cancel": f"{endpoint}/cancel",
        "review": f"{base}/requests/{proposal.request.pk}/",
    }
    assert task["progress"] == {
        "current_step": 1,
        "total_steps": 1,
        "step_name": "reviewer",
    }


def test_without_a_thread_each_request_is_a_run_of_its_own(
    pep: EnforcementPoint,
) -> None:
    for _ in range(2):
        pep.request(payment())
    names = set(Thread.objects.values_list("name", flat=True))
    assert len(names) == 2
    evaluations = Checkpoint.objects.values_list("state__evaluation_id", flat=True)
    assert set(evaluations) == names


def test_the_subject_is_stored_redacted_or_encrypted_only(
    pep: EnforcementPoint,
) -> None:
    pep.request(payment())
    assert factories.count_of("alice@example.com") == 0


def test_an_emergency_comes_first_and_changes_no_authority(
    pep: EnforcementPoint,
) -> None:
    plain = request_of(pep.request(payment()))
    urgent = request_of(
        pep.request(payment("41.00"), requested_access={"emergency": True})
    )
    assert urgent.proposal.priority == "critical"
    assert urgent.rank < plain.rank
    assert (urgent.tier, urgent.sealed.steps) == (plain.tier, plain.sealed.steps)


def test_the_same_key_and_body_get_the_same_task(
    pep: EnforcementPoint, gate: Gate
) -> None:
    sent = pep.submission(payment())
    first = pep.submit(sent, "arq")
    assert (first.status_code, "Idempotent-Replayed" in first) == (202, False)
    decide(request_of(first.json()["task"]), gate.rita, "reject")
    again = pep.submit(sent, "arq")
    assert (again.status_code, again["Idempotent-Replayed"]) == (201, "true")
    assert again.json()["task"]["id"] == first.json()["task"]["id"]
    assert again.json()["task"]["status"] == "denied"
    assert Proposal.objects.count() == 1


def test_the_same_key_with_another_body_is_a_conflict_here_and_422_there(
    pep: EnforcementPoint, caller: Caller
) -> None:
    pep.submit(pep.submission(payment()), "arq")
    answer = pep.submit(pep.submission(payment("41.00")), "arq")
    assert (answer.status_code, answer.json()["status"]) == (409, 409)
    assert answer.json()["type"] == f"{URN}duplicate_request"
    assert answer.json()["code"] == "key_reused"
    there = caller.propose(key="arq")
    assert (there.status_code, there.json()["code"]) == (422, "key_reused")
    assert there.json()["type"] == "about:blank"
    assert Proposal.objects.count() == 1


def test_without_a_key_the_denial_is_answered_once(pep: EnforcementPoint) -> None:
    sent = pep.submission(payment())
    first, again = (pep.call("POST", REQUESTS, sent) for _ in range(2))
    assert first.status_code == again.status_code == 202
    assert first.json()["task"]["id"] == again.json()["task"]["id"]
    del sent["denial"]["evaluation_id"]
    answer = pep.call("POST", REQUESTS, sent)
    assert (answer.status_code, answer.json()["code"]) == (400, "key_missing")


def test_a_rationale_that_the_tool_requires_is_asked_for_by_its_name(
    pep: EnforcementPoint,
) -> None:
    body = access("write", {"to": "a friend", "text": "hello"})
    answer = pep.submit(pep.submission(body))
    assert (answer.status_code, answer.json()["code"]) == (400, "rationale")
    (fault,) = answer.json()["errors"]
    assert fault["path"] == "context.business_justification"
    body["context"]["business_justification"] = "They asked."
    assert pep.submit(pep.submission(body)).status_code == 202


# The states.
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("reject", "denied"),
        ("expire", "expired"),
        ("withdraw", "cancelled"),
        ("supersede", "cancelled"),
    ],
)
def test_a_request_that_ends_without_approval(
    pep: EnforcementPoint, caller: Caller, gate: Gate, end: str, status: str
) -> None:
    task = pep.request(payment())
    request = request_of(task)
    if end == "reject":
        decide(request, gate.rita, "reject", reason="Not this customer.")
    elif end == "expire":
        factories.overdue(request)
        deadlines.expire_chunk()
    elif end == "withdraw":
        caller.post(f"/proposals/{task['id']}/withdraw")
    else:
        caller.propose(supersedes=task["id"])
    found = pep.poll(task)
    assert found["task"]["status"] == status
    assert "result" not in found
    assert {"links", "progress", "expires_at"}.isdisjoint(found["task"])
    told = found["task"]["display"].get("description")
    assert told == ("Not this customer." if end == "reject" else None)


def test_what_the_gate_performs_is_no_permit_for_the_caller(
    pep: EnforcementPoint, gate: Gate
) -> None:
    task = pep.request(payment())
    decide(request_of(task), gate.rita)
    result = pep.poll(task)["result"]
    assert result["mode"] == tasks.PERFORMED_MODE
    assert result["execution"]["status"] == "queued"
    run.run_execution(Execution.objects.get().pk)
    result = pep.poll(task)["result"]
    assert result["execution"]["status"] == "succeeded"
    assert len(worlds.effects()) == 1
    grant = Execution.objects.get().grant_id
    again = pep.reevaluate(payment(), {"id": grant})
    assert again["decision"] is False
    assert again["context"]["reason"] == "performed_by_gate"
    assert again["context"]["next_action"] == "none"


def test_an_action_that_needs_nobody_is_approved_at_once(
    pep: EnforcementPoint,
) -> None:
    answer = pep.submit(pep.submission(access("look", {"q": "shoes"})))
    assert answer.status_code == 201
    assert answer.json()["task"]["status"] == "approved"
    assert answer.json()["result"]["mode"] == tasks.PERFORMED_MODE
    assert not ApprovalRequest.objects.exists()


def test_the_progress_counts_the_steps(pep: EnforcementPoint, gate: Gate) -> None:
    task = pep.request(deployment())
    decide(request_of(task), gate.sue)
    found = pep.poll(task)["task"]
    assert found["progress"]["step_name"] == "supervisor"
    assert found["status"] == "pending"
    answer = pep.call("GET", f"{REQUESTS}/{task['id']}")
    assert answer["Retry-After"] == "5"


# Cancel.
def test_a_pending_task_is_cancelled_once(pep: EnforcementPoint) -> None:
    task = pep.request(payment())
    path = f"{REQUESTS}/{task['id']}/cancel"
    answer = pep.call("POST", path, b"")
    assert answer.status_code == 200
    assert answer.json()["task"]["status"] == "cancelled"
    assert request_of(task).status == "withdrawn"
    again = pep.call("POST", path)
    assert again.status_code == 409
    assert again.json()["type"] == f"{URN}invalid_task_state"


def test_an_approved_task_is_not_cancelled(pep: EnforcementPoint, gate: Gate) -> None:
    task = pep.request(deployment())
    approve(gate, task)
    answer = pep.call("POST", f"{REQUESTS}/{task['id']}/cancel")
    assert answer.status_code == 409
    assert Execution.objects.get().status == "queued"


# Whose tasks they are.
def test_the_task_of_another_agent_is_unknown(
    pep: EnforcementPoint, gate: Gate
) -> None:
    task = pep.request(payment())
    robin = connect(factories.agent(gate.owen, "robin"), gate)
    for method, tail in (("GET", ""), ("POST", "/cancel")):
        answer = robin.call(method, f"{REQUESTS}/{task['id']}{tail}")
        assert (answer.status_code, answer.json()["type"]) == (
            404,
            f"{URN}unknown_task",
        )
    assert request_of(task).status == "pending"


def test_another_process_of_the_agent_takes_the_task_over(
    pep: EnforcementPoint, gate: Gate
) -> None:
    task = pep.request(payment())
    assert connect(gate.agent, gate).poll(task)["task"]["id"] == task["id"]


def test_a_proposal_is_no_task(pep: EnforcementPoint, caller: Caller) -> None:
    proposal = caller.propose().json()["id"]
    assert pep.call("GET", f"{REQUESTS}/{proposal}").status_code == 404


def test_an_agent_cannot_pass_a_proposal_off_as_an_access_request(
    caller: Caller,
) -> None:
    answer = caller.propose(source="main")
    assert answer.status_code == 201
    body = {"thread": "t-1", "tool": "pay", "args": {}, "source": "authzen"}
    answer = caller.post("/proposals", body, **{"Idempotency-Key": "k"})
    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert fault["path"] == "source"
    assert "reserved" in fault["message"]


def test_a_task_is_expired_once_its_state_is_erased(
    pep: EnforcementPoint, caller: Caller
) -> None:
    task = pep.request(payment(thread="t-7"))
    caller.post("/threads/t-7/finish", {"result": "completed"})
    assert pep.poll(task)["task"]["status"] == "cancelled"
    Thread.objects.filter(name="t-7").update(wrapped_key=None)
    answer = pep.call("GET", f"{REQUESTS}/{task['id']}")
    assert (answer.status_code, answer.json()["type"]) == (410, f"{URN}task_expired")


# What the gate refuses.
def test_a_stopped_agent_requests_nothing(pep: EnforcementPoint, gate: Gate) -> None:
    sent = pep.submission(payment())
    stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="odd")
    answer = pep.submit(sent)
    assert (answer.status_code, answer.json()["code"]) == (403, "agent_stopped")
    refused = LogRecord.objects.filter(kind="proposal.refused").get()
    assert b"/access/v1/requests" in bytes(refused.leaf)


def test_a_policy_that_blocks_it_by_now_denies_the_task(
    pep: EnforcementPoint, gate: Gate
) -> None:
    sent = pep.submission(payment())
    document = factories.document_of_tests()
    document["rules"].append(
        {
            "id": "pay.never",
            "text": "Payments are closed today.",
            "tools": ["pay"],
            "when": "true",
            "then": {"block": True},
        }
    )
    factories.policy(gate.people, document)
    answer = pep.submit(sent)
    assert answer.status_code == 201
    assert answer.json()["task"]["status"] == "denied"
    assert answer.json()["task"]["display"]["description"]


def test_the_limits_of_proposals_hold(pep: EnforcementPoint, settings: Any) -> None:
    changed = settings.COUNTERSEAL.model_copy(update={"agent_pending_cap": 1})
    settings.COUNTERSEAL = changed
    pep.request(payment())
    answer = pep.call("POST", "/access/v1/evaluation", payment())
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many")
    assert answer["Retry-After"] == "60"


def test_a_request_that_the_policy_denied_is_judged_again_under_its_key(
    pep: EnforcementPoint, gate: Gate
) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    submission = pep.submission(access("send_letter", {"to": "a friend"}))
    factories.policy(gate.people)
    denied = pep.submit(submission, "arq-1")
    assert (denied.status_code, denied.json()["task"]["status"]) == (201, "denied")
    factories.hold_unknown_tools(gate.people, "mail")
    answer = pep.submit(submission, "arq-1")
    assert (answer.status_code, answer.json()["task"]["status"]) == (202, "pending")
    assert "Idempotent-Replayed" not in answer
