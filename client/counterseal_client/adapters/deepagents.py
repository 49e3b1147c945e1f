"""Deep Agents: tools of the agent, its own ones for files and commands among them,
behind the gate.

    gated = GateMiddleware(gate, ["execute", "write_file", "send_note"])
    agent = create_deep_agent(
        model,
        tools=[send_note],
        middleware=[gated],
        subagents=gate_subagents([researcher], gated),
        backend=..., checkpointer=...,
    )
    agent.invoke(inputs, config)           # proposes, and suspends
    resume_graph(agent, config, gate)      # of adapters.langgraph, in any process

The middleware stands right before the tool: it redeems the grant and runs the tool with
the approved arguments. A sub-agent has a middleware of its own, the one that Deep
Agents adds by itself too, so each needs the gate's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from deepagents import SubAgent
from deepagents.middleware.subagents import GENERAL_PURPOSE_SUBAGENT
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import interrupt
from pydantic import ValidationError

from counterseal_client.errors import FieldError, InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.gated_tools import GatedTool
from counterseal_client.models import list_field_errors
from counterseal_client.tool_errors import ApprovalPending, ToolError
from counterseal_client.tools import ToolDefinition, ToolOptions

from .decisions import describe_waiting
from .flags import AdapterFlags
from .langgraph import (
    DescribeCall,
    answer_error,
    answer_result,
    describe_call,
    name_running_call,
)

FLAGS = AdapterFlags(framework="deepagents", minimum="0.7.32")
FLAGS.check_version("the adapter was not tested with a release before it.")

RunTool = Callable[[ToolCallRequest], Any]


class UngatedSubAgent(ValueError):
    """A sub-agent that takes no middleware: it was compiled before, or runs on another
    server."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The sub-agent {name!r} is compiled or remote, so its calls cannot be put"
            " behind the gate here. Give it a GateMiddleware where it is built, and"
            " add it to the list that gate_subagents returns."
        )


class ToolReportedError(Exception):
    """The tool answered with an error: only it knows whether something happened, so
    the outcome at the gate is unknown."""

    def __init__(self, message: ToolMessage) -> None:
        super().__init__(message.text)
        self.message = message


class GateMiddleware(AgentMiddleware[Any, Any, Any]):
    """Puts the tools of these names behind the gate; all others run as before.

    The thread of the gate is the graph's `thread_id`, the call id the model's. The
    policy's tools have the same names. `describe` must return the same details whenever
    the tool is called again.
    """

    def __init__(
        self,
        gate: Gate,
        tools: Iterable[str],
        *,
        describe: DescribeCall = describe_call,
    ) -> None:
        super().__init__()
        self._gate = gate
        self._names = frozenset(tools)
        self._describe = describe

    def wrap_tool_call(self, request: ToolCallRequest, handler: RunTool) -> Any:
        """Perform the call if it is approved, suspend while it waits. Raises
        DuplicateCallId, before anything runs, for an id that stands twice."""
        if request.tool is None or request.tool.name not in self._names:
            return handler(request)
        call = name_running_call(request.runtime, self._describe)
        effect = _Effect(request, handler)
        tool = self._build_tool(request.tool, effect)
        while True:
            try:
                arguments = request.tool_call["args"]
                result = tool.perform(arguments, **call.names, wait_seconds=0)
            except ApprovalPending as pending:
                # Suspends the graph. After a resume it returns, and the gate is asked.
                interrupt(describe_waiting(pending.proposal, call.call_id))
            except ToolReportedError as error:
                return error.message
            except (ToolError, InvalidArguments) as error:
                return answer_error(tool.name, call.call_id, error)
            else:
                if effect.answer is not None and not result.edited:
                    return effect.answer
                return answer_result(tool.name, call.call_id, result)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: RunTool) -> Any:
        """The gate is asked in a thread; the tool runs here."""
        if request.tool is None or request.tool.name not in self._names:
            return await handler(request)
        loop = asyncio.get_running_loop()

        def run(approved: ToolCallRequest) -> Any:
            return asyncio.run_coroutine_threadsafe(handler(approved), loop).result()

        return await asyncio.to_thread(self.wrap_tool_call, request, run)

    def _build_tool(self, tool: BaseTool, effect: _Effect) -> GatedTool[..., Any]:
        definition = ToolDefinition(
            effect,
            self._gate.operations,
            name=tool.name,
            options=ToolOptions(),
            threshold=self._gate.approval_required_risk,
            signature=LangChainSignature(tool),
        )
        return GatedTool(self._gate, definition)


class _Effect:
    """What comes after the middleware: the tool, with the approved arguments. `answer`
    is what it returned to the framework, None if it ran in another process."""

    def __init__(self, request: ToolCallRequest, handler: RunTool) -> None:
        self._request = request
        self._handler = handler
        self.answer: Any = None
        self.__doc__ = request.tool.description if request.tool else None

    def __call__(self, **arguments: Any) -> str:
        call = {**self._request.tool_call, "args": arguments}
        self.answer = self._handler(self._request.override(tool_call=call))
        if isinstance(self.answer, ToolMessage) and self.answer.status == "error":
            raise ToolReportedError(self.answer)
        return read_text(self.answer)


class LangChainSignature:
    """The arguments of a tool of LangChain, checked strictly by its own schema, and the
    text that it answers."""

    def __init__(self, tool: BaseTool) -> None:
        self._tool = tool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""
        return tuple(self._tool.args)

    def build_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return {"type": "object", "properties": self._tool.args}

    def bind_arguments(self, **kwargs: Any) -> dict[str, Any]:
        """The named arguments of a call; there are no others."""
        return kwargs

    def dump_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, unchanged. Raises InvalidArguments if they do not fit."""
        return self.load_arguments(arguments)

    def load_arguments(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as JSON, which the tool itself reads. Raises
        InvalidArguments."""
        faults = [
            FieldError(name, "the tool has no such argument")
            for name in args.keys() - set(self.names)
        ]
        schema = self._tool.tool_call_schema
        if not isinstance(schema, dict):
            try:
                schema.model_validate_json(json.dumps(dict(args)), strict=True)
            except ValidationError as error:
                faults += list_field_errors(error)
        if faults:
            raise InvalidArguments(self._tool.name, faults)
        return dict(args)

    def dump_result(self, result: str) -> dict[str, Any]:
        """The result as the gate records it."""
        return {"content": result}

    def load_result(self, result: Mapping[str, Any] | None) -> str:
        return str((result or {}).get("content", ""))


def read_text(answer: Any) -> str:
    """What the model reads of the answer of a tool: a message, or an update of the
    agent's state with messages in it."""
    if isinstance(answer, ToolMessage):
        return answer.text
    update = getattr(answer, "update", None)
    messages = update.get("messages", []) if isinstance(update, Mapping) else []
    return "\n".join(message.text for message in messages)


def gate_subagents(
    subagents: Sequence[Any], middleware: GateMiddleware
) -> list[SubAgent]:
    """The sub-agents with the gate's middleware, and the general one that Deep Agents
    would add without it. Raises UngatedSubAgent for one that takes no middleware."""
    given = list(subagents)
    if GENERAL_PURPOSE_SUBAGENT["name"] not in [one["name"] for one in given]:
        given.insert(0, GENERAL_PURPOSE_SUBAGENT)
    for one in given:
        if "runnable" in one or "graph_id" in one:
            raise UngatedSubAgent(one["name"])
    return [
        {**one, "middleware": [*one.get("middleware", ()), middleware]} for one in given
    ]
