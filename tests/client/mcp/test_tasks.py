"""Held calls as tasks: the official client says that it takes them."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import MCPError

from counterseal_client import Gate
from counterseal_client.mcp.tasks import hide_tasks, is_task_client
from reviews.models import ApprovalRequest
from tests.client.mcp.conftest import Bench, Caller, connect
from tests.client.mcp.task_client import (
    CancelTask,
    CreatedTask,
    GetTask,
    TaskAck,
    TaskExtension,
    TaskParams,
    TaskState,
)
from tests.stack import PATIENCE_S, wait_until

NOTE = {"to": "ann", "text": "Your parcel is on its way."}
TASKS = "io.modelcontextprotocol/tasks"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def begin_task(caller: Caller, tool: str = "send_note", **args: str) -> Any:
    """What the server answers to the call, a task or not."""

    async def call() -> Any:
        session = caller.client.session
        return await session.call_tool(tool, args or NOTE, allow_claimed=True)

    return caller.portal.call(call)


def get_task(caller: Caller, name: str) -> TaskState:
    request = GetTask(params=TaskParams(taskId=name))
    send = caller.client.session.send_request
    found: TaskState = caller.portal.call(send, request, TaskState)
    return found


def await_end(caller: Caller, name: str) -> TaskState:
    found: list[TaskState] = []

    def ended() -> bool:
        found.append(get_task(caller, name))
        return found[-1].status != "working"

    wait_until(ended, PATIENCE_S)
    return found[-1]


@pytest.mark.servers
def test_a_held_call_is_a_task_that_ends_with_its_result(bench: Bench) -> None:
    with connect(bench.proxy(), extensions=[TaskExtension()]) as caller:
        task = begin_task(caller)
        assert isinstance(task, CreatedTask)
        request = bench.await_request()
        assert task.task_id == request.proposal_id
        assert f"/requests/{request.pk}/" in str(task.status_message)
        assert get_task(caller, task.task_id).status == "working"
        assert begin_task(caller).task_id == task.task_id
        bench.decide()
        ended = await_end(caller, task.task_id)
    assert ended.status == "completed"
    assert ended.result is not None
    assert ended.result["structuredContent"] == {"sent": "ann"}
    assert len(bench.notes) == 1


@pytest.mark.servers
def test_another_process_goes_on_with_a_task(bench: Bench) -> None:
    with connect(bench.proxy(), extensions=[TaskExtension()]) as caller:
        name = begin_task(caller).task_id
    bench.decide("modify", args={**NOTE, "to": "bob"})
    with connect(bench.proxy(), extensions=[TaskExtension()]) as caller:
        ended = await_end(caller, name)
    assert ended.result is not None
    assert "A reviewer changed this call." in str(ended.result["content"])
    assert [note["to"] for note in bench.notes] == ["bob"]


@pytest.mark.servers
def test_a_cancelled_task_is_withdrawn(bench: Bench) -> None:
    with connect(bench.proxy(), extensions=[TaskExtension()]) as caller:
        name = begin_task(caller).task_id
        request = CancelTask(params=TaskParams(taskId=name))
        caller.portal.call(caller.client.session.send_request, request, TaskAck)
        assert get_task(caller, name).status == "cancelled"
    assert bench.read_proposal().status == "withdrawn"


@pytest.mark.servers
def test_a_task_whose_grant_was_revoked_performs_nothing(bench: Bench) -> None:
    with connect(bench.proxy(), extensions=[TaskExtension()]) as caller:
        name = begin_task(caller, "hold_note", **NOTE).task_id
    with Gate(bench.url, bench.key) as gate:
        bench.decide()
        gate.withdraw(name)
    with connect(bench.proxy(), extensions=[TaskExtension()]) as caller:
        ended = await_end(caller, name)
    assert ended.status == "completed"
    assert not bench.notes


@pytest.mark.servers
def test_a_rejected_task_is_completed_with_an_error(bench: Bench) -> None:
    with connect(bench.proxy(), extensions=[TaskExtension()]) as caller:
        name = begin_task(caller).task_id
        bench.decide("reject", reason="Ann moved.")
        ended = await_end(caller, name)
    assert ended.status == "completed"
    assert ended.result is not None
    assert ended.result["isError"]
    assert "Ann moved." in str(ended.result["content"])
    assert not bench.notes


@pytest.mark.servers
def test_what_needs_nobody_is_no_task(bench: Bench) -> None:
    with connect(bench.proxy(), extensions=[TaskExtension()]) as caller:
        result = begin_task(caller, "read_notes", to="ann")
        assert not isinstance(result, CreatedTask)
        assert not result.is_error
        with pytest.raises(MCPError, match="no such task"):
            get_task(caller, "p-00000000000000000000")
    assert not ApprovalRequest.objects.exists()


def test_only_a_client_that_says_so_takes_tasks() -> None:
    meta = {CAPABILITIES: {"extensions": {TASKS: {}, "a/b": {}}}, "other": 1}
    assert is_task_client(meta)
    assert not is_task_client({})
    assert not is_task_client({CAPABILITIES: {"extensions": ["x"]}})
    assert hide_tasks(meta) == {
        CAPABILITIES: {"extensions": {"a/b": {}}},
        "other": 1,
    }
