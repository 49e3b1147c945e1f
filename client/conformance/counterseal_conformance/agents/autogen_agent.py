"""AutoGen: an assistant with tools, bare or through Counterseal's adapter. AutoGen
alone has no approval of a tool's call, so that the bare one runs each call at once."""

from __future__ import annotations

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
from counterseal_client.gate import Gate

from ..scripting import DONE, WORDS, Script, Turn, find_turn
from ..worker import Job, Pending, Report
from .driver import ASK, ERASE, PausedDriver, Step
from .toolbox import DELEGATE, GatedBox, build_toolbox

USAGE = RequestUsage(prompt_tokens=1, completion_tokens=1)


class ScriptedModel(ChatCompletionClient):
    def __init__(self, script: Script) -> None:
        self._script = script

    async def create(self, messages: Any, **_: Any) -> CreateResult:
        said = {
            one.call_id
            for message in messages
            if isinstance(message, FunctionExecutionResultMessage)
            for one in message.content
        }
        return build_answer(find_turn(self._script, said))

    def create_stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
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


def build_answer(calls: Turn) -> CreateResult:
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


class Driver(PausedDriver):
    """The agent of one job, with its state in a file. AutoGen alone has nothing to
    resume: the agent runs on."""

    calls_in = "answer"

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._tools = build_tools(job, self.gated) if self.gated else None
        self._agent = build_agents(job, self._tools)

    def start_run(self) -> Step:
        return self._keep(self._agent.run(task=ASK))

    def repeat_run(self) -> Step:
        return super().repeat_run() if self.gated else self.start_run()

    async def resume_gated(self, gate: Gate) -> None:
        assert self._tools is not None
        stored, seconds = self.load(), self.job.wait_seconds
        await self._agent.load_state(stored["state"])
        paused = RunPaused.from_dict(stored["paused"])
        run = resume_agent(self._agent, paused, self._tools, gate, wait_seconds=seconds)
        await self._keep(run)

    def resume_bare(self) -> Step:
        return self.go_on(self.load())

    def send_raw(self) -> Step:
        if self.gated:
            return super().send_raw()
        self.replay(self.load())
        return None

    def build_redirection(self) -> Any:
        return build_answer([ERASE]).model_dump(mode="json")

    async def go_on(self, stored: Mapping[str, Any]) -> None:
        await self._agent.load_state(stored["state"])
        if self._tools is None:
            await self._keep(self._agent.run(task=None))
        else:
            paused = RunPaused.from_dict(stored["paused"])
            await self._keep(continue_run(self._agent, paused, self._tools))

    async def _keep(self, run: Any) -> None:
        """Await a run and store how it stands; nothing if it did not go on."""
        try:
            found = await run
        except RunPaused as paused:
            kept: dict[str, Any] = {"paused": paused.to_dict()}
        else:
            if found is None:
                return
            kept = {"paused": None, "final": found.messages[-1].to_text()}
        self.save({**kept, "state": dict(await self._agent.save_state())})

    def read_report(self) -> Report:
        kept = self.load()
        paused = kept["paused"] or {"answer": {"content": []}, "waiting": []}
        return Report(
            pending=[
                Pending(c["id"], c["name"], c["id"], json.loads(c["arguments"]))
                for c in paused["answer"]["content"]
            ],
            values=paused["waiting"],
            replies=[
                result["content"]
                for message in kept["state"]["llm_context"]["messages"]
                if message["type"] == "FunctionExecutionResultMessage"
                for result in message["content"]
            ],
            final=kept.get("final", ""),
        )


def build_tools(job: Job, gated: GatedBox) -> GateTools:
    """The tools behind the gate; a nested agent sits behind the tool `delegate`."""
    tools, describe = list(gated.tools.values()), gated.extend(describe_call)
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
    functions = build_toolbox(job).functions.values()
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
