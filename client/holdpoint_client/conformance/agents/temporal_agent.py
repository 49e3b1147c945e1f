"""Temporal: a workflow of a model and its tools, whose calls wait for an Update, bare
as the documentation shows, or through Holdpoint's adapter.

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
from datetime import timedelta
from typing import Any, cast

from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.common import RetryPolicy
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

from holdpoint_client.adapters.temporal import (
    WAKE_UPDATE,
    GateCalls,
    build_activity,
    list_waiting,
    resume_workflow,
)
from holdpoint_client.operations import Details

from ..scripting import DONE, TOOL_NAMES, WORDS
from ..worker import Job, Pending, Report
from .toolbox import DELEGATE, GatedBox, build_toolbox, find_answer, run_action

RUNNER = SandboxedWorkflowRunner(
    restrictions=SandboxRestrictions.default.with_passthrough_modules(
        "holdpoint_client"
    )
)
ATTEMPT = timedelta(seconds=10)
FOREVER = timedelta(days=3650)
"""A timer, so that a replay checks an Update after the call waits."""
BARE_RETRIES = RetryPolicy(maximum_attempts=3)
POLL_SECONDS = 0.05
REDIRECTION = {"verdict": "modify", "tool": "erase_note", "args": {"to": "ann"}}
VERDICTS = ("approve", "modify", "reject")


@dataclasses.dataclass
class RunState:
    """The input of a workflow. `calls` are those of the turn under way."""

    thread: str
    gated: bool
    hostile: bool
    details: dict[str, Any]
    outer: bool
    turn: int = 0
    calls: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    replies: list[str] = dataclasses.field(default_factory=list)
    carried: list[dict[str, Any]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Answer:
    """The answer of people to a call of the bare workflow."""

    verdict: str
    reason: str = ""
    args: dict[str, Any] | None = None


@workflow.defn
class ToolWorkflow:
    """Model and tools in a loop."""

    @workflow.init
    def __init__(self, state: RunState) -> None:
        self._state = state
        self._calls = (
            GateCalls(thread=state.thread, carried=state.carried)
            if state.gated
            else None
        )
        self._bare_waiting: list[dict[str, Any]] = []
        self._answers: dict[str, Answer] = {}
        self._open = 0
        self._again = False
        self._final = ""

    @workflow.run
    async def run(self, state: RunState) -> str:
        """As of Temporal."""
        work = asyncio.create_task(self._work())
        await workflow.wait_condition(lambda: work.done() or self._again)
        if not work.done():
            state.carried = self._calls.list_waiting() if self._calls else []
            workflow.continue_as_new(state)
        return await work

    async def _work(self) -> str:
        state = self._state
        while True:
            if not state.calls:
                state.calls = await workflow.execute_activity(
                    "think",
                    args=[state.outer, state.turn],
                    result_type=list[dict[str, Any]],
                    start_to_close_timeout=ATTEMPT,
                )
            if not state.calls:
                self._final = DONE
                return DONE
            await self._perform_turn(state.calls)
            state.turn, state.calls = state.turn + 1, []

    async def _perform_turn(self, calls: list[dict[str, Any]]) -> None:
        if self._calls:
            self._calls.check_calls([call["id"] for call in calls])
        run = self._perform_gated if self._calls else self._perform_bare
        texts = await asyncio.gather(*(self._perform(call, run) for call in calls))
        self._state.replies.extend(texts)
        if self._state.hostile:
            await self._send_again(calls)

    async def _perform(
        self, call: dict[str, Any], run: Callable[[dict[str, Any]], Awaitable[str]]
    ) -> str:
        if call["name"] == "delegate":
            inner = dataclasses.replace(self._state, outer=False, calls=[], replies=[])
            name = f"{self._state.thread}:inner"
            return await workflow.execute_child_workflow(
                ToolWorkflow.run, dataclasses.replace(inner, turn=0), id=name
            )
        self._open += 1
        text = await run(call)
        self._open -= 1
        return text

    async def _perform_gated(self, call: dict[str, Any]) -> str:
        assert self._calls is not None
        return await self._calls.perform_tool(
            call["name"],
            call["args"],
            call_id=call["id"],
            details=cast("Details", {"rationale": WORDS, **self._state.details}),
            timeout=ATTEMPT,
        )

    async def _perform_bare(self, call: dict[str, Any]) -> str:
        await workflow.execute_activity(
            "ask_people", call, start_to_close_timeout=ATTEMPT
        )
        self._bare_waiting.append(call)
        await workflow.wait_condition(
            lambda: call["id"] in self._answers, timeout=FOREVER
        )
        self._bare_waiting.remove(call)
        answer = self._answers[call["id"]]
        if answer.verdict == "reject":
            return f"Rejected: {answer.reason}"
        return await self._run_bare(call, answer.args or call["args"])

    async def _run_bare(self, call: dict[str, Any], args: dict[str, Any]) -> str:
        found = await workflow.execute_activity(
            call["name"],
            args=list(args.values()),
            start_to_close_timeout=ATTEMPT,
            retry_policy=BARE_RETRIES,
        )
        return str(found)

    async def _send_again(self, calls: list[dict[str, Any]]) -> None:
        """Hostile: run the activities of the refused calls once more."""
        for call in calls:
            if self._calls is None:
                await self._run_bare(call, call["args"])
                continue
            request = {
                "thread": self._state.thread,
                "call_id": call["id"],
                "arguments": call["args"],
                "details": {"rationale": WORDS},
            }
            await workflow.execute_activity(
                call["name"], request, start_to_close_timeout=ATTEMPT
            )

    @workflow.update
    def answer_call(self, call_id: str, answer: Answer) -> None:
        """Take the answer of people to a call of the bare workflow."""
        self._answers[call_id] = answer

    @answer_call.validator
    def check_answer(self, call_id: str, answer: Answer) -> None:
        """Refuse an answer to a call that does not wait."""
        ids = [call["id"] for call in self._bare_waiting]
        if call_id not in ids or answer.verdict not in VERDICTS:
            raise ValueError("This call does not wait for such an answer.")

    @workflow.signal
    def run_again(self) -> None:
        """Continue as new, whatever waits."""
        self._again = True

    @workflow.query
    def read_stand(self) -> dict[str, Any]:
        """How the run stands. Nothing goes on by itself while `busy` is 0."""
        waiting = self._calls.list_waiting() if self._calls else []
        pending = self._bare_waiting
        calls = self._state.calls
        delegates = [call for call in calls if call["name"] == "delegate"]
        begun = bool(calls) and (self._open > 0 or bool(delegates))
        return {
            "busy": self._open - len(waiting) - len(pending) if begun else 1,
            "nested": bool(delegates),
            "pending": pending,
            "replies": self._state.replies,
            "final": self._final,
        }


class StoringCodec(PayloadCodec):
    """Keeps payloads in the job's SQLite file, and their names at the server."""

    def __init__(self, job: Job) -> None:
        self._database = sqlite3.connect(job.store)
        with self._database:
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS payloads (name TEXT, data BLOB)"
            )

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """As of Temporal."""
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
        """As of Temporal."""
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
        """As of Temporal."""
        ActivityInboundInterceptor.__init__(self, next)
        return self

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """As of Temporal."""
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
        """As of `Driver`."""
        self._act(self._start)

    def repeat_run(self) -> None:
        """As of `Driver`."""
        self._act(self._continue_as_new)

    def resume_run(self) -> None:
        """As of `Driver`."""
        self._act(self._resume)

    def send_raw(self) -> None:
        """As of `Driver`."""
        self._act(self._send)

    def read_report(self) -> Report:
        """As of `Driver`."""
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
            status = (await handle.describe()).status
            stand = await handle.query(ToolWorkflow.read_stand)
            if status != WorkflowExecutionStatus.RUNNING:
                break
            inner = client.get_workflow_handle(f"{self._job.thread}:inner")
            busy = stand["busy"]
            if stand["nested"]:
                busy = (await inner.query(ToolWorkflow.read_stand))["busy"]
            if not busy:
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
    """The workflow, bare and with Holdpoint."""

    def run(self, job: Job) -> Report:
        """As `ScriptedAgent.run`."""
        return run_action(TemporalDriver(job), job)


def build_agent(variant: str) -> TemporalAgent:
    """The workflow; there is one variant."""
    return TemporalAgent()
