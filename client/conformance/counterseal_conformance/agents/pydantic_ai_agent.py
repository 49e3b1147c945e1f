"""Pydantic AI: an agent whose tools are deferred for approval, bare as the
documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import (
    DeferredToolRequests,
    DeferredToolResults,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from counterseal_client.adapters.pydantic_ai import (
    build_tool,
    describe_call,
    resume_agent,
    run_nested,
)
from counterseal_client.gate import Gate

from ..scripting import DONE, WORDS, Script, get_turn
from ..worker import Job, Pending, Report
from .driver import ASK, ERASE, MALFORMED, StoredDriver
from .toolbox import DELEGATE, GatedBox, build_toolbox


class Driver(StoredDriver):
    """The agent of one job, with its conversation in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent = build_agents(job, self.gated)

    def start_run(self) -> None:
        self._keep(self._agent.run_sync(ASK, conversation_id=self.job.thread))

    def repeat_run(self) -> None:
        self._keep(self._agent.run_sync(conversation=self._restore(self.load())))

    def resume_gated(self, gate: Gate) -> None:
        before, seconds = self._restore(self.load()), self.job.wait_seconds
        found = resume_agent(self._agent, before, gate, wait_seconds=seconds)
        if found is not None:
            self._keep(found)

    def resume_bare(self) -> None:
        requests = self._restore(self.load()).deferred_tool_requests
        results = DeferredToolResults()
        for call in requests.approvals if requests else []:
            given = self.job.find_answer(call.args_as_dict())
            results.approvals[call.tool_call_id] = (
                ToolDenied(given.get("reason") or "No.")
                if given["verdict"] == "reject"
                else ToolApproved(override_args=given.get("args"))
            )
        self._send(self.load(), results)

    def approve_all(self, older: Any) -> None:
        requests = self._restore(older).deferred_tool_requests or DeferredToolRequests()
        self._send(older, requests.build_results(approve_all=True))

    def send_raw(self) -> None:
        waiting = [call.interrupt_id for call in self.read_report().pending]
        answers: dict[str, Any] = {
            "approval": True,
            "redirection": ToolApproved(override_args=ERASE["args"]),
            "malformed": MALFORMED,
        }
        raw = answers[self.job.raw]
        given = dict.fromkeys(self.job.interrupt_ids or waiting, raw)
        self._send(self.load(), DeferredToolResults(approvals=given))

    def read_report(self) -> Report:
        conversation = self._restore(self.load())
        requests = conversation.deferred_tool_requests or DeferredToolRequests()
        last = conversation.messages[-1]
        return Report(
            pending=[
                Pending(c.tool_call_id, c.tool_name, c.tool_call_id, c.args_as_dict())
                for c in requests.approvals
            ],
            values=list(requests.metadata.values()),
            replies=list_replies(conversation.messages),
            final=(last.text or "") if isinstance(last, ModelResponse) else "",
        )

    def _send(self, stored: Any, results: DeferredToolResults) -> None:
        found = self._agent.run_sync(
            conversation=self._restore(stored), deferred_tool_results=results
        )
        self._keep(found)

    def _keep(self, found: Any) -> None:
        self.save(ConversationTypeAdapter.dump_json(found.conversation).decode())

    def _restore(self, stored: Any) -> Conversation:
        return ConversationTypeAdapter.validate_json(stored)


def list_replies(messages: list[ModelMessage]) -> list[str]:
    """What the model read as the results of its calls."""
    return [
        part.model_response_str()
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def build_agents(job: Job, gated: GatedBox | None) -> Agent[None, Any]:
    """The agent; a nested one sits behind the tool `delegate`."""
    agent = build_pausing_agent(job.script, [build_tools(job, gated)])
    if not job.nested:
        return agent
    outer = build_pausing_agent(DELEGATE, [])

    @outer.tool
    async def delegate(ctx: RunContext[None], task: str) -> str:
        """Hand a task to a nested agent."""
        if job.gated:
            return str(await run_nested(agent, ctx, task))
        return str((await agent.run(task)).output)

    return outer


def build_pausing_agent(
    script: Script, toolsets: list[AbstractToolset[None]]
) -> Agent[None, Any]:
    return Agent(
        FunctionModel(build_model(script)),
        output_type=[str, DeferredToolRequests],
        toolsets=toolsets,
    )


def build_model(script: Script) -> Callable[..., ModelResponse]:
    """A model that says the next turn; which one that is, the history tells."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        calls = [
            ToolCallPart(call["name"], call["args"], call["id"])
            for call in get_turn(script, turn)
        ]
        return ModelResponse(parts=[TextPart(WORDS if calls else DONE), *calls])

    return respond


def build_tools(job: Job, gated: GatedBox | None) -> AbstractToolset[None]:
    """The tools, behind the gate or deferred as the documentation shows."""
    if gated is not None:
        describe = gated.extend(describe_call)
        tools = [build_tool(tool, describe=describe) for tool in gated.tools.values()]
        return FunctionToolset(tools)

    def ask(*_: object) -> bool:
        job.ledger.mark("asked")
        return True

    functions = list(build_toolbox(job).functions.values())
    return FunctionToolset(functions).approval_required(ask)
