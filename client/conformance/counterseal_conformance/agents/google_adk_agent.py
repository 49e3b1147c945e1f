"""Google ADK: an agent whose tools ask for a confirmation, bare as the documentation
shows, or through Counterseal's adapter."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import warnings
from collections.abc import AsyncGenerator
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
from counterseal_client.operations import Details

from ..scripting import DONE, TOOL_NAMES, WORDS, Script, build_turn
from ..worker import Job, Pending, Report
from .toolbox import GatedBox, build_toolbox, copy_store, find_answer, run_action

logging.getLogger("google_adk").setLevel(logging.CRITICAL)
warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\]")

APP, USER = "kit", "ada"
TRANSFER = [build_turn(("outer_1", "transfer_to_agent", {"agent_name": "inner"}))]


class ScriptedModel(BaseLlm):
    """Says the next turn of its script; which one that is, the history tells."""

    script: Script

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        turn = sum(content.role == "model" for content in llm_request.contents)
        calls = self.script[turn] if turn < len(self.script) else []
        parts = [types.Part(text=WORDS if calls else DONE)]
        parts += [build_call(call) for call in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def build_call(call: dict[str, Any]) -> types.Part:
    """One of the model's calls."""
    found = types.FunctionCall(id=call["id"], name=call["name"], args=call["args"])
    return types.Part(function_call=found)


def build_answer(call_id: str, response: dict[str, Any]) -> types.Part:
    return types.Part(
        function_response=types.FunctionResponse(
            id=call_id, name=CONFIRMATION, response=response
        )
    )


class GoogleADKDriver:
    """The agent of one job, with its session in SQLite."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._gated = GatedBox(job) if job.gated else None
        self._service = SqliteSessionService(str(job.store))
        agent = build_agents(job, self._gated)
        # Only a resumable app goes on after a crash without a message.
        resumable = ResumabilityConfig(is_resumable=job.action == "rerun")
        self._app = App(name=APP, root_agent=agent, resumability_config=resumable)
        self._runner = Runner(app=self._app, session_service=self._service)

    def start_run(self) -> None:
        async def create() -> None:
            await self._service.create_session(
                app_name=APP, user_id=USER, session_id=self._job.thread
            )

        asyncio.run(create())
        self._send([types.Part(text="Please do it.")])

    def repeat_run(self) -> None:
        """The process died after the tool had asked, and before the
        session had its answer."""
        events = self._load().events
        asked = next(event for event in events if event.get_function_calls())
        with sqlite3.connect(self._job.store) as database:
            query = "DELETE FROM events WHERE timestamp > ?"
            database.execute(query, [asked.timestamp])
        database.close()
        self._send(None, asked.invocation_id)

    def resume_run(self) -> None:
        older = copy_store(self._job)
        if self._gated is None:
            parts = [
                build_answer(call.interrupt_id, self._decide_bare(call))
                for call in self.read_report().pending
            ]
            self._send(parts)
        else:
            asyncio.run(
                resume_session(
                    self._runner,
                    self._gated.gate,
                    user_id=USER,
                    session_id=self._job.thread,
                    wait_seconds=self._job.wait_seconds,
                )
            )
        if self._job.hostile:
            self._replay(older)

    def _replay(self, older: Path) -> None:
        """Hostile: confirm all that waited in an older copy of the session."""
        self._service = SqliteSessionService(str(older))
        self._runner = Runner(app=self._app, session_service=self._service)
        waiting = self.read_report().pending
        approved = {"confirmed": True}
        self._send([build_answer(call.interrupt_id, approved) for call in waiting])
        self._service = SqliteSessionService(str(self._job.store))

    def _decide_bare(self, call: Pending) -> dict[str, Any]:
        given = find_answer(self._job, call.args)
        return {"confirmed": given["verdict"] == "approve"}

    def send_raw(self) -> None:
        raw: dict[str, dict[str, Any]] = {
            "approval": {"confirmed": True},
            "redirection": {
                "confirmed": True,
                "payload": {"name": "erase_note", "args": {"to": "ann"}},
            },
            "malformed": {"confirmed": "yes, please"},
        }
        waiting = [call.interrupt_id for call in self.read_report().pending]
        ids = self._job.interrupt_ids or waiting
        self._send([build_answer(call_id, raw[self._job.raw]) for call_id in ids])

    def _send(self, parts: list[types.Part] | None, invocation_id: str = "") -> None:
        message = types.Content(role="user", parts=parts) if parts else None

        async def run() -> None:
            async for _ in self._runner.run_async(
                user_id=USER,
                session_id=self._job.thread,
                new_message=message,
                invocation_id=invocation_id or None,
            ):
                pass

        asyncio.run(run())

    def _load(self) -> Session:
        async def load() -> Session:
            session = await self._service.get_session(
                app_name=APP, user_id=USER, session_id=self._job.thread
            )
            assert session is not None
            return session

        return asyncio.run(load())

    def read_report(self) -> Report:
        events = self._load().events
        confirmations = list_confirmations(events)
        return Report(
            "suspended" if confirmations else "finished",
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
    """A call that waits for a confirmation."""
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

        def describe(event: Event | None, call_id: str) -> Details:
            return gated.add_details(describe_call(event, call_id))

        return [GateTool(tool, describe=describe) for tool in gated.tools.values()]

    def ask(**_: Any) -> bool:
        job.ledger.mark("asked")
        return True

    box = build_toolbox(job)
    return [
        FunctionTool(getattr(box, name), require_confirmation=ask)
        for name in TOOL_NAMES
    ]


class GoogleADKAgent:
    """The agent, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(GoogleADKDriver(job), job)


def build_agent(variant: str) -> GoogleADKAgent:
    """The agent; there is one variant."""
    return GoogleADKAgent()
