"""A server of the official package behind the proxy over stdio, called by the official
client, with a real gate."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import wait
from typing import Any

import httpx2
import pytest
from mcp import MCPError

from agents.models import Agent
from counterseal_client.grants import InvalidGrant, verify
from reviews import deadlines
from reviews.decisions import returns
from reviews.executions import run
from reviews.models import ApprovalRequest, Execution, Proposal, Question
from tests import factories, worlds
from tests.client.mcp.conftest import (
    HERE,
    HOSTILE,
    POLICY,
    PROXY,
    PYTHON_NOTES,
    PYTHON_PROXY,
    Bench,
    connect,
    text_of,
)
from tests.stack import PATIENCE_S, wait_until

pytestmark = pytest.mark.servers
NOTE = {"to": "ann", "text": "Your parcel is on its way."}
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@ERAS
def test_an_approved_call_reaches_the_server_once(bench: Bench, mode: str) -> None:
    with connect(bench.proxy(), mode=mode) as caller:
        called = caller.begin("send_note", **NOTE)
        bench.await_request()
        assert not bench.notes
        bench.decide()
        result = called.result(PATIENCE_S)
    assert not result.is_error
    assert result.structured_content == {"sent": "ann"}
    execution = Execution.objects.get()
    assert bench.notes == [{**NOTE, "key": execution.idempotency_key}]
    recorded = bench.read_execution().result
    assert recorded is not None
    assert recorded["structuredContent"] == {"sent": "ann"}
    assert bench.read_proposal().status == "executed"


def test_a_reviewer_edits_the_call(bench: Bench) -> None:
    with connect(bench.proxy()) as caller:
        called = caller.begin("send_note", **NOTE)
        bench.decide("modify", args={**NOTE, "to": "bob"})
        result = called.result(PATIENCE_S)
    assert [note["to"] for note in bench.notes] == ["bob"]
    assert result.structured_content == {"sent": "bob"}
    assert text_of(result).startswith("A reviewer changed this call.")


def test_the_server_can_verify_the_grant_of_the_call(bench: Bench) -> None:
    with connect(bench.proxy()) as caller:
        called = caller.begin("send_note", **NOTE)
        bench.decide("modify", args={**NOTE, "to": "bob"})
        called.result(PATIENCE_S)
    token = (bench.folder / "notes.grant").read_text()
    url = f"{bench.url}/.well-known/jwks.json"
    jwks = httpx2.get(url, trust_env=False).json()
    facts: Any = {
        "audience": "tool:send_note",
        "tool": "send_note",
        "preconditions": {},
    }
    grant = verify(token, jwks, args={**NOTE, "to": "bob"}, **facts)
    assert grant.idempotency_key == bench.notes[0]["key"]
    with pytest.raises(InvalidGrant, match="other_action"):
        verify(token, jwks, args=NOTE, **facts)


def test_a_rejection_reaches_the_model_with_its_reason(bench: Bench) -> None:
    with connect(bench.proxy()) as caller:
        called = caller.begin("send_note", **NOTE)
        bench.decide("reject", reason_code="wrong_target", reason="Ann moved.")
        result = called.result(PATIENCE_S)
    assert result.is_error
    assert "wrong target" in text_of(result)
    assert "Ann moved." in text_of(result)
    assert not bench.notes


def test_a_request_that_nobody_decides_expires(bench: Bench) -> None:
    with connect(bench.proxy("--wait", "0")) as caller:
        assert "waits for approval" in text_of(caller.call("send_note", **NOTE))
        factories.overdue(bench.await_request())
        deadlines.expire_chunk()
        result = caller.call("send_note", **NOTE)
    assert result.is_error
    assert "Nobody decided in time." in text_of(result)
    assert not bench.notes


def test_a_read_that_the_policy_allows_passes_at_once(bench: Bench) -> None:
    with connect(bench.proxy("--wait", "0")) as caller:
        result = caller.call("read_notes", to="ann")
    assert not result.is_error
    assert not ApprovalRequest.objects.exists()


def test_people_answer_what_the_server_asks(bench: Bench) -> None:
    with connect(bench.proxy("--ask", "notes"), mode="legacy") as caller:
        called = caller.begin("read_asked")
        bench.answer({"to": "ann"})
        assert text_of(called.result(PATIENCE_S)) == "ann"
    assert Question.objects.get().schema["properties"]["to"]["title"] == (
        "Name of the person"
    )


@ERAS
def test_a_client_that_cannot_wait_repeats_the_call(bench: Bench, mode: str) -> None:
    with connect(bench.proxy("--wait", "0"), mode=mode) as caller:
        pending = caller.call("send_note", **NOTE)
        assert pending.is_error
        request = bench.await_request()
        assert f"/requests/{request.pk}/" in text_of(pending)
        assert pending.meta is not None
        assert pending.meta["counterseal/pending"]["proposal"] == request.proposal_id
        bench.decide()
        result = caller.call("send_note", **NOTE)
        assert result.structured_content == {"sent": "ann"}
        # The call has ended: the same again is another one, and waits.
        assert "waits for approval" in text_of(caller.call("send_note", **NOTE))
    assert len(bench.notes) == 1
    assert Proposal.objects.count() == 2


def test_two_processes_and_one_thread_are_one_call(bench: Bench) -> None:
    options = ("--wait", "0", "--thread", "order_1")
    with connect(bench.proxy(*options)) as caller:
        caller.call("send_note", **NOTE)
    bench.decide()
    for _ in range(2):
        with connect(bench.proxy(*options)) as caller:
            result = caller.call("send_note", **NOTE)
            assert result.structured_content == {"sent": "ann"}
    assert len(bench.notes) == 1


def test_equal_calls_at_the_same_time_are_one(bench: Bench) -> None:
    with connect(bench.proxy()) as caller:
        calls = [caller.begin("send_note", **NOTE) for _ in range(3)]
        bench.decide()
        done, _ = wait(calls, PATIENCE_S)
    assert [call.result().structured_content for call in done] == [{"sent": "ann"}] * 3
    assert len(bench.notes) == 1


def test_parallel_calls_are_addressed_by_identity(bench: Bench) -> None:
    with connect(bench.proxy()) as caller:
        calls = {
            to: caller.begin("send_note", to=to, text="Hello.")
            for to in ("ann", "bob", "cat")
        }
        bench.await_request(3)
        for request in ApprovalRequest.objects.order_by("-opened_at"):
            args = request.proposal.current.args
            verdict = "approve" if args["to"] == "bob" else "reject"
            factories.decide(request, bench.people["rita"], verdict)
        results = {to: call.result(PATIENCE_S) for to, call in calls.items()}
    assert [note["to"] for note in bench.notes] == ["bob"]
    assert {to: result.is_error for to, result in results.items()} == {
        "ann": True,
        "bob": False,
        "cat": True,
    }


def test_a_proxy_that_dies_in_the_middle_performs_nothing_twice(bench: Bench) -> None:
    options = ("--wait", "0", "--thread", "order_1")
    with connect(bench.proxy(*options, command=PYTHON_PROXY)) as caller:
        caller.call("hold_note", **NOTE)
        bench.decide()
        called = caller.begin("hold_note", **NOTE)
        wait_until(lambda: len(bench.notes) == 1, PATIENCE_S)
        os.kill(int((bench.folder / "pid").read_text()), signal.SIGKILL)
        with pytest.raises(MCPError):
            called.result(PATIENCE_S)
    (bench.folder / "hold").write_text("")  # the server, which nobody hears, ends
    with connect(bench.proxy(*options)) as caller:
        assert "being performed" in text_of(caller.call("hold_note", **NOTE))
        factories.lapsed(Execution.objects.get())
        for name in deadlines.list_lapsed_executions():
            run.run_execution(name)
        result = caller.call("hold_note", **NOTE)
    assert result.is_error
    assert "Nobody can say" in text_of(result)
    assert bench.notes == [NOTE]


def test_a_server_that_dies_leaves_an_unknown_outcome(bench: Bench) -> None:
    proxy = bench.proxy("--wait", "0", command=PYTHON_PROXY, server=PYTHON_NOTES)
    with connect(proxy) as caller:
        caller.call("hold_note", **NOTE)
        bench.decide()
        called = caller.begin("hold_note", **NOTE)
        wait_until(lambda: len(bench.notes) == 1, PATIENCE_S)
        parent = (bench.folder / "pid").read_text().strip()
        tasks = f"/proc/{parent}/task/{parent}/children"
        with open(tasks) as file:
            (child,) = file.read().split()
        os.kill(int(child), signal.SIGKILL)
        assert "Nobody can say" in text_of(called.result(PATIENCE_S))
        with pytest.raises(MCPError, match="has ended"):
            caller.call("read_notes", to="ann")
    assert bench.read_proposal().status == "unknown"


def test_a_tool_that_fails_leaves_the_question_to_people(bench: Bench) -> None:
    with connect(bench.proxy()) as caller:
        called = caller.begin("fail_note", **NOTE)
        bench.decide()
        result = called.result(PATIENCE_S)
        assert result.is_error
        assert "Do not call it again" in text_of(result)
        # It stays this call, whatever the model does, until people find out.
        assert "Nobody can say yet" in text_of(caller.call("fail_note", **NOTE))
    assert bench.read_proposal().status == "unknown"
    assert len(bench.notes) == 1


def test_a_read_that_fails_is_nothing_for_people(bench: Bench) -> None:
    with connect(bench.proxy()) as caller:
        for _ in range(2):
            result = caller.call("fail_read", to="ann")
            assert result.is_error
            assert "no notes to ann" in text_of(result)
            assert "Nobody can say" not in text_of(result)
            assert bench.read_proposal().status == "failed"
    assert Proposal.objects.count() == 2


def test_a_refusal_of_the_gate_is_said_and_ends_no_call(bench: Bench) -> None:
    with connect(bench.proxy("--wait", "0")) as caller:
        caller.call("send_note", **NOTE)
        Agent.objects.update(tools=[])
        assert "tool_not_allowed" in text_of(caller.call("send_note", to="a", text="b"))
        Agent.objects.update(tools=list(POLICY["tools"]))
        assert "waits for approval" in text_of(caller.call("send_note", **NOTE))
    assert Proposal.objects.count() == 1


def test_a_cancelled_request_stays_to_be_decided(bench: Bench) -> None:
    with connect(bench.proxy(), read_timeout_seconds=3) as caller:
        with pytest.raises(MCPError):
            caller.call("send_note", **NOTE)
        bench.decide()
        result = caller.call("send_note", **NOTE)
    assert result.structured_content == {"sent": "ann"}
    assert len(bench.notes) == 1


def test_an_undeclared_tool_comes_with_the_entry_to_add(bench: Bench) -> None:
    with connect(bench.proxy("--prefix", "notes.")) as caller:
        said = text_of(caller.call("send_note", **NOTE))
    assert "declares no such tool" in said
    assert "notes.send_note:" in said
    assert '"required": ["to", "text"]' in said


def test_a_call_that_breaks_the_schema_reaches_nobody(bench: Bench) -> None:
    with connect(bench.proxy()) as caller:
        said = text_of(caller.call("send_note", to="ann", text="a", cc="eve"))
    assert "args.cc" in said
    assert not Proposal.objects.exists()


def test_a_supervisors_guidance_is_shown_and_reviewers_go_on(bench: Bench) -> None:
    with connect(bench.proxy("--wait", "0")) as caller:
        caller.call("send_note", **NOTE)
        bench.decide("escalate")
        returns.return_with_guidance(
            request_id=bench.await_request().pk,
            person=bench.people["sue"],
            guidance="Ask for her new address.",
        )
        result = caller.call("send_note", **NOTE)
        assert "Ask for her new address." in text_of(result)
        factories.decide(bench.await_request(), bench.people["tom"])
        result = caller.call("send_note", **NOTE)
    assert result.structured_content == {"sent": "ann"}


def test_the_gate_performs_what_the_policy_says_it_does(bench: Bench) -> None:
    options = ("--map", "send_note=sent_by_gate", "--wait", "0")
    with connect(bench.proxy(*options)) as caller:
        said = text_of(caller.call("send_note", to="ann"))
    assert "waits for approval" in said
    assert worlds.effects() == []


def test_a_large_result_is_the_clients_and_recorded_in_part(bench: Bench) -> None:
    with connect(bench.proxy()) as caller:
        result = caller.call("read_much", to="ann")
    assert len(text_of(result)) > 200_000
    recorded = bench.read_execution().result
    assert recorded is not None
    assert len(str(recorded)) < 3000
    assert "recorded only the beginning" in recorded["content"][0]["text"]


def test_a_hostile_list_of_tools_is_cut_down(bench: Bench) -> None:
    with connect(bench.proxy("--wait", "0", server=HOSTILE)) as caller:
        listed = caller.portal.call(caller.client.list_tools).tools
        assert [tool.name for tool in listed] == ["send_note"]
        said = text_of(caller.call("send_note\x1b[2J", **NOTE))
        assert "\x1b" not in said
        assert "takes no tool of the name" in said
        assert "more than one tool" in text_of(caller.call("read_notes", to="a"))
    assert not Proposal.objects.exists()


def test_a_tool_that_changes_is_refused_before_and_after_approval(
    bench: Bench,
) -> None:
    with connect(bench.proxy("--wait", "0", server=HOSTILE)) as caller:
        caller.call("send_note", **NOTE)
        called = caller.begin("send_note", to="bob", text="Hello.")
        called.result(PATIENCE_S)
        (bench.folder / "changed").touch()
        bench.await_request(2)
        for request in ApprovalRequest.objects.all():
            factories.decide(request, bench.people["rita"])
        said = text_of(caller.call("send_note", **NOTE))
        assert "not the one that was imported" in said
        assert caller.portal.call(caller.client.list_tools).tools == []
    assert not (bench.folder / "notes").exists()


def test_a_server_cannot_answer_for_the_gate(bench: Bench) -> None:
    server = [sys.executable, str(HERE / "forging_server.py")]
    proxy = bench.proxy("--wait", "0", server=server)
    with connect(proxy, mode="legacy") as caller:
        said = text_of(caller.call("send_note", **NOTE))
    assert "waits for approval" in said
    assert "approved and done" not in said


def test_a_call_without_an_id_reaches_nobody(bench: Bench) -> None:
    server = [sys.executable, str(HERE / "forging_server.py")]
    call = {"method": "tools/call", "params": {"name": "send_note", "arguments": {}}}
    messages = [
        {"id": 1, "method": "initialize", "params": {}},
        call,
        {**call, "id": None},
        [{**call, "id": 2}],
        {"id": 100, "method": "tools/list"},
    ]
    versions = [
        {"jsonrpc": "2.0", **one} if isinstance(one, dict) else one for one in messages
    ]
    with subprocess.Popen(
        [*PROXY, "--", *server],
        env=bench.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        proxy.stdin.write("".join(f"{json.dumps(one)}\n" for one in versions))
        proxy.stdin.flush()
        begun, listed = (json.loads(proxy.stdout.readline()) for _ in range(2))
    assert begun["result"]["capabilities"] == {"tools": {}}
    assert (listed["id"], len(listed["result"]["tools"])) == (100, 1)
    assert not (bench.folder / "notes").exists()
    assert not Proposal.objects.exists()
