"""One attempt of a call by a durable workflow, as plain data that the workflow's
service can keep. Nothing here imports a framework."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from counterseal_client.errors import ApiError, InvalidArguments, Unreachable
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ApprovalPending, ToolError

from .calls import NamedCall, check_call_id, check_thread, format_result
from .coroutines import AnyTool, perform_call
from .decisions import describe_waiting

AskGate = Callable[[], Awaitable[dict[str, Any]]]
"""Attempts a call in a step of the service and returns what `attempt_call` returns."""
UNDER_WAY = ("granted", "executing")
"""The statuses of a call that needs no person any more, only its effect."""
REFUSED = (404, 409, 410, 422)
"""Statuses of the gate's answers that another attempt would get again."""


def build_request(
    thread: str, call_id: str, arguments: dict[str, Any], details: Details | None
) -> dict[str, Any]:
    """A call with its names at the gate, for `attempt_call`. Raises ValueError for
    names that the gate does not take."""
    return {
        "thread": check_thread(thread, "thread"),
        "call_id": check_call_id(call_id, [call_id]),
        "arguments": arguments,
        "details": dict(details or {}),
    }


async def attempt_call(tool: AnyTool, request: dict[str, Any]) -> dict[str, Any]:
    """Propose or perform a call, without a wait for people, and return one of:

    - `text`: the result, or why there is none, for the model;
    - `waiting`: people decide; the value is that of `describe_waiting`;
    - `again`: why the same attempt must come again: the gate cannot be reached, or
      another attempt has the effect, until its lease ends.

    Raises ApiError when the gate refuses the call as it is, and what the tool's
    function raises.
    """
    call = NamedCall(request["thread"], request["call_id"], request["details"])
    try:
        result = await perform_call(tool, request["arguments"], call)
    except ApprovalPending as pending:
        if pending.proposal.status in UNDER_WAY:
            return {"again": str(pending)}
        return {"waiting": describe_waiting(pending.proposal, call.call_id)}
    except (ToolError, InvalidArguments) as error:
        return {"text": str(error)}
    except (ApiError, Unreachable) as error:
        if isinstance(error, ApiError) and error.status in REFUSED:
            raise
        return {"again": str(error)}
    return {"text": format_result(result)}
