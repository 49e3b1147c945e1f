"""OpenAI Agents SDK: an agent whose tools interrupt the run for an approval, bare as
the documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
)

from agents import (  # type: ignore[attr-defined]
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    RunContextWrapper,
    Runner,
    RunResult,
    RunState,
    ToolApprovalItem,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from counterseal_client.adapters.openai_agents import build_tool, resume_run
from counterseal_client.gate import Gate

from ..scripting import DONE, WORDS, Script, get_turn
from ..worker import Job, Pending, Report
from .driver import ASK, ERASE, MALFORMED, StoredDriver
from .toolbox import DELEGATE, GatedBox, build_toolbox

set_tracing_disabled(True)


class ScriptedModel(Model):
    def __init__(self, script: Script) -> None:
        self._script = script

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        """A turn of the model ends with its words or its calls; the words come first,
        so they count."""
        items = input if isinstance(input, list) else []
        turn = sum(item.get("role") == "assistant" for item in items)
        calls = get_turn(self._script, turn)
        words = build_message(f"message_{turn}", WORDS if calls else DONE)
        output: list[ResponseOutputItem] = [words]
        output += [build_call(call) for call in calls]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def build_message(message_id: str, text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id=message_id,
        content=[part],
        role="assistant",
        status="completed",
        type="message",
    )


def build_call(call: dict[str, Any]) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        call_id=call["id"],
        name=call["name"],
        arguments=json.dumps(call["args"]),
        type="function_call",
    )


class Driver(StoredDriver):
    """The agent of one job, with its RunState in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent = build_agents(job, self.gated)

    async def start_run(self) -> None:
        context = {"thread_id": self.job.thread}
        self._keep(await Runner.run(self._agent, ASK, context=context))

    async def resume_gated(self, gate: Gate) -> None:
        state, seconds = await self._restore(self.load()), self.job.wait_seconds
        found = await resume_run(self._agent, state, gate, wait_seconds=seconds)
        if found is not None:
            self._keep(found)

    async def resume_bare(self) -> None:
        state = await self._restore(self.load())
        for item in state.get_interruptions():
            given = self.job.find_answer(json.loads(item.arguments or "{}"))
            if given["verdict"] == "reject":
                state.reject(item, rejection_message=given.get("reason") or "No.")
            else:
                state.approve(item)
        self._keep(await Runner.run(self._agent, state))

    async def approve_all(self, older: Any) -> None:
        state = await self._restore(older)
        for item in state.get_interruptions():
            state.approve(item)
        await Runner.run(self._agent, state)

    async def send_raw(self) -> None:
        """An answer names a call by an item. For one that no longer waits the item is
        built anew; a redirection names another tool under the id of what waits."""
        state = await self._restore(self.load())
        items: list[Any] = state.get_interruptions()
        if self.job.interrupt_ids:
            calls = [call for turn in self.job.script for call in turn]
            items = [self._build_item(call) for call in calls]
        for item in items:
            if self.job.raw == "redirection":
                state.approve(self._build_item({**ERASE, "id": item.call_id}))
            elif self.job.raw == "malformed":
                state.approve(MALFORMED)
            else:
                state.approve(item)
        self._keep(await Runner.run(self._agent, state))

    def _build_item(self, call: dict[str, Any]) -> ToolApprovalItem:
        return ToolApprovalItem(agent=self._agent, raw_item=build_call(call))

    async def read_report(self) -> Report:
        kept = self.load()
        items = (await self._restore(kept)).get_interruptions()
        return Report(
            pending=[
                Pending(
                    item.call_id or "",
                    item.name or "",
                    item.call_id or "",
                    json.loads(item.arguments or "{}"),
                )
                for item in items
            ],
            values=[read_raw(item) for item in items],
            replies=[
                str(item["output"])
                for item in kept["items"]
                if item.get("type") == "function_call_output"
            ],
            final=kept["final"],
        )

    def _keep(self, found: RunResult) -> None:
        self.save(
            {
                "state": found.to_state().to_json(),
                "items": found.to_input_list(),
                "final": str(found.final_output or ""),
            }
        )

    async def _restore(self, kept: Any) -> RunState[Any, Any]:
        return await RunState.from_json(self._agent, kept["state"])


def read_raw(item: ToolApprovalItem) -> Any:
    """The call of an interruption, as the SDK keeps it."""
    raw = item.raw_item
    return raw if isinstance(raw, dict) else raw.model_dump(exclude_none=True)


def build_agents(job: Job, gated: GatedBox | None) -> Agent[Any]:
    """The agent; a nested one sits behind the tool `delegate`."""
    model = ScriptedModel(job.script)
    agent: Agent[Any] = Agent("inner", model=model, tools=[*build_tools(job, gated)])
    if not job.nested:
        return agent
    delegate = agent.as_tool("delegate", "Hand a task to a nested agent.")
    script = [[{**call, "args": {"input": "send it"}} for call in DELEGATE[0]]]
    return Agent("outer", model=ScriptedModel(script), tools=[delegate])


def build_tools(job: Job, gated: GatedBox | None) -> list[FunctionTool]:
    """The tools, behind the gate or interrupting as the documentation shows."""
    if gated is not None:
        return [
            build_tool(tool, describe=gated.describe) for tool in gated.tools.values()
        ]

    async def ask(context: RunContextWrapper[Any], args: Any, call_id: str) -> bool:
        job.ledger.mark("asked")
        return True

    functions = build_toolbox(job).functions.values()
    return [function_tool(function, needs_approval=ask) for function in functions]
