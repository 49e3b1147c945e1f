"""Restate: a workflow of a model and its tools, each call an invocation of its own that
waits for an awakeable, bare as the documentation shows, or through Counterseal's
adapter.

The server keeps the journals, and a codec keeps their values in SQLite, as it does for
those who do not want them at the server. All processes of one run serve one port.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any, cast

import httpx
import httpx2
import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config
from restate import JournalValueCodec, RunOptions
from restate.client import Client

from counterseal_client.adapters.restate import GateCalls, list_waiting, resume_run

from ..scripting import DONE, get_turn
from ..servers import HOST
from ..worker import Job, Pending, Report
from .driver import MALFORMED, RAW, DriverBase
from .tables import Table
from .toolbox import DELEGATE, GatedBox, build_toolbox

POLL_SECONDS = 0.05
SECONDS = 60.0  # for one call of the server
BARE_RETRIES: Any = RunOptions(
    max_attempts=3, initial_retry_interval=timedelta(seconds=0.05)
)
OTHER_JOURNAL = "RT0016"
"""Restate's error code for a replay that does other things than its journal has."""
INVOCATIONS = """
    SELECT id, target_service_name AS service, target_service_key AS key, status,
    invoked_by_id AS parent, completion_failure AS failure, last_failure_error_code AS
    code FROM sys_invocation WHERE target_service_name IN ('Agent', 'Bare',
    'Counterseal') AND target_handler_name <> 'read_state'
"""
"""What the run consists of. The kit's own reads of the workflow are no part of it."""

EMPTY_ROW = dict.fromkeys(["key", "parent", "failure", "code"])
"""What a row of the answer has not."""


class StoringCodec(JournalValueCodec):
    """Keeps values in the job's SQLite file, and their digests in the journal. A replay
    must write the same names again."""

    def __init__(self, job: Job) -> None:
        self._values = Table(job.store, "journal")

    def encode(self, buf: bytes) -> bytes:
        name = sha256(buf).hexdigest()
        self._values.add(name, bytes(buf))
        return name.encode()

    async def decode(self, buf: bytes) -> bytes:
        """A value that did not come from here stays as it is."""
        found = self._values.get(bytes(buf).decode(errors="replace"))
        return bytes(buf) if found is None else bytes(found)


StartCall = Callable[[Any, dict[str, Any]], Awaitable[str]]
"""Starts the invocation of a call and returns its future."""


class Driver(DriverBase):
    """A service endpoint for one job. It ends when nothing of the run goes on by
    itself."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._asked = Table(job.store, "asked")  # whom the bare agent asked
        self._sent: set[str] = set()
        logging.getLogger("restate").setLevel(logging.CRITICAL)

    def run(self) -> Report:
        return asyncio.run(self._work())

    async def _work(self) -> Report:
        codec = StoringCodec(self.job)
        admin = Path(self.job.folder).parent / "restate" / "kit" / "admin.sock"
        uds = httpx2.AsyncHTTPTransport(uds=str(admin))
        url = f"http://{self.job.server}"
        given: Any = {"base_url": url, "timeout": SECONDS, "trust_env": False}
        async with (
            httpx2.AsyncClient(
                transport=uds, base_url="http://admin", timeout=SECONDS
            ) as self._admin,
            httpx2.AsyncClient(**given) as self._ingress,
            httpx.AsyncClient(**given, http2=True) as http,
        ):
            self._client = Client(http, journal_codec=codec)
            self._serve_endpoint(codec)
            await self.take_step()
            while (report := await self._read_stand()) is None:
                await asyncio.sleep(POLL_SECONDS)
            return report

    def _serve_endpoint(self, codec: JournalValueCodec) -> None:
        """Serve the run's port in a thread that ends with the process, as a signal ends
        it: what is under way stays open at the server."""
        services, start_call, check_calls = (
            build_gated(self.job, self.gated)
            if self.gated
            else build_bare(self.job, self._asked)
        )
        agent, self._run, self._read = build_agent_workflow(
            self.job, start_call, check_calls
        )
        app = restate.app([agent, *services], "bidi", journal_value_codec=codec)
        port = Path(self.job.folder) / "port"
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind((HOST, int(port.read_text()) if port.exists() else 0))
        port.write_text(str(listening.getsockname()[1]))
        config = Config()
        config.bind = [f"fd://{listening.detach()}"]  # the server closes it
        config.loglevel = "CRITICAL"

        async def serve_forever() -> None:
            never = asyncio.Event()
            await serve(cast("Any", app), config, shutdown_trigger=never.wait)

        Thread(target=asyncio.run, args=[serve_forever()], daemon=True).start()

    async def start_run(self) -> None:
        port = (Path(self.job.folder) / "port").read_text()
        # Without force, an earlier run with the same port would keep its place.
        endpoint = {"uri": f"http://{HOST}:{port}", "force": True}
        (await self._admin.post("/deployments", json=endpoint)).raise_for_status()
        await self._client.workflow_send(self._run, self.job.thread, self.job.nested)

    async def repeat_run(self) -> None:
        """The server attempts again what the last process had under way, which replays
        it from its top."""
        marks = self.job.ledger.count_marks()
        while self.job.ledger.count_marks() <= marks:
            await asyncio.sleep(POLL_SECONDS)

    async def resume_run(self) -> None:
        """Hostile code is a part of the workflow."""
        job = self.job
        if self.gated:
            seconds, gate = job.wait_seconds, self.gated.gate
            woken = await resume_run(
                self._client, job.thread, gate, wait_seconds=seconds
            )
            self._sent = {facts["awakeable"] for facts in woken}
            return
        for name, call in self._list_questions().items():
            await self._resolve(name, json.dumps(job.find_answer(call["args"])))

    async def send_raw(self) -> None:
        """Behind the gate an awakeable has no answer: the approval is the resolution
        itself, a redirection names another tool in it, a malformed one is a text."""
        raw = RAW[self.job.raw]
        text = raw if raw == MALFORMED else json.dumps(raw)
        for name in self.job.interrupt_ids or await self._list_names():
            await self._resolve(name, text)

    async def _resolve(self, awakeable: str, text: str) -> None:
        await self._ingress.post(
            f"/restate/awakeables/{awakeable}/resolve", content=text
        )
        self._sent.add(awakeable)

    def _list_questions(self) -> dict[str, dict[str, Any]]:
        """The calls that people see, by their awakeables."""
        asked = self._asked.list_all().items()
        return {name: json.loads(call) for name, call in asked}

    async def _list_names(self) -> list[str]:
        if self.gated:
            waiting = await list_waiting(self._client, self.job.thread)
            return [facts["awakeable"] for facts in waiting.values()]
        return list(self._list_questions())

    async def _read_stand(self) -> Report | None:
        """How the run stands; none while something of it goes on by itself."""
        query = {"query": INVOCATIONS}
        accept = {"accept": "application/json"}
        answer = await self._admin.post("/query", json=query, headers=accept)
        rows = [{**EMPTY_ROW, **row} for row in answer.json()["rows"]]
        roots = [row for row in rows if row["key"] == self.job.thread]
        if not roots:
            return None
        replies = (await self._read_state(self.job.thread))["replies"]
        tree = list_tree(rows, roots)
        if roots[0]["failure"]:
            return Report("failed", replies=replies, error=roots[0]["failure"])
        if any(row["code"] == OTHER_JOURNAL for row in tree):
            return Report("failed", replies=replies, error="the journal was changed")
        if roots[0]["status"] == "completed":
            return Report("finished", replies=replies, final=DONE)
        if await self._is_busy(tree):
            return None
        return await self._build_report(replies)

    async def _read_state(self, key: str) -> dict[str, Any]:
        found = await self._client.workflow_call(self._read, key, "")
        return cast("dict[str, Any]", found) or {"started": 0, "replies": []}

    async def _is_busy(self, tree: list[dict[str, Any]]) -> bool:
        """Whether an agent has more calls to start, or a call neither waits nor has
        ended."""
        for row in tree:
            if row["key"] and row["status"] != "completed":
                children = [child for child in tree if child["parent"] == row["id"]]
                started = (await self._read_state(row["key"]))["started"]
                if not started or len(children) < started:
                    return True
        calls = [row for row in tree if not row["key"]]
        alive = [row for row in calls if row["status"] != "completed"]
        waiting = set(await self._list_names()) - self._sent
        return not alive or len(waiting) < len(alive)

    async def _build_report(self, replies: list[str]) -> Report:
        if self.gated is None:
            pending = [
                Pending(name, call["name"], call["id"], call["args"])
                for name, call in self._list_questions().items()
            ]
            return Report("suspended", pending=pending, replies=replies)
        values = [*(await list_waiting(self._client, self.job.thread)).values()]
        pending = [Pending.from_facts(facts["awakeable"], facts) for facts in values]
        return Report("suspended", pending=pending, values=values, replies=replies)


def list_tree(
    rows: list[dict[str, Any]], roots: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows of these invocations and of all that they started."""
    names = {row["id"] for row in roots}
    children = [row for row in rows if row["parent"] in names]
    return [*roots, *list_tree(rows, children)] if roots else []


def build_agent_workflow(
    job: Job, start_call: StartCall, check_calls: Callable[[list[str]], None]
) -> tuple[restate.Workflow, Any, Any]:
    """The workflow of model and tools, with its two handlers: `run_agent`, whose
    argument says whether it is the outer agent, and `read_state`."""
    agent = restate.Workflow("Agent")

    async def think(outer: bool, turn: int) -> list[dict[str, Any]]:
        return get_turn(DELEGATE if outer else job.script, turn)

    @agent.main()
    async def run_agent(ctx: restate.WorkflowContext, outer: bool) -> str:
        replies: list[str] = []
        started, turn = 0, 0
        typed: Any = RunOptions(type_hint=list)
        while calls := await ctx.run_typed("think", think, typed, outer, turn):
            check_calls([call["id"] for call in calls])
            again = [{**call, "forced": True} for call in calls] if job.hostile else []
            for batch in (calls, again):  # hostile: the refused calls once more
                started += len(batch)
                ctx.set("state", {"started": started, "replies": replies})
                futures = [
                    ctx.workflow_call(run_agent, f"{job.thread}:inner", False)
                    if call["name"] == "delegate"
                    else start_call(ctx, call)
                    for call in batch
                ]
                replies += [await future for future in futures]
            turn += 1
        ctx.set("state", {"started": started, "replies": replies})
        return DONE

    @agent.handler()
    async def read_state(
        ctx: restate.WorkflowSharedContext, _: str
    ) -> dict[str, Any] | None:
        return await ctx.get("state", type_hint=dict)

    return agent, run_agent, read_state


def build_gated(job: Job, gated: GatedBox) -> tuple[list[Any], StartCall, Any]:
    """The services of the adapter, and what starts and checks calls through it."""
    calls = GateCalls(gated.tools.values())

    def start_call(ctx: Any, call: dict[str, Any]) -> Awaitable[str]:
        return calls.start_call(
            ctx,
            call["name"],
            call["args"],
            thread=job.thread,
            call_id=call["id"],
            details=gated.describe(),
        )

    return calls.services, start_call, calls.check_calls


def build_bare(job: Job, asked: Table) -> tuple[list[Any], StartCall, Any]:
    """A service whose calls wait for an awakeable, as the documentation shows."""
    box = build_toolbox(job)
    service = restate.Service("Bare")

    @service.handler()
    async def run_call(ctx: restate.Context, call: dict[str, Any]) -> str:
        args = call["args"]
        if "forced" not in call:
            job.ledger.mark("asked")
            name, approval = ctx.awakeable(type_hint=dict)
            shown = json.dumps(call)
            await ctx.run_typed("ask", asked.add, RunOptions(), name, shown)
            answer = await approval
            await ctx.run_typed("answered", asked.drop, RunOptions(), name)
            if answer["verdict"] == "reject":
                return f"Rejected: {answer.get('reason', '')}"
            args = answer.get("args") or args
        return await ctx.run_typed("tool", box.run, BARE_RETRIES, call["name"], args)

    def start_call(ctx: Any, call: dict[str, Any]) -> Awaitable[str]:
        return cast("Awaitable[str]", ctx.service_call(run_call, call))

    return [service], start_call, lambda call_ids: None
