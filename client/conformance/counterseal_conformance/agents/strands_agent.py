"""Strands Agents: an agent whose hook interrupts before each call, bare as the
documentation shows, or through Counterseal's adapter."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry
from strands.models import Model
from strands.session.snapshot_session_manager import SnapshotSessionManager

from counterseal_client.adapters.strands import build_tool, describe_call, resume_agent
from counterseal_client.gate import Gate

from ..scripting import DONE, WORDS, Script, find_turn
from ..worker import Job, Pending, Report
from .driver import APPROVAL, ASK, ERASE, MALFORMED, FileDriver
from .tables import Table
from .toolbox import GatedBox, build_toolbox

DELEGATE = "delegate"


class ScriptedModel(Model):
    def __init__(self, script: Script) -> None:
        self._script = script

    def update_config(self, **_: Any) -> None:
        """There is nothing to configure."""

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        said = {
            block["toolUse"]["toolUseId"]
            for message in messages
            for block in message["content"]
            if "toolUse" in block
        }
        calls = find_turn(self._script, said)
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": WORDS if calls else DONE}}}
        yield {"contentBlockStop": {}}
        for call in calls:
            use = {"name": call["name"], "toolUseId": call["id"]}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            text = json.dumps(call["args"])
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": text}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


class TableStorage:
    """The storage of a session manager, in a file."""

    def __init__(self, file: Path) -> None:
        self._blobs = Table(file)

    async def write(self, key: str, data: bytes) -> None:
        self._blobs.put(key, data)

    async def read(self, key: str) -> bytes | None:
        found: bytes | None = self._blobs.get(key)
        return found

    async def delete(self, key: str) -> None:
        self._blobs.drop(key)

    async def list(self, query: str) -> Any:
        return [key for key in self._blobs.list_all() if key.startswith(query)]

    async def search(self, query: str) -> Any:
        raise NotImplementedError


class Driver(FileDriver):
    """The agent of one job, with its session in SQLite."""

    def open(self, file: Path) -> None:
        self._agent = build_agents(self.job, self.gated, file)

    def start_run(self) -> None:
        self._agent(ASK)
        self.copy_run().rename(self._first)

    @property
    def _first(self) -> Path:
        """The session as it was when it first paused."""
        return Path(self.job.folder) / "first.sqlite"

    def repeat_run(self) -> None:
        """The response to an interrupt is needed to run a tool again, so this is the
        crash before the session was stored."""
        self.job.store.unlink()
        self.open(self.job.store)
        self._agent(ASK)

    def resume_gated(self, gate: Gate) -> None:
        resume_agent(self._agent, gate, wait_seconds=self.job.wait_seconds)

    def resume_bare(self) -> None:
        waiting = self._list_open().items()
        find = self.job.find_answer
        self._answer({key: find(found.reason["args"]) for key, found in waiting})

    def approve_all(self) -> None:
        self._answer(dict.fromkeys(self._list_open(), APPROVAL))

    def send_raw(self) -> None:
        """A late answer is one to an older copy of the session, and a redirection a
        stored call of another tool."""
        if self.job.interrupt_ids:
            self.replay(self._first)
            return
        if self.job.raw == "redirection":
            redirect_call(self.job.store)
            self.open(self.job.store)
        answer = MALFORMED if self.job.raw == "malformed" else APPROVAL
        self._answer(dict.fromkeys(self._list_open(), answer))

    def _answer(self, answers: dict[str, Any]) -> None:
        self._agent(
            [
                {"interruptResponse": {"interruptId": key, "response": answer}}
                for key, answer in answers.items()
            ]
        )

    def _list_open(self) -> dict[str, Any]:
        state = self._agent._interrupt_state
        return state.interrupts if state.activated else {}

    def read_report(self) -> Report:
        waiting, messages = self._list_open(), self._agent.messages
        blocks = [block for message in messages for block in message["content"]]
        return Report(
            pending=[read_pending(key, found) for key, found in waiting.items()],
            values=[found.reason for found in waiting.values()],
            replies=[
                str(block["toolResult"]["content"])
                for block in blocks
                if "toolResult" in block
            ],
            final=blocks[-1].get("text", ""),
        )


def read_pending(interrupt_id: str, found: Any) -> Pending:
    reason = found.reason
    call_id = reason.get("tool_call_id", "")
    return Pending(interrupt_id, reason["tool"], call_id, reason.get("args", {}))


def redirect_call(store: Path) -> None:
    """Hostile: let the stored call be one of another tool."""

    def change(value: Any) -> Any:
        if isinstance(value, dict):
            if value.get("name") == "send_note" and "input" in value:
                return {**value, "name": ERASE["name"], "input": ERASE["args"]}
            return {key: change(one) for key, one in value.items()}
        return [change(one) for one in value] if isinstance(value, list) else value

    table = Table(store)
    for key, data in table.list_all().items():
        table.put(key, json.dumps(change(json.loads(data))).encode())


class AskingHook(HookProvider):
    """Interrupts before each call, as the documentation shows."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event: BeforeToolCallEvent) -> None:
        """Let an approved call run, cancel a rejected one."""
        use = event.tool_use
        if use["name"] == DELEGATE:
            return
        self._job.ledger.mark("asked")
        facts = {"tool": use["name"], "args": use["input"]}
        answer = event.interrupt("approval", reason=facts)
        if answer["verdict"] != "approve":
            event.cancel_tool = answer.get("reason") or "No."


def build_agents(job: Job, gated: GatedBox | None, store: Path) -> Agent:
    """The agent; a nested one sits behind the tool `delegate`."""
    manager = SnapshotSessionManager(
        job.thread, storage=TableStorage(store), save_latest_on="message"
    )
    if not job.nested:
        return build_single(job, gated, session_manager=manager)
    inner = build_single(job, gated, name=DELEGATE, description="Does what is asked.")
    call = {"id": "outer_1", "name": DELEGATE, "args": {"input": "Send it."}}
    return Agent(
        ScriptedModel([[call]]),
        tools=[inner.as_tool()],
        agent_id="outer",
        session_manager=manager,
        callback_handler=None,
    )


def build_single(job: Job, gated: GatedBox | None, **options: Any) -> Agent:
    """An agent with the tools, behind the gate or with the hook."""
    hooks: list[Any] = [] if gated else [AskingHook(job)]
    return Agent(
        ScriptedModel(job.script),
        tools=build_tools(job, gated),
        agent_id="post",
        hooks=hooks,
        callback_handler=None,
        **options,
    )


def build_tools(job: Job, gated: GatedBox | None) -> list[Any]:
    if gated is None:
        return [tool(one) for one in build_toolbox(job).functions.values()]
    describe = gated.extend(describe_call)
    return [
        build_tool(one, thread=job.thread, describe=describe)
        for one in gated.tools.values()
    ]
