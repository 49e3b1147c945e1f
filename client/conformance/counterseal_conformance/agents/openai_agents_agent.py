"""OpenAI Agents SDK: an agent whose tools interrupt the run for an approval, bare as
the documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

import asyncio
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
from counterseal_client.operations import Details

from ..scripting import DONE, TOOL_NAMES, WORDS, Script
from ..worker import Job, Pending, Report
from .toolbox import (
    DELEGATE,
    GatedBox,
    StoredDriver,
    build_toolbox,
    find_answer,
    run_action,
)

set_tracing_disabled(True)


class ScriptedModel(Model):
    """Says the next turn of its script; which one that is, the history tells."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        """A turn of the model ends with its words or its calls; the
        words come first, so they count."""
        items = input if isinstance(input, list) else []
        turn = sum(item.get("role") == "assistant" for item in items)
        over = turn >= len(self._script)
        calls = [] if over else self._script[turn]
        words = build_message(f"message_{turn}", DONE if over else WORDS)
        output: list[ResponseOutputItem] = [words]
        output += [build_call(call) for call in calls]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """The kit streams nothing."""
        raise NotImplementedError


def build_message(message_id: str, text: str) -> ResponseOutputMessage:
    """The model's words."""
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id=message_id,
        content=[part],
        role="assistant",
        status="completed",
        type="message",
    )


def build_call(call: dict[str, Any]) -> ResponseFunctionToolCall:
    """One of the model's calls."""
    return ResponseFunctionToolCall(
        call_id=call["id"],
        name=call["name"],
        arguments=json.dumps(call["args"]),
        type="function_call",
    )


class OpenAIAgentsDriver(StoredDriver):
    """The agent of one job, with its RunState in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent = build_agents(job, self._gated)

    def start_run(self) -> None:
        context = {"thread_id": self._job.thread}
        run = Runner.run(self._agent, "Please do it.", context=context)
        self._keep(asyncio.run(run))

    def repeat_run(self) -> None:
        """A stored RunState never runs the code before the pause again,
        so this is the crash before it was stored."""
        self.start_run()

    def resume_run(self) -> None:
        asyncio.run(self._resume())

    async def _resume(self) -> None:
        before, state = self._store.load_state(), await self._load()
        if self._gated is None:
            self._answer_bare(state)
            self._keep(await Runner.run(self._agent, state))
        else:
            gate, seconds = self._gated.gate, self._job.wait_seconds
            found = await resume_run(self._agent, state, gate, wait_seconds=seconds)
            if found is not None:
                self._keep(found)
        if self._job.hostile:
            await self._replay(before)

    def _answer_bare(self, state: RunState[Any, Any]) -> None:
        """Give each interruption its own answer."""
        for item in state.get_interruptions():
            given = find_answer(self._job, json.loads(item.arguments or "{}"))
            if given["verdict"] == "reject":
                state.reject(item, rejection_message=given.get("reason") or "No.")
            else:
                state.approve(item)

    async def _replay(self, before: str) -> None:
        """Hostile: run an older copy of the state, with an approval of all that waited
        in it."""
        kept = json.loads(before)["state"]
        state = await RunState.from_json(self._agent, kept)
        for item in state.get_interruptions():
            state.approve(item)
        await Runner.run(self._agent, state)

    def send_raw(self) -> None:
        asyncio.run(self._send_raw())

    async def _send_raw(self) -> None:
        """An answer names a call by an item. For one that no longer waits the item is
        built anew; a redirection names another tool under the id of what waits."""
        state = await self._load()
        items: list[Any] = state.get_interruptions()
        if self._job.interrupt_ids:
            calls = [call for turn in self._job.script for call in turn]
            items = [self._build_item(build_call(call)) for call in calls]
        for item in items:
            if self._job.raw == "redirection":
                erase = {
                    "id": item.call_id,
                    "name": "erase_note",
                    "args": {"to": "ann"},
                }
                state.approve(self._build_item(build_call(erase)))
            elif self._job.raw == "malformed":
                state.approve("yes, please")
            else:
                state.approve(item)
        self._keep(await Runner.run(self._agent, state))

    def _build_item(self, call: ResponseFunctionToolCall) -> ToolApprovalItem:
        return ToolApprovalItem(agent=self._agent, raw_item=call)

    def read_report(self) -> Report:
        kept = json.loads(self._store.load_state())
        items = asyncio.run(self._load()).get_interruptions()
        return Report(
            "suspended" if items else "finished",
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
        kept = {
            "state": found.to_state().to_json(),
            "items": found.to_input_list(),
            "final": str(found.final_output or ""),
        }
        self._store.save_state(json.dumps(kept))

    async def _load(self) -> RunState[Any, Any]:
        kept = json.loads(self._store.load_state())["state"]
        return await RunState.from_json(self._agent, kept)


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

        def describe(context: Any, arguments: dict[str, Any], call_id: str) -> Details:
            return gated.add_details({"rationale": WORDS})

        return [build_tool(tool, describe=describe) for tool in gated.tools.values()]

    async def ask(context: RunContextWrapper[Any], args: Any, call_id: str) -> bool:
        job.ledger.mark("asked")
        return True

    box = build_toolbox(job)
    return [
        function_tool(getattr(box, name), needs_approval=ask) for name in TOOL_NAMES
    ]


class OpenAIAgentsAgent:
    """The agent, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(OpenAIAgentsDriver(job), job)


def build_agent(variant: str) -> OpenAIAgentsAgent:
    """The agent; there is one variant."""
    return OpenAIAgentsAgent()
