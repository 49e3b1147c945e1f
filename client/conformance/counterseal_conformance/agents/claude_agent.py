"""Claude Agent SDK: tools of a server inside the program, whose calls a hook defers,
bare as the documentation shows, or through Counterseal's adapter. The real Claude Code
runs, with a scripted model behind its base URL."""

from __future__ import annotations

import asyncio
import copy
import json
import shutil
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    HookMatcher,
    ResultMessage,
    ToolResultBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

from counterseal_client.adapters.claude_agent import (
    GateServer,
    NestedAgent,
    PausedSession,
    answer_hook,
    continue_session,
    keep_open,
    resume_session,
)
from counterseal_client.gate import Gate

from ..messages_server import build_stream, serve_messages
from ..scripting import DONE, NOTE, TOOL_NAMES, WORDS, Script, build_turn
from ..worker import Job, Pending, Report
from .driver import ASK, ERASE, MALFORMED, Step, StoredDriver, copy_store
from .toolbox import DELEGATE, GatedBox, build_toolbox

SERVER = "notes"
PREFIX = f"mcp__{SERVER}__"
AGAIN = "Make this call again"
INNER = "Send it for me."
SUBAGENT = {"description": "Send", "prompt": INNER, "subagent_type": "inner"}
EMPTY: Any = {"replies": [], "final": ""}


class ScriptedModel:
    """Says the next turn of its script; which one that is, the history tells. A call
    that it is told to make again, it makes again."""

    def __init__(self, script: Script, outer: Script | None = None) -> None:
        self._script = script
        self._outer = outer

    def build_events(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        blocks = [
            block
            for message in asked["messages"]
            for block in message["content"]
            if isinstance(block, dict)
        ]
        uses = {block["id"]: block for block in blocks if block["type"] == "tool_use"}
        begun = any(INNER in str(block.get("text", "")) for block in blocks)
        script = self._script if begun or self._outer is None else self._outer
        turns = ([one for one in turn if one["id"] not in uses] for turn in script)
        calls = [
            (one["id"], name_tool(one["name"]), one["args"])
            for one in next(filter(None, turns), [])
        ]
        for block in blocks:
            told = block["type"] == "tool_result" and AGAIN in json.dumps(block)
            again = f"{block.get('tool_use_id')}_again"
            if told and again not in uses:
                use = uses[block["tool_use_id"]]
                calls = [(again, use["name"], use["input"])]
        return build_stream(asked, WORDS if calls else DONE, calls)


def name_tool(name: str) -> str:
    """The name by which Claude Code knows a tool of the server."""
    return name if name == "Agent" else f"{PREFIX}{name}"


class SQLiteSessions:
    """The SDK's session store, in a file."""

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file, check_same_thread=False)
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS entries (key TEXT NOT NULL, entry TEXT)"
        )

    async def append(self, key: Any, entries: list[Any]) -> None:
        rows = [(json.dumps(key), json.dumps(entry)) for entry in entries]
        with self._database:
            self._database.executemany("INSERT INTO entries VALUES (?, ?)", rows)

    async def load(self, key: Any) -> list[Any] | None:
        rows = self._database.execute(
            "SELECT entry FROM entries WHERE key = ? ORDER BY rowid", [json.dumps(key)]
        )
        return [json.loads(entry) for (entry,) in rows] or None


class Driver(StoredDriver):
    """The agent of one job, with its sessions in SQLite."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._sessions = job.store
        self._url = ""

    async def start_run(self) -> None:
        await self._run(self._begin)
        shutil.copy(copy_store(self.job), self._first)

    @property
    def _first(self) -> Path:
        """The session as it was when it first paused."""
        return Path(self.job.folder) / "first.sqlite"

    def repeat_run(self) -> Step:
        """The process has died before it kept that the session has paused, and goes on
        from the stored session."""
        return self._run(self._continue)

    def resume_gated(self, gate: Gate) -> Step:
        seconds = self.job.wait_seconds
        return self._run(
            lambda server: resume_session(
                self._load_paused(),
                server,
                self._build_options(),
                gate,
                wait_seconds=seconds,
            )
        )

    def resume_bare(self) -> Step:
        def begin(server: Any) -> AsyncIterator[Any]:
            server.answers = self.job.answers
            return self._continue(server)

        return self._run(begin)

    def send_raw(self) -> Step:
        """A late answer is one to an older copy of the session, and a redirection an
        older copy in which the call is another."""
        if self.job.raw == "redirection":
            redirect_call(self.job.store)
        if self.job.interrupt_ids:
            self.replay(None)
            return None
        return self._run(lambda server: self._continue(server, self.job.raw))

    def replay(self, older: Any) -> None:
        """Go on from the session as it was first, without the hook, and with one that
        allows everything."""
        self._sessions = self._first
        super().replay(self.load_first())

    def approve_all(self, older: Any) -> Step:
        self.save(older)
        return self._run(lambda server: self._continue(server, "approval", hook=False))

    async def _run(self, begin: Callable[[Any], AsyncIterator[Any]]) -> None:
        outer = None
        if self.job.nested:
            outer = [[{**DELEGATE[0][0], "args": {"task": INNER}}]]
            if not self.gated:
                outer = [build_turn(("outer_1", "Agent", SUBAGENT))]
        with serve_messages(ScriptedModel(self.job.script, outer)) as self._url:
            server = build_server(self.job, self.gated, self._build_options())
            await self._keep(begin(server), server)

    def _build_options(self) -> ClaudeAgentOptions:
        folder = Path(self.job.folder)
        environment = {
            "ANTHROPIC_BASE_URL": self._url,
            "ANTHROPIC_API_KEY": "sk-ant-scripted",
            "CLAUDE_CONFIG_DIR": str(folder / "claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "NO_PROXY": "127.0.0.1",
        }
        nested = self.job.nested and not self.gated
        return ClaudeAgentOptions(
            tools=["Agent"] if nested else [],
            agents={"inner": build_subagent()} if nested else None,
            cwd=folder,
            env=environment,
            model="claude-sonnet-4-5",
            setting_sources=[],
            session_store=SQLiteSessions(self._sessions),
        )

    def _begin(self, server: Any) -> AsyncIterator[Any]:
        options = replace(self._build_options(), session_id=str(uuid.uuid4()))
        return query(prompt=ASK, options=server.add_to(options))

    def _continue(
        self, server: Any, raw: str = "", *, hook: bool = True
    ) -> AsyncIterator[Any]:
        """Go on with the deferred call, beside a hook that answers as `raw` says."""
        options, paused = self._build_options(), self._load_paused()
        if raw:

            async def answer(*_: Any) -> Any:
                if raw == "malformed":
                    return MALFORMED
                return answer_hook("allow")

            matcher = HookMatcher(matcher=None, hooks=[answer])
            options = replace(options, hooks={"PreToolUse": [matcher]})
        if self.gated and hook:
            return continue_session(paused, server, options)
        return continue_bare(paused, server, options, hook=hook and not raw)

    def _load_paused(self) -> PausedSession:
        return PausedSession.from_dict(self.load()["paused"])

    async def _keep(self, messages: AsyncIterator[Any], server: Any) -> None:
        kept = self.load() or copy.deepcopy(EMPTY)
        begun = False
        async for message in messages:
            begun = True
            blocks = message.content if isinstance(message, UserMessage) else []
            kept["replies"] += [
                json.dumps(block.content)
                for block in blocks
                if isinstance(block, ToolResultBlock)
            ]
            if isinstance(message, ResultMessage):
                kept["final"] = message.result or ""
                deferred = message.deferred_tool_use
                bare = (
                    PausedSession(message.session_id, deferred.id) if deferred else None
                )
                paused = server.paused if self.gated else bare
                kept["paused"] = paused.to_dict() if paused else None
                kept["call"] = [deferred.name, deferred.input] if deferred else None
        if begun:
            self.save(kept)

    def read_report(self) -> Report:
        kept = self.load() or EMPTY
        paused = kept.get("paused")
        pending = []
        if paused:
            name, args = kept["call"]
            call_id = paused["call_id"]
            pending = [Pending(call_id, name.removeprefix(PREFIX), call_id, args)]
        return Report(
            pending=pending,
            values=paused["waiting"] if paused else [],
            replies=kept["replies"],
            final=kept["final"],
        )


def redirect_call(store: Path) -> None:
    """Hostile: let the stored call be one of another tool."""
    note, erase = NOTE[0][0], name_tool(ERASE["name"])

    def change(value: Any) -> Any:
        if value == note["args"]:
            return ERASE["args"]
        if isinstance(value, dict):
            return {key: change(one) for key, one in value.items()}
        if isinstance(value, list):
            return [change(one) for one in value]
        return erase if value == f"{PREFIX}send_note" else value

    with sqlite3.connect(store) as database:
        for row, entry in database.execute("SELECT rowid, entry FROM entries"):
            new = json.dumps(change(json.loads(entry)))
            database.execute("UPDATE entries SET entry = ? WHERE rowid = ?", [new, row])


async def continue_bare(
    paused: PausedSession, server: Any, options: ClaudeAgentOptions, *, hook: bool
) -> AsyncIterator[Any]:
    """Go on with the deferred call as the documentation shows."""
    over = asyncio.Event()
    options = replace(options, resume=paused.session_id)
    added = server.add_to(options)
    if not hook:
        added = replace(added, hooks=options.hooks)
    async for message in query(prompt=keep_open(over), options=added):
        if isinstance(message, ResultMessage):
            over.set()
        yield message


class BareServer:
    """The tools without the gate, and a hook that defers what has no answer."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.answers: dict[str, Any] = {}

    def add_to(self, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
        server = create_sdk_mcp_server(SERVER, tools=build_bare_tools(self._job))
        matcher = HookMatcher(matcher=f"{PREFIX}.*", hooks=[self._decide])
        hooks = dict(options.hooks or {})
        hooks["PreToolUse"] = [*hooks.get("PreToolUse", []), matcher]
        return replace(options, mcp_servers={SERVER: server}, hooks=hooks)

    async def _decide(self, call: Any, *_: Any) -> dict[str, Any]:
        self._job.ledger.mark("asked")
        if not self.answers:
            return answer_hook("defer")
        given = replace(self._job, answers=self.answers).find_answer(call["tool_input"])
        if given["verdict"] == "reject":
            return answer_hook("deny", given.get("reason") or "No.")
        found = answer_hook("allow")
        if "args" in given:
            found["hookSpecificOutput"]["updatedInput"] = given["args"]
        return found


def build_bare_tools(job: Job) -> list[Any]:
    kinds: dict[str, dict[str, Any]] = {
        "send_note": {"to": str, "text": str},
        "order_parts": {"part": str, "count": int, "due": str},
        "erase_note": {"to": str},
    }

    def build(name: str, function: Callable[..., Any]) -> Any:
        async def run(args: dict[str, Any]) -> dict[str, Any]:
            text = json.dumps(await asyncio.to_thread(function, **args))
            return {"content": [{"type": "text", "text": text}]}

        return tool(name, function.__doc__, kinds[name])(run)

    return [build(*item) for item in build_toolbox(job).functions.items()]


def build_subagent() -> AgentDefinition:
    tools = [f"{PREFIX}{name}" for name in TOOL_NAMES]
    return AgentDefinition(
        description="Does it.", prompt="Do it.", tools=tools, background=False
    )


def build_server(job: Job, gated: GatedBox | None, options: ClaudeAgentOptions) -> Any:
    """The tools with their hook; a nested agent sits behind the tool `delegate`."""
    if gated is None:
        return BareServer(job)
    tools = list(gated.tools.values())
    server = GateServer(tools, thread=job.thread, name=SERVER, describe=gated.describe)
    if not job.nested:
        return server
    agents = {"delegate": NestedAgent(server, options)}
    return GateServer([], thread=job.thread, agents=agents, name=SERVER)
