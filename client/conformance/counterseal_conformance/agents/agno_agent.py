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
from counterseal_client.operations import Details

from ..scripting import DONE, TOOL_NAMES, WORDS, Script, build_turn
from ..worker import Job, Pending, Report
from .toolbox import GatedBox, build_toolbox, copy_store, find_answer, run_action

DELEGATE = [
    build_turn(
        ("outer_1", "delegate_task_to_member", {"member_id": "inner", "task": "Do it."})
    )
]


class ScriptedModel(Model):
    """Says the next turn of its script; which one that is, the history tells."""

    def __init__(self, script: Script) -> None:
        super().__init__(id="scripted")
        self._script = script

    def invoke(self, messages: list[Message], *_: Any, **__: Any) -> ModelResponse:
        turn = sum(message.role == "assistant" for message in messages)
        calls = self._script[turn] if turn < len(self._script) else []
        return ModelResponse(
            role="assistant",
            content=WORDS if calls else DONE,
            tool_calls=[build_call(call) for call in calls],
        )

    async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return self.invoke(*args, **kwargs)

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Iterator[ModelResponse]:
        """The kit streams nothing."""
        raise NotImplementedError

    def ainvoke_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ModelResponse]:
        """The kit streams nothing."""
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **_: Any) -> ModelResponse:
        raise NotImplementedError

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        raise NotImplementedError


def build_call(call: dict[str, Any]) -> dict[str, Any]:
    """One of the model's calls."""
    function = {"name": call["name"], "arguments": json.dumps(call["args"])}
    return {"id": call["id"], "type": "function", "function": function}


class AgnoDriver:
    """The agent of one job, with its sessions in SQLite."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._gated = GatedBox(job) if job.gated else None
        self._agent = build_agents(job, self._gated, SqliteDb(db_file=str(job.store)))

    @property
    def _tools(self) -> list[Any]:
        return list(self._gated.tools.values()) if self._gated else []

    def _describe(self, tool: str, arguments: dict[str, Any], call_id: str) -> Details:
        assert self._gated is not None
        return describe_call(self._gated)(tool, arguments, call_id)

    def start_run(self) -> None:
        run = self._agent.run("Please do it.", session_id=self._job.thread)
        if self._gated:
            propose_calls(run, self._tools, describe=self._describe)

    def repeat_run(self) -> None:
        """A paused run never runs the code before the pause again, so
        this is the crash before it was stored."""
        self._agent.delete_session(self._job.thread)
        self.start_run()

    def resume_run(self) -> None:
        older = copy_store(self._job)
        run = self._load()
        if self._gated:
            resume_run(
                self._agent,
                run,
                self._tools,
                self._gated.gate,
                wait_seconds=self._job.wait_seconds,
                describe=self._describe,
            )
        else:
            for requirement in run.active_requirements:
                self._answer_bare(requirement)
            self._continue(run.requirements)
        if self._job.hostile:
            self._replay(older)

    def _answer_bare(self, requirement: RunRequirement) -> None:
        given = find_answer(self._job, requirement.tool_execution.tool_args)
        if given["verdict"] == "reject":
            requirement.reject(given.get("reason") or "No.")
        else:
            requirement.confirm()

    def _replay(self, older: Path) -> None:
        """Hostile: confirm all that waited in an older copy of the run."""
        kept = self._agent
        self._agent = build_agents(self._job, self._gated, SqliteDb(db_file=str(older)))
        requirements = self._load().requirements
        for requirement in requirements:
            requirement.confirm()
        self._continue(requirements)
        self._agent = kept

    def send_raw(self) -> None:
        """A late answer is the first one again; a redirection names
        another tool under the id of what waits."""
        requirements: list[Any] = copy.deepcopy(self._load().requirements or [])
        for requirement in requirements:
            execution = requirement.tool_execution
            if self._job.raw == "redirection":
                execution.tool_name, execution.tool_args = "erase_note", {"to": "ann"}
            requirement.confirmation = execution.confirmed = True
            if self._job.interrupt_ids:
                execution.requires_confirmation, execution.result = True, None
        if self._job.raw == "malformed":
            requirements = ["yes, please"]
        self._continue(requirements)

    def _continue(self, requirements: list[Any] | None) -> None:
        self._agent.continue_run(
            run_id=self._load().run_id,
            session_id=self._job.thread,
            requirements=requirements,
        )

    def _load(self) -> Any:
        run = self._agent.get_last_run_output(session_id=self._job.thread)
        assert run is not None
        return run

    def read_report(self) -> Report:
        run = self._load()
        messages = run.messages or []
        active = run.active_requirements
        values = []
        if self._gated and active:
            values = propose_calls(run, self._tools, describe=self._describe)
        return Report(
            "suspended" if active else "finished",
            pending=[read_pending(one) for one in active],
            values=values,
            replies=[str(m.content) for m in messages if m.role == "tool"],
            final="" if active else str(run.content or ""),
        )


def read_pending(requirement: RunRequirement) -> Pending:
    """A call that waits for a confirmation."""
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


def describe_call(gated: GatedBox) -> Any:
    """The details of the calls of a job."""

    def describe(tool: str, arguments: dict[str, Any], call_id: str) -> Details:
        return gated.add_details({"rationale": WORDS})

    return describe


def build_tools(job: Job, gated: GatedBox | None) -> list[Any]:
    """The tools, behind the gate or confirmed as the documentation shows."""
    if gated is not None:
        describe = describe_call(gated)
        return [build_tool(tool, describe=describe) for tool in gated.tools.values()]
    box = build_toolbox(job)
    return [
        confirm_tool(requires_confirmation=True)(getattr(box, name))
        for name in TOOL_NAMES
    ]


class AgnoAgent:
    """The agent, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(AgnoDriver(job), job)


def build_agent(variant: str) -> AgnoAgent:
    """The agent; there is one variant."""
    return AgnoAgent()
