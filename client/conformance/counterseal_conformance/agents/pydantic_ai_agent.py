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


class PydanticAIDriver(StoredDriver):
    """The agent of one job, with its conversation in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent = build_agents(job, self._gated)

    def start_run(self) -> None:
        prompt = "Please do it."
        self._keep(self._agent.run_sync(prompt, conversation_id=self._job.thread))

    def repeat_run(self) -> None:
        self._keep(self._agent.run_sync(conversation=self._load()))

    def resume_run(self) -> None:
        before = self._load()
        if self._gated is None:
            self._send(self._build_bare(before))
        else:
            gate, seconds = self._gated.gate, self._job.wait_seconds
            found = resume_agent(self._agent, before, gate, wait_seconds=seconds)
            if found is not None:
                self._keep(found)
        if self._job.hostile:
            self._replay(before)

    def send_raw(self) -> None:
        waiting = [call.interrupt_id for call in self.read_report().pending]
        answers: dict[str, Any] = {
            "approval": True,
            "redirection": ToolApproved(override_args={"to": "ann"}),
            "malformed": "yes, please",
        }
        given = dict.fromkeys(
            self._job.interrupt_ids or waiting, answers[self._job.raw]
        )
        self._send(DeferredToolResults(approvals=given))

    def read_report(self) -> Report:
        conversation = self._load()
        requests = conversation.deferred_tool_requests or DeferredToolRequests()
        last = conversation.messages[-1]
        return Report(
            "suspended" if requests.approvals else "finished",
            pending=[
                Pending(c.tool_call_id, c.tool_name, c.tool_call_id, c.args_as_dict())
                for c in requests.approvals
            ],
            values=list(requests.metadata.values()),
            replies=list_replies(conversation.messages),
            final=(last.text or "") if isinstance(last, ModelResponse) else "",
        )

    def _build_bare(self, conversation: Conversation) -> DeferredToolResults:
        """The answers of the job to what waits."""
        requests = conversation.deferred_tool_requests
        results = DeferredToolResults()
        for call in requests.approvals if requests else []:
            given = find_answer(self._job, call.args_as_dict())
            results.approvals[call.tool_call_id] = (
                ToolDenied(given.get("reason") or "No.")
                if given["verdict"] == "reject"
                else ToolApproved(override_args=given.get("args"))
            )
        return results

    def _send(self, results: DeferredToolResults) -> None:
        conversation = self._load()
        found = self._agent.run_sync(
            conversation=conversation, deferred_tool_results=results
        )
        self._keep(found)

    def _replay(self, before: Conversation) -> None:
        """Hostile: run an older copy of the conversation, with an approval of all that
        waited in it."""
        requests = before.deferred_tool_requests or DeferredToolRequests()
        approved = requests.build_results(approve_all=True)
        self._agent.run_sync(conversation=before, deferred_tool_results=approved)

    def _keep(self, found: Any) -> None:
        self._store.save_state(
            ConversationTypeAdapter.dump_json(found.conversation).decode()
        )

    def _load(self) -> Conversation:
        return ConversationTypeAdapter.validate_json(self._store.load_state())


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
    """An agent that says its script."""
    return Agent(
        FunctionModel(build_model(script)),
        output_type=[str, DeferredToolRequests],
        toolsets=toolsets,
    )


def build_model(script: Script) -> Callable[..., ModelResponse]:
    """A model that says the next turn; which one that is, the history tells."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn >= len(script):
            return ModelResponse(parts=[TextPart(DONE)])
        calls = [
            ToolCallPart(call["name"], call["args"], call["id"])
            for call in script[turn]
        ]
        return ModelResponse(parts=[TextPart(WORDS), *calls])

    return respond


def build_tools(job: Job, gated: GatedBox | None) -> AbstractToolset[None]:
    """The tools, behind the gate or deferred as the documentation shows."""
    if gated is not None:

        def describe(response: ModelResponse, call_id: str) -> Details:
            return gated.add_details(describe_call(response, call_id))

        tools = [build_tool(tool, describe=describe) for tool in gated.tools.values()]
        return FunctionToolset(tools)

    def ask(*_: object) -> bool:
        job.ledger.mark("asked")
        return True

    box = build_toolbox(job)
    functions = [getattr(box, name) for name in TOOL_NAMES]
    return FunctionToolset(functions).approval_required(ask)


class PydanticAIAgent:
    """The agent, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(PydanticAIDriver(job), job)


def build_agent(variant: str) -> PydanticAIAgent:
    """The agent; there is one variant."""
    return PydanticAIAgent()
