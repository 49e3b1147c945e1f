"""Microsoft Agent Framework: an agent whose tools require an approval, bare as the
documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from typing import Any

os.environ["AGENT_FRAMEWORK_USER_AGENT_DISABLED"] = "true"  # before the import
os.environ["ENABLE_INSTRUMENTATION"] = "false"

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
    tool,
)

from counterseal_client.adapters.agent_framework import (
    build_agent_tool,
    build_tool,
    list_waiting,
    propose_calls,
    resume_run,
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


class ScriptedClient(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Says the next turn of its script; which one that is, the history tells."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Any, **_: Any
    ) -> ChatResponse:
        said = {c.call_id for m in messages for c in m.contents if c.call_id}
        turns = [turn for turn in self._script if turn[0]["id"] not in said]
        calls = [
            Content.from_function_call(
                call["id"], call["name"], arguments=json.dumps(call["args"])
            )
            for call in (turns or [[]])[0]
        ]
        words = Content.from_text(WORDS if calls else DONE)
        return ChatResponse(messages=[Message("assistant", [words, *calls])])


class AgentFrameworkDriver(StoredDriver):
    """The agent of one job, with its session in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent, self._tools = build_agents(job, self._gated)

    def start_run(self) -> None:
        session = AgentSession(session_id=self._job.thread)
        asyncio.run(self._run("Please do it.", session))

    def repeat_run(self) -> None:
        """A paused run never runs the code before the pause again, so
        this is the crash before it was stored."""
        self.start_run()

    def resume_run(self) -> None:
        before = self._store.load_state()
        if self._gated is None:
            asyncio.run(self._answer_bare())
        else:
            asyncio.run(self._resume(self._gated))
        if self._job.hostile:
            asyncio.run(self._replay(before))

    async def _resume(self, gated: GatedBox) -> None:
        session = self._load()
        response = await resume_run(
            self._agent,
            session,
            self._tools,
            gated.gate,
            wait_seconds=self._job.wait_seconds,
        )
        self._keep(session, response)

    async def _answer_bare(self) -> None:
        answers = []
        for request in self._load_requests():
            given = find_answer(self._job, request.function_call.parse_arguments())
            approved = given["verdict"] != "reject"
            answers.append(request.to_function_approval_response(approved))
        await self._run(Message("user", answers), self._load())

    async def _replay(self, before: str) -> None:
        """Hostile: run an older copy of the session, with an approval of all."""
        kept = self._store.load_state()
        self._store.save_state(before)
        answers = [
            request.to_function_approval_response(approved=True)
            for request in self._load_requests()
        ]
        await self._run(Message("user", answers), self._load())
        self._store.save_state(kept)

    def send_raw(self) -> None:
        """A late answer is the first one again; a redirection names
        another tool under the id of what waits."""
        calls = self._load_requests() or json.loads(self._store.load_state())["first"]
        answers: list[Any] = []
        for one in calls:
            request = one if isinstance(one, Content) else Content.from_dict(one)
            if self._job.raw == "redirection":
                request.function_call.name = "erase_note"
                request.function_call.arguments = json.dumps({"to": "ann"})
            answers.append(request.to_function_approval_response(approved=True))
        if self._job.raw == "malformed":
            answers = ["yes, please"]
        asyncio.run(self._run(Message("user", answers), self._load()))

    async def _run(self, message: Any, session: AgentSession) -> None:
        response = await self._agent.run(message, session=session)
        if self._gated:
            await propose_calls(response, session, self._tools)
        self._keep(session, response)

    def _keep(self, session: AgentSession, response: Any) -> None:
        text = self._store.load_state()
        kept = json.loads(text) if text else {"final": "", "requests": []}
        if response is not None:
            kept["requests"] = [one.to_dict() for one in response.user_input_requests]
            kept["final"] = response.text
        kept.setdefault("first", kept["requests"])
        self._store.save_state(json.dumps({**kept, "session": session.to_dict()}))

    def _load(self) -> AgentSession:
        return AgentSession.from_dict(json.loads(self._store.load_state())["session"])

    def _load_requests(self) -> list[Any]:
        kept = json.loads(self._store.load_state())["requests"]
        return [Content.from_dict(one) for one in kept]

    def read_report(self) -> Report:
        kept = json.loads(self._store.load_state())
        requests, session = self._load_requests(), self._load()
        waiting = list_waiting(session)
        history = session.state.get("in_memory", {}).get("messages", [])
        return Report(
            "suspended" if requests else "finished",
            pending=[read_pending(one) for one in requests],
            values=waiting,
            replies=[
                str(content.result)
                for message in history
                for content in message.contents
                if content.type == "function_result"
            ],
            final="" if requests else kept["final"],
        )


def read_pending(request: Any) -> Pending:
    """A call that waits for an approval."""
    call = request.function_call
    return Pending(request.id, call.name, call.call_id, call.parse_arguments() or {})


def build_agents(
    job: Job, gated: GatedBox | None
) -> tuple[Agent[Any], list[FunctionTool]]:
    """The agent with its tools; a nested one sits behind the tool `delegate`."""
    tools = build_tools(job, gated)
    agent: Agent[Any] = Agent(ScriptedClient(job.script), name="inner", tools=tools)
    if not job.nested:
        return agent, tools
    words = "Hand a task to a nested agent."
    delegate = (
        build_agent_tool(agent, tools, name="delegate", description=words)
        if gated
        else agent.as_tool(name="delegate", description=words)
    )
    return Agent(ScriptedClient(DELEGATE), name="outer", tools=[delegate]), [delegate]


def build_tools(job: Job, gated: GatedBox | None) -> list[FunctionTool]:
    """The tools, behind the gate or approved as the documentation shows."""
    if gated is not None:

        def describe(name: str, arguments: dict[str, Any], call_id: str) -> Details:
            return gated.add_details({"rationale": WORDS})

        return [build_tool(one, describe=describe) for one in gated.tools.values()]
    box = build_toolbox(job)
    return [
        tool(getattr(box, name), approval_mode="always_require") for name in TOOL_NAMES
    ]


class AgentFrameworkAgent:
    """The agent, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(AgentFrameworkDriver(job), job)


def build_agent(variant: str) -> AgentFrameworkAgent:
    """The agent; there is one variant."""
    return AgentFrameworkAgent()
