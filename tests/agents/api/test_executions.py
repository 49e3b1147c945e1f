"""What an agent hears when what it was granted may no longer be done, and when it asks
again because it heard nothing."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

import counterseal_client
from agents import keys
from counterseal_client import Backoff
from journal.models import LogRecord
from policies.models import Person
from reviews.choices import Scope
from reviews.executions import run
from reviews.models import ApprovalRequest, Execution
from reviews.stops import stops
from tests import factories, worlds
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import decide
from tests.reviews.executions.attempts import ends
from tests.stack import START_S, Stack, wait_until

MOVED = {"kind": "callable", "path": "tests.worlds.plain"}


def redeem(caller: Caller, token: str, key: str | None = None) -> Any:
    """One call, with this key or none."""
    headers = {} if key is None else {"Idempotency-Key": key}
    return caller.post("/grants/redeem", {"token": token}, **headers)


def granted(caller: Caller, gate: Gate) -> tuple[str, str]:
    """The agent's proposal, and the token that it is to redeem."""
    caller.propose("deploy")
    request = ApprovalRequest.objects.get()
    decide(request, gate.sue)
    decide(request, gate.sam)
    path = f"/proposals/{request.proposal_id}"
    return path, caller.get(path).json()["grant"]["token"]


def policy(gate: Gate, tool: str, **parts: Any) -> None:
    document = factories.document_of_tests()
    document["tools"][tool].update(parts)
    factories.policy(gate.people, document)


def test_a_tool_that_acts_elsewhere_now_is_another_one(
    caller: Caller, gate: Gate
) -> None:
    path, token = granted(caller, gate)
    policy(gate, "deploy", audience="https://b.example")
    for _ in range(2):
        answer = caller.post("/grants/redeem", {"token": token})
        assert (answer.status_code, answer.json()["code"]) == (409, "tool_changed")
        assert answer.json()["detail"] == "The tool now acts elsewhere."
    said = caller.get(path).json()
    assert (said["status"], said["grant"]) == ("refused", None)
    assert said["execution"]["status"] == "refused"
    assert said["execution"]["code"] == "tool_changed"
    assert said["execution"]["detail"] == "The tool now acts elsewhere."


def test_so_it_is_told_of_what_the_gate_performs(caller: Caller, gate: Gate) -> None:
    caller.propose("pay")
    request = ApprovalRequest.objects.get()
    decide(request, gate.rita)
    policy(gate, "pay", executor=MOVED)
    run.run_execution(Execution.objects.get().pk)
    said = caller.get(f"/proposals/{request.proposal_id}").json()
    assert (said["status"], said["execution"]["code"]) == ("refused", "tool_changed")
    assert worlds.effects() == []


@pytest.mark.parametrize("reason", ["precondition", "approver_revoked"])
def test_the_check_that_failed_has_a_name(
    caller: Caller, gate: Gate, reason: str
) -> None:
    reader = {"kind": "callable", "path": "tests.worlds.read"}
    policy(gate, "deploy", reader=reader, preconditions=["row_version"])
    path, token = granted(caller, gate)
    if reason == "precondition":
        worlds.WORLD["preconditions"] = {"row_version": 2}
    else:
        Person.objects.filter(pk=gate.sam.pk).update(is_active=False)
    answer = caller.post("/grants/redeem", {"token": token})
    assert (answer.status_code, answer.json()["code"]) == (409, "precondition")
    assert answer.json()["reason"] == reason
    assert caller.get(path).json()["execution"]["code"] == reason


def test_a_closed_window_is_told_as_such(caller: Caller, gate: Gate) -> None:
    policy(gate, "deploy", window="60s")
    path, token = granted(caller, gate)
    execution = Execution.objects.select_related("grant").get()
    past = execution.grant.issued_at
    type(execution.grant).objects.update(expires_at=past)
    token = caller.get(path).json()["grant"]["token"]
    answer = caller.post("/grants/redeem", {"token": token})
    assert (answer.status_code, answer.json()["code"]) == (410, "grant_expired")
    assert caller.get(path).json()["execution"]["code"] == "window_closed"


def test_the_same_key_gets_the_same_answer(caller: Caller, gate: Gate) -> None:
    path, token = granted(caller, gate)
    first, again = (redeem(caller, token, "mine") for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert "Idempotent-Replayed" not in first
    assert again["Idempotent-Replayed"] == "true"
    assert caller.get(path).json()["status"] == "executing"


def test_who_gives_no_key_or_another_is_too_late(caller: Caller, gate: Gate) -> None:
    _, token = granted(caller, gate)
    assert redeem(caller, token, "mine").status_code == 200
    for key in (None, "another", ""):
        answer = redeem(caller, token, key)
        assert (answer.status_code, answer.json()["code"]) == (409, "grant_spent")


def test_a_key_has_a_longest_length(caller: Caller, gate: Gate) -> None:
    _, token = granted(caller, gate)
    answer = redeem(caller, token, "k" * 256)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == "Idempotency-Key"
    assert redeem(caller, token, "k" * 255).status_code == 200


def test_a_repeated_call_under_a_stop_is_a_refused_call(
    caller: Caller, gate: Gate
) -> None:
    _, token = granted(caller, gate)
    redeem(caller, token, "mine")
    stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="halt")
    answer = redeem(caller, token, "mine")
    assert (answer.status_code, answer.json()["code"]) == (403, "agent_stopped")
    assert LogRecord.objects.filter(kind="proposal.refused").count() == 1


def test_who_died_with_a_grant_finds_it_again_when_the_lease_is_over(
    caller: Caller, gate: Gate
) -> None:
    """It kept nothing but its thread: the token, too, comes from the gate."""
    checkpoint = {"summary": "deploys", "resume_at": "report"}
    caller.propose("deploy", checkpoint=checkpoint)
    request = ApprovalRequest.objects.get()
    for person in (gate.sue, gate.sam):
        decide(request, person)
    path = f"/proposals/{request.proposal_id}"
    first = caller.get(path).json()
    redeem(caller, first["grant"]["token"])
    held = caller.get(path).json()
    assert (held["grant"], held["outcome"]) == (None, None)
    factories.lapsed(Execution.objects.get())
    found = caller.get("/threads/t-1/checkpoint").json()
    offered = found["outcome"]
    assert (offered["status"], found["acknowledged"]) == ("executing", False)
    assert offered["outcome"] not in {None, first["outcome"]}
    again = redeem(caller, offered["grant"]["token"])
    assert (again.status_code, again.json()["fence"]) == (200, 2)
    assert caller.get(path).json()["grant"] is None


@pytest.mark.parametrize("over", ["window", "opaque"])
def test_but_not_what_may_not_be_begun_again(
    caller: Caller, gate: Gate, over: str
) -> None:
    if over == "opaque":
        policy(gate, "deploy", execution_class="opaque")
    path, token = granted(caller, gate)
    redeem(caller, token)
    execution = Execution.objects.get()
    factories.lapsed(execution)
    if over == "window":
        ends(execution, "window")
    assert caller.get(path).json()["grant"] is None


def next_process(live: Stack) -> None:
    """Its connection is lost before a killed process is gone."""
    web = live.web
    assert web is not None
    wait_until(lambda: web.exit_code() is not None, START_S)
    live.start_web()


@pytest.mark.servers
@pytest.mark.parametrize("point", ["redeem_taken", "redeemed"])
def test_an_answer_lost_with_its_process_is_given_by_the_next(
    live: Stack, gate: Gate, point: str
) -> None:
    """The client's own retries, while the web process is killed and started again."""
    request = factories.propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    execution = Execution.objects.get()
    flag = live.arm(point, execution.pk)
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    more: dict[str, Any] = {
        "backoff": Backoff(attempts=3, first=0.1),
        "sleep": lambda _: next_process(live),
        "http": httpx2.Client(trust_env=False),
    }
    with counterseal_client.Gate(live.base_url, key, **more) as riley:
        grant = riley.get(execution.proposal_id).grant
        assert grant is not None
        taken = riley.redeem(grant.token)
        assert not flag.exists(), "nobody was killed"
        execution.refresh_from_db()
        assert (taken.fence, execution.fence, execution.attempts) == (1, 1, 1)
        kinds = ["execution.claimed", "execution.reclaimed"]
        assert LogRecord.objects.filter(kind__in=kinds).count() == 1
        said = riley.report(taken, "succeeded", result={"ref": "v1"})
    assert said.status == "executed"
