"""Google ADK: an agent whose tools ask for a confirmation, bare as the documentation
shows, or through Counterseal's adapter."""

from __future__ import annotations

import logging
import os
import sqlite3
import warnings
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

os.environ["OTEL_SDK_DISABLED"] = "true"  # before the package is imported

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.session import Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from counterseal_client.adapters.google_adk import (
    CONFIRMATION,
    GateTool,
    describe_call,
    list_confirmations,
    resume_session,
)
from counterseal_client.gate import Gate

from ..scripting import DONE, WORDS, Script, build_turn, get_turn
from ..worker import Job, Pending, Report
from .driver import ASK, ERASE, MALFORMED, FileDriver
from .toolbox import GatedBox, build_toolbox

logging.getLogger("google_adk").setLevel(logging.CRITICAL)
warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\]")

APP, USER = "kit", "ada"
REDIRECTION = {"name": ERASE["name"], "args": ERASE["args"]}
TRANSFER = [build_turn(("outer_1", "transfer_to_agent", {"agent_name": "inner"}))]


class ScriptedModel(BaseLlm):
    script: Script

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        turn = sum(content.role == "model" for content in llm_request.contents)
        calls = get_turn(self.script, turn)
        parts = [types.Part(text=WORDS if calls else DONE)]
        parts += [build_call(call) for call in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def build_call(call: dict[str, Any]) -> types.Part:
    found = types.FunctionCall(id=call["id"], name=call["name"], args=call["args"])
    return types.Part(function_call=found)


def build_answer(call_id: str, response: dict[str, Any]) -> types.Part:
    return types.Part(
        function_response=types.FunctionResponse(
            id=call_id, name=CONFIRMATION, response=response
        )
    )


class Driver(FileDriver):
    """The agent of one job, with its session in SQLite."""

    def open(self, file: Path) -> None:
        self._service = SqliteSessionService(str(file))
        agent = build_agents(self.job, self.gated)
        # Only a resumable app goes on after a crash without a message.
        resumable = ResumabilityConfig(is_resumable=self.job.action == "rerun")
        app = App(name=APP, root_agent=agent, resumability_config=resumable)
        self._runner = Runner(app=app, session_service=self._service)

    async def start_run(self) -> None:
        await self._service.create_session(
            app_name=APP, user_id=USER, session_id=self.job.thread
        )
        await self._send([types.Part(text=ASK)])

    async def repeat_run(self) -> None:
        """The process died after the tool had asked, and before the session had its
        answer."""
        events = (await self._load()).events
        asked = next(event for event in events if event.get_function_calls())
        with sqlite3.connect(self.job.store) as database:
            query = "DELETE FROM events WHERE timestamp > ?"
            database.execute(query, [asked.timestamp])
        database.close()
        await self._send(None, asked.invocation_id)

    async def resume_gated(self, gate: Gate) -> None:
        await resume_session(
            self._runner,
            gate,
            user_id=USER,
            session_id=self.job.thread,
            wait_seconds=self.job.wait_seconds,
        )

    async def resume_bare(self) -> None:
        parts = []
        for call in (await self.read_report()).pending:
            verdict = self.job.find_answer(call.args)["verdict"]
            answer = {"confirmed": verdict == "approve"}
            parts.append(build_answer(call.interrupt_id, answer))
        await self._send(parts)

    async def approve_all(self) -> None:
        await self._send_answers({"confirmed": True})

    async def send_raw(self) -> None:
        raw: dict[str, dict[str, Any]] = {
            "approval": {"confirmed": True},
            "redirection": {"confirmed": True, "payload": REDIRECTION},
            "malformed": {"confirmed": MALFORMED},
        }
        await self._send_answers(raw[self.job.raw], self.job.interrupt_ids)

    async def _send_answers(
        self, answer: dict[str, Any], ids: Sequence[str] = ()
    ) -> None:
        """Send one answer to these confirmations, or to all that wait."""
        waiting = [call.interrupt_id for call in (await self.read_report()).pending]
        await self._send([build_answer(call_id, answer) for call_id in ids or waiting])

    async def _send(
        self, parts: list[types.Part] | None, invocation_id: str = ""
    ) -> None:
        async for _ in self._runner.run_async(
            user_id=USER,
            session_id=self.job.thread,
            new_message=types.Content(role="user", parts=parts) if parts else None,
            invocation_id=invocation_id or None,
        ):
            pass

    async def _load(self) -> Session:
        session = await self._service.get_session(
            app_name=APP, user_id=USER, session_id=self.job.thread
        )
        assert session is not None
        return session

    async def read_report(self) -> Report:
        events = (await self._load()).events
        confirmations = list_confirmations(events)
        return Report(
            pending=[read_pending(call) for call in confirmations],
            values=[
                (call.args or {})["toolConfirmation"].get("payload")
                for call in confirmations
            ],
            replies=[
                " ".join(map(str, (found.response or {}).values()))
                for event in events
                for found in event.get_function_responses()
                if found.name != CONFIRMATION
            ],
            final=read_words(events[-1]),
        )


def read_pending(confirmation: types.FunctionCall) -> Pending:
    original = (confirmation.args or {})["originalFunctionCall"]
    return Pending(
        str(confirmation.id), original["name"], original["id"], original["args"]
    )


def read_words(event: Event) -> str:
    parts = event.content.parts if event.content else None
    return " ".join(part.text for part in parts or [] if part.text)


def build_agents(job: Job, gated: GatedBox | None) -> LlmAgent:
    """The agent; a nested one is a sub-agent to which the outer one transfers."""
    model = ScriptedModel(model="scripted", script=job.script)
    agent = LlmAgent(name="inner", model=model, tools=build_tools(job, gated))
    if not job.nested:
        return agent
    outer = ScriptedModel(model="scripted", script=TRANSFER)
    return LlmAgent(name="outer", model=outer, sub_agents=[agent])


def build_tools(job: Job, gated: GatedBox | None) -> list[BaseTool]:
    """The tools, behind the gate or confirmed as the documentation shows."""
    if gated is not None:
        describe = gated.extend(describe_call)
        return [GateTool(tool, describe=describe) for tool in gated.tools.values()]

    def ask(**_: Any) -> bool:
        job.ledger.mark("asked")
        return True

    functions = build_toolbox(job).functions.values()
    return [FunctionTool(function, require_confirmation=ask) for function in functions]
