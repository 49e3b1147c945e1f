"""A client of the tasks extension (SEP-2663), with the means of the official package,
which has no tasks of its own."""

from __future__ import annotations

from typing import Any, Literal

from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.types import CallToolResult, Request, RequestParams, Result
from pydantic import Field

from counterseal_client.mcp.tasks import TASKS_EXTENSION


class TaskState(Result):
    """A task, as an answer to a call and to `tasks/get`."""

    task_id: str = Field(alias="taskId")
    status: str
    status_message: str | None = Field(alias="statusMessage", default=None)
    ttl_ms: int | None = Field(alias="ttlMs", default=None)
    result: dict[str, Any] | None = None


class TaskAck(Result):
    """The answer to `tasks/cancel`."""


class CreatedTask(TaskState):
    result_type: Literal["task"] = Field(alias="resultType", default="task")


class TaskParams(RequestParams):
    task_id: str = Field(alias="taskId")


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams


class CancelTask(Request[TaskParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams


class TaskExtension(ClientExtension):
    """Says that this client takes tasks. The tests ask for their state themselves."""

    identifier = TASKS_EXTENSION

    def claims(self) -> list[ResultClaim[CreatedTask]]:
        return [
            ResultClaim(result_type="task", model=CreatedTask, resolve=resolve_task)
        ]


async def resolve_task(task: CreatedTask, context: ClaimContext) -> CallToolResult:
    raise AssertionError(f"{task.task_id} is not awaited by the client")
