"""Held calls as tasks (SEP-2663, `io.modelcontextprotocol/tasks`): a client that knows
tasks gets one at once and asks for its state while people think.

A task's id is its proposal's id, so the gate keeps it: another process of the proxy
goes on with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio
from anyio.abc import TaskGroup

from ..errors import ApiError, Unreachable
from ..models import Proposal
from ..tool_errors import (
    ApprovalPending,
    ReturnedForRevision,
    ToolError,
)
from .gated_calls import (
    CALL_ERRORS,
    Forward,
    NamedCall,
    ToolGate,
    explain_error,
)
from .results import (
    Json,
    RemoteError,
    build_result,
    describe_wait,
)
from .tool_list import Tool

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
TASK_METHODS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
CAPABILITIES_META = "io.modelcontextprotocol/clientCapabilities"
POLL_MILLISECONDS = 2000
REMEMBERED_TASKS = 1000
"""For how many ended tasks a process keeps the whole result."""
INVALID_PARAMS = -32602
STILL_OPEN = (Unreachable, ApiError, ReturnedForRevision)
"""After these the proposal can still be approved."""


def is_task_client(meta: Mapping[str, Any]) -> bool:
    """Whether the client said with this request that it takes a task."""
    capabilities = meta.get(CAPABILITIES_META)
    declared = (
        capabilities.get("extensions") if isinstance(capabilities, dict) else None
    )
    return isinstance(declared, dict) and TASKS_EXTENSION in declared


def hide_tasks(meta: Mapping[str, Any]) -> Json:
    """The client's `_meta` for the server: the proxy makes the tasks, not the
    server."""
    if not is_task_client(meta):
        return dict(meta)
    capabilities = dict(meta[CAPABILITIES_META])
    declared = dict(capabilities["extensions"])
    del declared[TASKS_EXTENSION]
    return {**meta, CAPABILITIES_META: {**capabilities, "extensions": declared}}


@dataclass(slots=True)
class HeldTask:
    """A task of this process. `result` is that of the call, once it has ended.
    `settles`: an equal call is another one after that. `cancelled`: the client withdrew
    it before it began."""

    proposal: Proposal
    call: NamedCall | None
    result: Json | None = None
    settles: bool = False
    cancelled: bool = False
    ended: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class TaskRunner:
    """The tasks of one proxy. Each waits in `group` and performs its call there as soon
    as people have approved it."""

    tool_gate: ToolGate
    group: TaskGroup
    tasks: dict[str, HeldTask] = field(default_factory=dict)

    async def answer_call(
        self, call: NamedCall, tool: Tool, forward: Forward
    ) -> tuple[Json, bool]:
        """The result of the call if it needs nobody, else a task; and whether the call
        has ended."""
        try:
            result = await self.tool_gate.perform_call(call, tool, forward, 0)
        except (ApprovalPending, ReturnedForRevision) as pending:
            task = self._hold_proposal(pending.proposal, call, forward)
            return {"resultType": "task", **describe_task(task)}, False
        except CALL_ERRORS as error:
            return explain_error(error)
        return build_result(result), True

    async def answer_request(
        self, method: str, params: Mapping[str, Any], forward: Forward
    ) -> Json:
        """The answer to one of TASK_METHODS. Raises RemoteError for a task that is not
        there."""
        name = params.get("taskId")
        if not isinstance(name, str) or not name:
            raise RemoteError(INVALID_PARAMS, "taskId: name a task of this server.")
        if method == "tasks/update":
            return {}  # people at the gate answer, never the client
        task = await self._find_task(name, forward)
        if method == "tasks/cancel":
            await self._cancel_task(task)
            return {}
        if task.settles and task.call is not None:
            self.tool_gate.calls.settle_call(task.call)
        if task.result is None:
            task.proposal = await self.tool_gate.gate.get(name)
        return describe_task(task)

    async def _find_task(self, name: str, forward: Forward) -> HeldTask:
        if name in self.tasks:
            return self.tasks[name]
        try:
            proposal = await self.tool_gate.gate.get(name)
            self.tool_gate.names.to_server(proposal.tool)
        except ApiError as error:
            if error.code != "not_found":
                raise
            message = "taskId: there is no such task."
            raise RemoteError(INVALID_PARAMS, message) from None
        return self._hold_proposal(proposal, None, forward)

    def _hold_proposal(
        self, proposal: Proposal, call: NamedCall | None, forward: Forward
    ) -> HeldTask:
        """The task of a proposal; begins to wait for it unless one waits already."""
        if proposal.id not in self.tasks:
            task = self.tasks[proposal.id] = HeldTask(proposal, call)
            self.group.start_soon(self._run_task, task, forward)
        return self.tasks[proposal.id]

    async def _run_task(self, task: HeldTask, forward: Forward) -> None:
        try:
            task.result = await self._find_result(task, forward)
        except STILL_OPEN:  # the next question begins to wait again
            self.tasks.pop(task.proposal.id, None)
        task.ended.set()
        self._forget_ended()

    async def _find_result(self, task: HeldTask, forward: Forward) -> Json:
        """The result of the task's call. Raises STILL_OPEN."""
        try:
            result = await self.tool_gate.follow_proposal(
                task.proposal, task.call, forward
            )
        except STILL_OPEN:
            raise
        except CALL_ERRORS as error:
            if isinstance(error, ToolError):
                task.proposal = error.proposal
            answer, task.settles = explain_error(error)
            return answer
        task.settles = True
        return build_result(result)

    def _forget_ended(self) -> None:
        """Let the gate alone remember the tasks that ended first."""
        ended = [name for name, task in self.tasks.items() if task.ended.is_set()]
        for name in ended[:-REMEMBERED_TASKS]:
            del self.tasks[name]

    async def _cancel_task(self, task: HeldTask) -> None:
        """Withdraw the proposal. An effect that has begun goes on."""
        try:
            await self.tool_gate.gate.withdraw(task.proposal.id)
        except ApiError as error:
            if error.status != 409:
                raise
            return
        task.cancelled = True
        await task.ended.wait()


def describe_task(task: HeldTask) -> Json:
    """The task's state as SEP-2663 has it. A call that ends without an effect is a
    completed task with an error for the model; a withdrawn one is cancelled."""
    proposal = task.proposal
    created, settled = proposal.created_at, proposal.settled_at
    deadline = proposal.request.expires_at if proposal.request else None
    life = (deadline - created).total_seconds() if deadline and created else None
    state: Json = {
        "taskId": proposal.id,
        "status": "working",
        "createdAt": _format_time(created),
        "lastUpdatedAt": _format_time(settled or created),
        "ttlMs": None if life is None else int(life * 1000),
        "pollIntervalMs": POLL_MILLISECONDS,
    }
    if task.result is None:
        return {**state, "statusMessage": describe_wait(proposal)}
    if task.cancelled or proposal.status == "withdrawn":
        return {**state, "status": "cancelled"}
    return {**state, "status": "completed", "result": task.result}


def _format_time(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat()
