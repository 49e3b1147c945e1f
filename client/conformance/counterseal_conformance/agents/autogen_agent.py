"""AutoGen: an assistant with tools, bare or through Counterseal's adapter. AutoGen
alone has no approval of a tool's call, so that the bare one runs each call at once."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

os.environ["AUTOGEN_DISABLE_RUNTIME_TRACING"] = "true"  # before the import

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.tools import AgentTool
from autogen_core import FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    RequestUsage,
)
from autogen_core.tools import FunctionTool, StaticWorkbench

from counterseal_client.adapters.autogen import (
    GateTools,
    NestedAgent,
    RunPaused,
    continue_run,
    describe_call,
    resume_agent,
)
from counterseal_client.operations import Details

from ..scripting import DONE, TOOL_NAMES, WORDS, Script
from ..worker import Job, Pending, Report
from .toolbox import (
    DELEGATE,
    GatedBox,
    StoredDriver,
    build_toolbox,
    run_action,
)

USAGE = RequestUsage(prompt_tokens=1, completion_tokens=1)
ERASE = {"id": "call_1", "name": "erase_note", "args": {"to": "ann"}}


class ScriptedModel(ChatCompletionClient):
    """Says the next turn of its script; which one that is, the history tells."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def create(self, messages: Any, **_: Any) -> CreateResult:
        said = {
            one.call_id
            for message in messages
            if isinstance(message, FunctionExecutionResultMessage)
            for one in message.content
        }
        turns = [turn for turn in self._script if turn[0]["id"] not in said]
        return build_answer((turns or [[]])[0])

    def create_stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """The kit streams nothing."""
        raise NotImplementedError

    async def close(self) -> None:
        """There is nothing to close."""

    def actual_usage(self) -> RequestUsage:
        return USAGE

    def total_usage(self) -> RequestUsage:
        return USAGE

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 1

    def remaining_tokens(self, *_: Any, **__: Any) -> int:
        return 1000

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> Any:
        return {
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "structured_output": False,
            "family": "unknown",
        }


def build_answer(calls: list[dict[str, Any]]) -> CreateResult:
    """The model's answer with these calls; its last words without any."""
    content = [
        FunctionCall(call["id"], json.dumps(call["args"]), call["name"])
        for call in calls
    ]
    return CreateResult(
        finish_reason="function_calls" if calls else "stop",
        content=content or DONE,
        usage=USAGE,
        cached=False,
        thought=WORDS if calls else None,
    )


class AutoGenDriver(StoredDriver):
    """The agent of one job, with its state in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._tools = build_tools(job, self._gated) if self._gated else None
        self._agent = build_agents(job, self._tools)

    def start_run(self) -> None:
        asyncio.run(self._keep(self._agent.run(task="Please do it.")))
        kept = json.loads(self._store.load_state())
        self._store.save_state(json.dumps({**kept, "first": kept}))

    def repeat_run(self) -> None:
        if self._gated:
            asyncio.run(self._continue(self._load()))
        else:
            self.start_run()

    def resume_run(self) -> None:
        """AutoGen alone has nothing to resume: the agent runs on."""
        before = self._load()
        if self._gated is None:
            asyncio.run(self._load_agent(before))
            asyncio.run(self._keep(self._agent.run(task=None)))
        else:
            asyncio.run(self._resume(before, self._gated))
        if self._job.hostile:
            self._replay(before)

    async def _resume(self, kept: Mapping[str, Any], gated: GatedBox) -> None:
        assert self._tools is not None
        await self._load_agent(kept)
        seconds = self._job.wait_seconds
        paused = RunPaused.from_dict(kept["paused"])
        run = resume_agent(
            self._agent, paused, self._tools, gated.gate, wait_seconds=seconds
        )
        await self._keep(run)

    async def _continue(self, kept: Mapping[str, Any]) -> None:
        assert self._tools is not None
        await self._load_agent(kept)
        paused = RunPaused.from_dict(kept["paused"])
        await self._keep(continue_run(self._agent, paused, self._tools))

    def _replay(self, before: Mapping[str, Any]) -> None:
        """Hostile: go on from an older state, as if all was approved."""
        kept = self._store.load_state()
        if self._gated:
            asyncio.run(self._continue(before))
        else:
            asyncio.run(self._load_agent(before))
            asyncio.run(self._keep(self._agent.run(task=None)))
        self._store.save_state(kept)

    def send_raw(self) -> None:
        """A run has no answers, so a redirection is a stored answer of
        the model with another call, and a malformed answer one that is none."""
        kept = self._load()
        if self._job.interrupt_ids:
            self._replay(kept["first"])
            return
        if self._gated is None:
            self._replay(kept)
            return
        if self._job.raw == "redirection":
            kept["paused"]["answer"] = build_answer([ERASE]).model_dump(mode="json")
        if self._job.raw == "malformed":
            kept["paused"]["answer"] = "yes, please"
        asyncio.run(self._continue(kept))

    async def _load_agent(self, kept: Mapping[str, Any]) -> None:
        await self._agent.load_state(kept["state"])

    async def _keep(self, run: Any) -> None:
        """Await a run and store how it stands; nothing if it did not go on."""
        text = self._store.load_state()
        kept = json.loads(text) if text else {"final": ""}
        try:
            found = await run
        except RunPaused as paused:
            kept["paused"] = paused.to_dict()
        else:
            if found is None:
                return
            kept |= {"paused": None, "final": found.messages[-1].to_text()}
        kept["state"] = dict(await self._agent.save_state())
        self._store.save_state(json.dumps(kept))

    def _load(self) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads(self._store.load_state())
        return kept

    def read_report(self) -> Report:
        kept = self._load()
        paused, messages = kept["paused"], kept["state"]["llm_context"]["messages"]
        return Report(
            "suspended" if paused else "finished",
            pending=[
                Pending(c["id"], c["name"], c["id"], json.loads(c["arguments"]))
                for c in (paused["answer"]["content"] if paused else [])
            ],
            values=paused["waiting"] if paused else [],
            replies=[
                result["content"]
                for message in messages
                if message["type"] == "FunctionExecutionResultMessage"
                for result in message["content"]
            ],
            final="" if paused else kept["final"],
        )


def build_tools(job: Job, gated: GatedBox) -> GateTools:
    """The tools behind the gate; a nested agent sits behind the tool `delegate`."""

    def describe(answer: CreateResult, call_id: str) -> Details:
        return gated.add_details(describe_call(answer, call_id))

    tools = list(gated.tools.values())
    inner = GateTools(tools, thread=job.thread, describe=describe)
    if not job.nested:
        return inner
    agents = {"delegate": NestedAgent(build_assistant(job.script, inner), inner)}
    return GateTools([], thread=job.thread, agents=agents)


def build_assistant(script: Script, tools: GateTools) -> AssistantAgent:
    """An assistant with tools behind the gate."""
    return AssistantAgent(
        "post",
        tools.watch_model(ScriptedModel(script)),
        workbench=[tools.workbench],
        max_tool_iterations=9,
    )


def build_agents(job: Job, tools: GateTools | None) -> AssistantAgent:
    if tools is not None:
        return build_assistant(DELEGATE if job.nested else job.script, tools)
    box = build_toolbox(job)
    functions = [getattr(box, name) for name in TOOL_NAMES]
    bare = [FunctionTool(one, description=one.__doc__) for one in functions]
    agent = AssistantAgent(
        "delegate",
        ScriptedModel(job.script),
        workbench=[StaticWorkbench([*bare])],
        max_tool_iterations=9,
    )
    if not job.nested:
        return agent
    model = ScriptedModel(DELEGATE)
    return AssistantAgent("outer", model, tools=[AgentTool(agent)])


class AutoGenAgent:
    """The agent, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(AutoGenDriver(job), job)


def build_agent(variant: str) -> AutoGenAgent:
    """The agent; there is one variant."""
    return AutoGenAgent()
