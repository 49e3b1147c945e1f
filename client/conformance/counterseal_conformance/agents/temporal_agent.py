"""Temporal: a workflow of a model and its tools, whose calls wait for an Update, bare
as the documentation shows, or through Counterseal's adapter.

The server keeps the workflows, and a codec keeps their payloads in SQLite, as it does
for those who do not want them at the server. A run is made again by Continue-As-New.
"""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
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

from ..scripting import TOOL_NAMES, get_turn
from ..worker import Job, Pending, Report
from .driver import RAW, DriverBase
from .tables import Table
from .temporal_workflow import RunState, ToolWorkflow
from .toolbox import DELEGATE, GatedBox, build_toolbox

RUNNER = SandboxedWorkflowRunner(
    restrictions=SandboxRestrictions.default.with_passthrough_modules(
        "counterseal_client", "counterseal_conformance"
    )
)
POLL_SECONDS = 0.05


class StoringCodec(PayloadCodec):
    """Keeps payloads in the job's SQLite file, and their names at the server."""

    def __init__(self, job: Job) -> None:
        self._payloads = Table(job.store)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._store(payload) for payload in payloads]

    def _store(self, payload: Payload) -> Payload:
        name = uuid.uuid4().hex
        self._payloads.put(name, payload.SerializeToString())
        return Payload(metadata={"encoding": b"kit/stored"}, data=name.encode())

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        found = [(one, self._payloads.get(one.data.decode())) for one in payloads]
        return [Payload.FromString(data) if data else one for one, data in found]


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
        return get_turn(DELEGATE if outer else job.script, turn)

    @activity.defn
    async def ask_people(call: dict[str, Any]) -> None:
        job.ledger.mark("asked")

    if gated:
        return [think, *(build_activity(tool) for tool in gated.tools.values())]
    functions = build_toolbox(job).functions.values()
    return [think, ask_people, *(build_bare(function) for function in functions)]


def build_bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """An activity of a function, with the types of its arguments."""
    return activity.defn(function.__func__).__get__(function.__self__)  # type: ignore[attr-defined]


class Driver(DriverBase):
    """A worker for one job. It stops when nothing of the workflow goes on by itself."""

    def run(self) -> Report:
        return asyncio.run(self._work())

    async def _work(self) -> Report:
        converter = dataclasses.replace(
            pydantic_data_converter, payload_codec=StoringCodec(self.job)
        )
        quiet = LoggingConfig(filter=TelemetryFilter("ERROR", "ERROR"))
        self._client = await Client.connect(
            self.job.server,
            data_converter=converter,
            runtime=Runtime(telemetry=TelemetryConfig(logging=quiet)),
        )
        worker = Worker(
            self._client,
            task_queue=self.job.thread,
            workflows=[ToolWorkflow],
            activities=build_activities(self.job, self.gated),
            interceptors=[MarkingInterceptor(self.gated)] if self.gated else [],
            workflow_runner=RUNNER,
            activity_executor=ThreadPoolExecutor(),
            max_cached_workflows=0,  # the next task goes to any process
        )
        async with worker:
            self._handle = self._client.get_workflow_handle(self.job.thread)
            await self.take_step()
            return await self._settle()

    async def start_run(self) -> None:
        job = self.job
        state = RunState(job.thread, job.gated, job.hostile, job.details, job.nested)
        await self._client.start_workflow(
            ToolWorkflow.run, state, id=job.thread, task_queue=job.thread
        )

    async def repeat_run(self) -> None:
        """Continue as new."""
        before = (await self._handle.describe()).run_id
        await self._handle.signal(ToolWorkflow.run_again)
        while (await self._handle.describe()).run_id == before:
            await asyncio.sleep(POLL_SECONDS)

    async def resume_run(self) -> None:
        """Hostile code is a part of the workflow."""
        job = self.job
        if self.gated:
            seconds, gate = job.wait_seconds, self.gated.gate
            await resume_workflow(self._client, job.thread, gate, wait_seconds=seconds)
            return
        for call in (await self._read_stand())["pending"]:
            answer = job.find_answer(call["args"])
            await self._update("answer_call", [call["id"], answer])

    async def send_raw(self) -> None:
        """Behind the gate the Update has no answer: the approval is the Update itself,
        a redirection names another tool in it, and a malformed one has no proposal."""
        raw = RAW[self.job.raw]
        for key in self.job.interrupt_ids or await self._list_keys():
            if self.gated is None:
                await self._update("answer_call", [key, raw])
            elif self.job.raw == "malformed":
                await self._update(WAKE_UPDATE, [raw])
            else:
                more = [raw] if self.job.raw == "redirection" else []
                await self._update(WAKE_UPDATE, [key, *more])

    async def _list_keys(self) -> list[str]:
        if self.gated:
            return list(await list_waiting(self._client, self.job.thread))
        return [call["id"] for call in (await self._read_stand())["pending"]]

    async def _update(self, name: str, args: list[Any]) -> None:
        """Send an Update; the workflow may refuse it."""
        with suppress(WorkflowUpdateFailedError):
            await self._handle.execute_update(name, args=args)

    async def _read_stand(self) -> dict[str, Any]:
        stand: dict[str, Any] = await self._handle.query(ToolWorkflow.read_stand)
        return stand

    async def _settle(self) -> Report:
        """The report once nothing goes on by itself."""
        while True:
            stand = await self._read_stand()
            # After the query: a call that waits may still have an activity to come.
            described = await self._handle.describe()
            status = described.status
            if status != WorkflowExecutionStatus.RUNNING:
                stand = await self._read_stand()
                break
            busy = stand["busy"]
            if stand["nested"]:
                inner = self._client.get_workflow_handle(f"{self.job.thread}:inner")
                busy = (await inner.query(ToolWorkflow.read_stand))["busy"]
                described = await inner.describe()
            if not busy and not described.raw_description.pending_activities:
                break
            await asyncio.sleep(POLL_SECONDS)
        return await self._build_report(status, stand)

    async def _build_report(self, status: Any, stand: dict[str, Any]) -> Report:
        if status == WorkflowExecutionStatus.FAILED:
            return Report("failed", replies=stand["replies"], error="it failed")
        waiting: list[dict[str, Any]] = []
        pending = [Pending.from_call(call) for call in stand["pending"]]
        if self.gated and status == WorkflowExecutionStatus.RUNNING:
            found = await list_waiting(self._client, self.job.thread)
            waiting = [*found.values()]
            pending = [Pending.from_facts(w["proposal"], w) for w in waiting]
        return Report(
            "finished" if stand["final"] else "suspended",
            pending=pending,
            values=waiting,
            replies=stand["replies"],
            final=stand["final"],
        )
