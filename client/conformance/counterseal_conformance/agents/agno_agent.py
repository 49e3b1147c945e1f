"""Agno: an agent whose tools pause the run for a confirmation, bare as the
documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

os.environ["AGNO_TELEMETRY"] = "false"  # before the package is imported

from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse
from agno.run.requirement import RunRequirement
from agno.team import Team
from agno.tools import tool as confirm_tool

from counterseal_client.adapters.agno import build_tool, propose_calls, resume_run
from counterseal_client.gate import Gate

from ..scripting import DONE, WORDS, Script, build_turn, get_turn
from ..worker import Job, Pending, Report
from .driver import ASK, ERASE, MALFORMED, FileDriver
from .toolbox import GatedBox, build_toolbox

DELEGATE = [
    build_turn(
        ("outer_1", "delegate_task_to_member", {"member_id": "inner", "task": "Do it."})
    )
]


class ScriptedModel(Model):
    def __init__(self, script: Script) -> None:
        super().__init__(id="scripted")
        self._script = script

    def invoke(self, messages: list[Message], *_: Any, **__: Any) -> ModelResponse:
        turn = sum(message.role == "assistant" for message in messages)
        calls = get_turn(self._script, turn)
        return ModelResponse(
            role="assistant",
            content=WORDS if calls else DONE,
            tool_calls=[build_call(call) for call in calls],
        )

    async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return self.invoke(*args, **kwargs)

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Iterator[ModelResponse]:
        raise NotImplementedError

    def ainvoke_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ModelResponse]:
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **_: Any) -> ModelResponse:
        raise NotImplementedError

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        raise NotImplementedError


def build_call(call: dict[str, Any]) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": json.dumps(call["args"])}
    return {"id": call["id"], "type": "function", "function": function}


class Driver(FileDriver):
    """The agent of one job, with its sessions in SQLite."""

    def open(self, file: Path) -> None:
        self._agent = build_agents(self.job, self.gated, SqliteDb(db_file=str(file)))

    def start_run(self) -> None:
        self._propose(self._agent.run(ASK, session_id=self.job.thread))

    def _propose(self, run: Any) -> list[Any]:
        if self.gated is None:
            return []
        tools = list(self.gated.tools.values())
        return propose_calls(run, tools, describe=self.gated.describe)

    def repeat_run(self) -> None:
        self._agent.delete_session(self.job.thread)
        self.start_run()

    def resume_gated(self, gate: Gate) -> None:
        assert self.gated is not None
        resume_run(
            self._agent,
            self._load(),
            list(self.gated.tools.values()),
            gate,
            wait_seconds=self.job.wait_seconds,
            describe=self.gated.describe,
        )

    def resume_bare(self) -> None:
        run = self._load()
        for requirement in run.active_requirements:
            given = self.job.find_answer(requirement.tool_execution.tool_args)
            if given["verdict"] == "reject":
                requirement.reject(given.get("reason") or "No.")
            else:
                requirement.confirm()
        self._continue(run.requirements)

    def approve_all(self) -> None:
        requirements = self._load().requirements
        for requirement in requirements:
            requirement.confirm()
        self._continue(requirements)

    def send_raw(self) -> None:
        """A late answer is the first one again; a redirection names another tool under
        the id of what waits."""
        requirements: list[Any] = copy.deepcopy(self._load().requirements or [])
        for requirement in requirements:
            execution = requirement.tool_execution
            if self.job.raw == "redirection":
                execution.tool_name, execution.tool_args = ERASE["name"], ERASE["args"]
            requirement.confirmation = execution.confirmed = True
            if self.job.interrupt_ids:
                execution.requires_confirmation, execution.result = True, None
        if self.job.raw == "malformed":
            requirements = [MALFORMED]
        self._continue(requirements)

    def _continue(self, requirements: list[Any] | None) -> None:
        self._agent.continue_run(
            run_id=self._load().run_id,
            session_id=self.job.thread,
            requirements=requirements,
        )

    def _load(self) -> Any:
        run = self._agent.get_last_run_output(session_id=self.job.thread)
        assert run is not None
        return run

    def read_report(self) -> Report:
        run = self._load()
        active = run.active_requirements
        return Report(
            pending=[read_pending(one) for one in active],
            values=self._propose(run) if active else [],
            replies=[str(m.content) for m in run.messages or [] if m.role == "tool"],
            final=str(run.content or ""),
        )


def read_pending(requirement: RunRequirement) -> Pending:
    execution = requirement.tool_execution
    call_id = str(execution.tool_call_id)
    return Pending(
        call_id, str(execution.tool_name), call_id, execution.tool_args or {}
    )


def build_agents(job: Job, gated: GatedBox | None, store: SqliteDb) -> Agent | Team:
    """The agent; a nested one is the member of a team."""
    agent = Agent(
        id="inner",
        name="inner",
        model=ScriptedModel(job.script),
        tools=build_tools(job, gated),
        db=store,
        telemetry=False,
    )
    if not job.nested:
        return agent
    model = ScriptedModel(DELEGATE)
    return Team(id="outer", members=[agent], model=model, db=store, telemetry=False)


def build_tools(job: Job, gated: GatedBox | None) -> list[Any]:
    """The tools, behind the gate or confirmed as the documentation shows."""
    if gated is not None:
        return [
            build_tool(tool, describe=gated.describe) for tool in gated.tools.values()
        ]
    functions = build_toolbox(job).functions.values()
    return [confirm_tool(requires_confirmation=True)(one) for one in functions]
