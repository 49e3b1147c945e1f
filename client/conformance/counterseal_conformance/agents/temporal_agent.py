"""Temporal: a workflow of a model and its tools, whose calls wait for an Update, bare
as the documentation shows, or through Counterseal's adapter.

The server keeps the workflows, and a codec keeps their payloads in SQLite, as it does
for those who do not want them at the server. A run is made again by Continue-As-New.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sqlite3
import uuid
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import PayloadCodec
from temporalio.runtime import (
    LoggingConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    Worker,
)
from temporalio.worker.workflow_sandbox import (
    SandboxedWorkflowRunner,
    SandboxRestrictions,
)

from counterseal_client.adapters.temporal import (
    WAKE_UPDATE,
    build_activity,
    list_waiting,
    resume_workflow,
)

from ..scripting import TOOL_NAMES
from ..worker import Job, Pending, Report
from .temporal_workflow import RunState, ToolWorkflow
from .toolbox import DELEGATE, GatedBox, build_toolbox, find_answer, run_action

RUNNER = SandboxedWorkflowRunner(
    restrictions=SandboxRestrictions.default.with_passthrough_modules(
        "counterseal_client", "counterseal_conformance"
    )
)
POLL_SECONDS = 0.05
REDIRECTION = {"verdict": "modify", "tool": "erase_note", "args": {"to": "ann"}}


class StoringCodec(PayloadCodec):
    """Keeps payloads in the job's SQLite file, and their names at the server."""

    def __init__(self, job: Job) -> None:
        self._database = sqlite3.connect(job.store)
        with self._database:
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS payloads (name TEXT, data BLOB)"
            )

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        names = [uuid.uuid4().hex for _ in payloads]
        rows = [
            (name, payload.SerializeToString())
            for name, payload in zip(names, payloads, strict=True)
        ]
        with self._database:
            self._database.executemany("INSERT INTO payloads VALUES (?, ?)", rows)
        encoding = {"encoding": b"kit/stored"}
        return [Payload(metadata=encoding, data=name.encode()) for name in names]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        found = []
        for payload in payloads:
            query = "SELECT data FROM payloads WHERE name = ?"
            row = self._database.execute(query, [payload.data.decode()]).fetchone()
            found.append(Payload.FromString(row[0]) if row else payload)
        return found


class MarkingInterceptor(Interceptor, ActivityInboundInterceptor):
    """Marks each attempt of the gate's activities, which propose calls."""

    def __init__(self, gated: GatedBox) -> None:
        self._gated = gated

    def intercept_activity(self, next: Any) -> ActivityInboundInterceptor:
        ActivityInboundInterceptor.__init__(self, next)
        return self

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        if activity.info().activity_type in TOOL_NAMES:
            self._gated.add_details({})
        return await super().execute_activity(input)


def build_activities(job: Job, gated: GatedBox | None) -> list[Callable[..., Any]]:
    """The activities: the model, and the tools, of the gate or bare."""

    @activity.defn
    async def think(outer: bool, turn: int) -> list[dict[str, Any]]:
        script = DELEGATE if outer else job.script
        return script[turn] if turn < len(script) else []

    @activity.defn
    async def ask_people(call: dict[str, Any]) -> None:
        job.ledger.mark("asked")

    if gated:
        return [think, *(build_activity(tool) for tool in gated.tools.values())]
    box = build_toolbox(job)
    return [think, ask_people, *(build_bare(getattr(box, n)) for n in TOOL_NAMES)]


def build_bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """An activity of a function, with the types of its arguments."""
    return activity.defn(function.__func__).__get__(function.__self__)  # type: ignore[attr-defined]


class TemporalDriver:
    """A worker for one job. It stops when nothing of the workflow goes on by itself."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._gated = GatedBox(job) if job.gated else None
        self._report: Report | None = None

    def start_run(self) -> None:
        self._act(self._start)

    def repeat_run(self) -> None:
        self._act(self._continue_as_new)

    def resume_run(self) -> None:
        self._act(self._resume)

    def send_raw(self) -> None:
        self._act(self._send)

    def read_report(self) -> Report:
        if self._report is None:
            self._act(self._wait)
        assert self._report is not None
        return self._report

    def _act(self, action: Callable[[Client, Any], Awaitable[None]]) -> None:
        self._report = asyncio.run(self._work(action))

    async def _work(self, action: Callable[[Client, Any], Awaitable[None]]) -> Report:
        converter = dataclasses.replace(
            pydantic_data_converter, payload_codec=StoringCodec(self._job)
        )
        quiet = LoggingConfig(filter=TelemetryFilter("ERROR", "ERROR"))
        client = await Client.connect(
            self._job.server,
            data_converter=converter,
            runtime=Runtime(telemetry=TelemetryConfig(logging=quiet)),
        )
        worker = Worker(
            client,
            task_queue=self._job.thread,
            workflows=[ToolWorkflow],
            activities=build_activities(self._job, self._gated),
            interceptors=[MarkingInterceptor(self._gated)] if self._gated else [],
            workflow_runner=RUNNER,
            activity_executor=ThreadPoolExecutor(),
            max_cached_workflows=0,  # the next task goes to any process
        )
        async with worker:
            handle = client.get_workflow_handle(self._job.thread)
            await action(client, handle)
            return await self._settle(client, handle)

    async def _wait(self, client: Client, handle: WorkflowHandle[Any, Any]) -> None:
        """Only report."""

    async def _start(self, client: Client, handle: WorkflowHandle[Any, Any]) -> None:
        job = self._job
        state = RunState(job.thread, job.gated, job.hostile, job.details, job.nested)
        await client.start_workflow(
            ToolWorkflow.run, state, id=job.thread, task_queue=job.thread
        )

    async def _continue_as_new(
        self, client: Client, handle: WorkflowHandle[Any, Any]
    ) -> None:
        before = (await handle.describe()).run_id
        await handle.signal(ToolWorkflow.run_again)
        while (await handle.describe()).run_id == before:
            await asyncio.sleep(POLL_SECONDS)

    async def _resume(self, client: Client, handle: WorkflowHandle[Any, Any]) -> None:
        job = self._job
        if self._gated:
            seconds, gate = job.wait_seconds, self._gated.gate
            await resume_workflow(client, job.thread, gate, wait_seconds=seconds)
            return
        stand = await handle.query(ToolWorkflow.read_stand)
        for call in stand["pending"]:
            given = find_answer(job, call["args"])
            await self._update(handle, "answer_call", [call["id"], given])

    async def _send(self, client: Client, handle: WorkflowHandle[Any, Any]) -> None:
        """Behind the gate the Update has no answer: the approval is the Update itself,
        a redirection names another tool in it, and a malformed one has no proposal."""
        answers = {"approval": {"verdict": "approve"}, "redirection": REDIRECTION}
        raw = answers.get(self._job.raw, "yes, please")
        for key in self._job.interrupt_ids or await self._list_keys(client, handle):
            if self._gated is None:
                await self._update(handle, "answer_call", [key, raw])
            elif self._job.raw == "malformed":
                await self._update(handle, WAKE_UPDATE, [raw])
            else:
                more = [raw] if self._job.raw == "redirection" else []
                await self._update(handle, WAKE_UPDATE, [key, *more])

    async def _list_keys(
        self, client: Client, handle: WorkflowHandle[Any, Any]
    ) -> list[str]:
        if self._gated:
            return list(await list_waiting(client, self._job.thread))
        stand = await handle.query(ToolWorkflow.read_stand)
        return [call["id"] for call in stand["pending"]]

    async def _update(
        self, handle: WorkflowHandle[Any, Any], name: str, args: list[Any]
    ) -> None:
        """Send an Update; the workflow may refuse it."""
        with suppress(WorkflowUpdateFailedError):
            await handle.execute_update(name, args=args)

    async def _settle(self, client: Client, handle: WorkflowHandle[Any, Any]) -> Report:
        """The report once nothing goes on by itself."""
        while True:
            stand = await handle.query(ToolWorkflow.read_stand)
            # After the query: a call that waits may still have an activity to come.
            described = await handle.describe()
            status = described.status
            if status != WorkflowExecutionStatus.RUNNING:
                stand = await handle.query(ToolWorkflow.read_stand)
                break
            busy = stand["busy"]
            if stand["nested"]:
                inner = client.get_workflow_handle(f"{self._job.thread}:inner")
                busy = (await inner.query(ToolWorkflow.read_stand))["busy"]
                described = await inner.describe()
            if not busy and not described.raw_description.pending_activities:
                break
            await asyncio.sleep(POLL_SECONDS)
        return await self._build_report(client, status, stand)

    async def _build_report(
        self, client: Client, status: Any, stand: dict[str, Any]
    ) -> Report:
        if status == WorkflowExecutionStatus.FAILED:
            return Report("failed", replies=stand["replies"], error="it failed")
        waiting: list[dict[str, Any]] = []
        pending = [
            Pending(call["id"], call["name"], call["id"], call["args"])
            for call in stand["pending"]
        ]
        if self._gated and status == WorkflowExecutionStatus.RUNNING:
            waiting = [*(await list_waiting(client, self._job.thread)).values()]
            pending = [
                Pending(facts["proposal"], facts["tool"], facts["tool_call_id"], {})
                for facts in waiting
            ]
        return Report(
            "finished" if stand["final"] else "suspended",
            pending=pending,
            values=waiting,
            replies=stand["replies"],
            final=stand["final"],
        )


class TemporalAgent:
    """The workflow, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(TemporalDriver(job), job)


def build_agent(variant: str) -> TemporalAgent:
    """The workflow; there is one variant."""
    return TemporalAgent()
