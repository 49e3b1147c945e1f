"""Microsoft Agent Framework: an agent whose tools require an approval, bare as the
documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

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
from counterseal_client.gate import Gate

from ..scripting import DONE, WORDS, Script, find_turn
from ..worker import Job, Pending, Report
from .driver import ASK, ERASE, MALFORMED, Step, StoredDriver
from .toolbox import DELEGATE, GatedBox, build_toolbox


class ScriptedClient(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Any, **_: Any
    ) -> ChatResponse:
        said = {c.call_id for m in messages for c in m.contents if c.call_id}
        calls = [
            Content.from_function_call(
                call["id"], call["name"], arguments=json.dumps(call["args"])
            )
            for call in find_turn(self._script, said)
        ]
        words = Content.from_text(WORDS if calls else DONE)
        return ChatResponse(messages=[Message("assistant", [words, *calls])])


class Driver(StoredDriver):
    """The agent of one job, with its session in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent, self._tools = build_agents(job, self.gated)

    def start_run(self) -> Step:
        return self._run(ASK, AgentSession(session_id=self.job.thread))

    async def resume_gated(self, gate: Gate) -> None:
        session, seconds = self._load_session(), self.job.wait_seconds
        response = await resume_run(
            self._agent, session, self._tools, gate, wait_seconds=seconds
        )
        self._keep(session, response)

    def resume_bare(self) -> Step:
        answers = []
        for request in load_requests(self.load()):
            given = self.job.find_answer(request.function_call.parse_arguments())
            approved = given["verdict"] != "reject"
            answers.append(request.to_function_approval_response(approved))
        return self._send(answers)

    def approve_all(self, older: Any) -> Step:
        self.save(older)
        return self._send(approve_requests(load_requests(older)))

    def send_raw(self) -> Step:
        """A late answer is the first one again; a redirection names another tool under
        the id of what waits."""
        requests = load_requests(self.load()) or load_requests(self.load_first())
        if self.job.raw == "redirection":
            for request in requests:
                request.function_call.name = ERASE["name"]
                request.function_call.arguments = json.dumps(ERASE["args"])
        malformed = self.job.raw == "malformed"
        return self._send([MALFORMED] if malformed else approve_requests(requests))

    def _send(self, answers: list[Any]) -> Step:
        return self._run(Message("user", answers), self._load_session())

    async def _run(self, message: Any, session: AgentSession) -> None:
        response = await self._agent.run(message, session=session)
        if self.gated:
            await propose_calls(response, session, self._tools)
        self._keep(session, response)

    def _keep(self, session: AgentSession, response: Any) -> None:
        kept = self.load()
        if response is not None:
            requests = [one.to_dict() for one in response.user_input_requests]
            kept = {"requests": requests, "final": response.text}
        self.save({**kept, "session": session.to_dict()})

    def _load_session(self) -> AgentSession:
        return AgentSession.from_dict(self.load()["session"])

    def read_report(self) -> Report:
        kept, session = self.load(), self._load_session()
        history = session.state.get("in_memory", {}).get("messages", [])
        return Report(
            pending=[read_pending(one) for one in load_requests(kept)],
            values=list_waiting(session),
            replies=[
                str(content.result)
                for message in history
                for content in message.contents
                if content.type == "function_result"
            ],
            final=kept["final"],
        )


def load_requests(stored: Any) -> list[Any]:
    return [Content.from_dict(one) for one in stored["requests"]]


def approve_requests(requests: list[Any]) -> list[Any]:
    return [one.to_function_approval_response(approved=True) for one in requests]


def read_pending(request: Any) -> Pending:
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
        return [
            build_tool(one, describe=gated.describe) for one in gated.tools.values()
        ]
    functions = build_toolbox(job).functions.values()
    return [tool(function, approval_mode="always_require") for function in functions]
