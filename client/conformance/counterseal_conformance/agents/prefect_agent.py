"""Prefect: a flow of a model and its tools that suspends, bare as the documentation
shows, or through Counterseal's adapter.

Each process is the one that a worker of Prefect starts for a run of a deployment. The
results of tasks are kept in SQLite.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

# Before the package is imported: it sends nothing, and writes nothing to the home.
os.environ |= {
    "DO_NOT_TRACK": "1",
    "PREFECT_HOME": os.environ.get("PREFECT_HOME") or tempfile.mkdtemp(),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
}

from prefect import flow, task
from prefect.client.orchestration import get_client
from prefect.exceptions import NotPausedError, Pause
from prefect.filesystems import WritableFileSystem
from prefect.flow_engine import run_flow
from prefect.flow_runs import resume_flow_run, suspend_flow_run
from prefect.input import RunInput
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Scheduled
from pydantic import validate_call

from counterseal_client.adapters.prefect import (
    GateCall,
    attempt_in_task,
    list_waiting,
    perform_calls,
    resume_flow,
)

from ..scripting import DONE, get_turn
from ..worker import Job, Pending, Report
from .driver import MALFORMED, RAW, DriverBase
from .tables import Table
from .toolbox import DELEGATE, GatedBox, build_toolbox


class SqliteStorage(WritableFileSystem):
    """Keeps the results of tasks in one file."""

    path: str

    def read_path(self, path: str, _sync: bool = True) -> bytes:
        """For a flow that is not async."""
        found: bytes | None = Table(self.path).get(path)
        if found is None:
            raise ValueError(f"{path} does not exist")
        return found

    def write_path(self, path: str, content: bytes, _sync: bool = True) -> None:
        """For a flow that is not async."""
        Table(self.path).put(path, content)


class Answer(RunInput):
    """The answer of people to a suspended call of the bare flow."""

    verdict: Literal["approve", "modify", "reject"]
    reason: str = ""
    args: dict[str, Any] | None = None


class Driver(DriverBase):
    """One run of a deployment, in a process of its own."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._name = Path(job.folder) / "flow_run"

    def run(self) -> Report:
        with temporary_settings({PREFECT_API_URL: f"http://{self.job.server}/api"}):
            return super().run()

    @property
    def _flow_run_id(self) -> uuid.UUID:
        return uuid.UUID(self._name.read_text())

    def start_run(self) -> None:
        run_agent = self._build_flow()
        with get_client(sync_client=True) as client:
            deployment = client.create_deployment(
                client.create_flow(run_agent), self.job.thread
            )
            flow_run = client.create_flow_run_from_deployment(deployment)
        self._name.write_text(str(flow_run.id))
        self._work()

    def repeat_run(self) -> None:
        """The run is resumed, as by hand, without an answer."""
        self._resume_raw(None)

    def resume_run(self) -> None:
        if self.gated:
            seconds = self.job.wait_seconds
            resume_flow(self._flow_run_id, self.gated.gate, wait_seconds=seconds)
        elif pending := self._list_pending():
            answer = self.job.find_answer(pending[0].args)
            with suppress(NotPausedError):
                resume_flow_run(self._flow_run_id, run_input=answer)
        if self.job.after_crash:  # what Prefect's automation does for a dead run
            with get_client(sync_client=True) as client:
                state = client.read_flow_run(self._flow_run_id).state
                if state is not None and state.is_running():
                    client.set_flow_run_state(
                        self._flow_run_id, Scheduled(), force=True
                    )
        self._work()

    def send_raw(self) -> None:
        """Behind the gate a resumption has no input, so Prefect leaves a redirection
        out."""
        self._resume_raw({**RAW, "malformed": {"verdict": MALFORMED}}[self.job.raw])

    def _resume_raw(self, answer: dict[str, Any] | None) -> None:
        # Prefect refuses what does not fit the input, and a run that is not paused.
        with suppress(NotPausedError, RuntimeError):
            resume_flow_run(self._flow_run_id, run_input=answer)
        self._work()

    def _work(self) -> None:
        """Run what is scheduled, as a worker's process does."""
        with get_client(sync_client=True) as client:
            flow_run = client.read_flow_run(self._flow_run_id)
        if flow_run.state is None or not flow_run.state.is_scheduled():
            return
        with suppress(Pause):
            run_flow(self._build_flow(), flow_run=flow_run, return_type="state")

    def _build_flow(self) -> Any:
        storage = SqliteStorage(path=str(self.job.store))
        storage.save(self.job.thread, overwrite=True)
        return build_flow(self.job, self.gated, storage)

    def _list_pending(self) -> list[Pending]:
        if self.gated:
            waiting = list_waiting(self._flow_run_id).items()
            return [Pending.from_facts(key, facts) for key, facts in waiting]
        with get_client(sync_client=True) as client:
            flow_run = client.read_flow_run(self._flow_run_id)
        if flow_run.state is None or not flow_run.state.is_paused():
            return []
        calls = [call for turn in self.job.script for call in turn]
        call = calls[len(flow_run.empirical_policy.pause_keys or ()) - 1]
        return [Pending.from_call(call)]

    def read_report(self) -> Report:
        with get_client(sync_client=True) as client:
            state = client.read_flow_run(self._flow_run_id).state
        assert state is not None
        if state.is_completed():
            return Report("finished", replies=state.result(), final=DONE)
        if state.is_final():
            return Report("failed", error=str(state.message))
        values = [*list_waiting(self._flow_run_id).values()]
        return Report("suspended", pending=self._list_pending(), values=values)


Perform = Callable[[list[dict[str, Any]]], list[str]]


def build_flow(job: Job, gated: GatedBox | None, storage: SqliteStorage) -> Any:
    """The flow of model and tools. A nested agent behind the gate is a function of the
    flow, since Prefect does not suspend the run of a flow inside another; a bare one is
    such a flow."""
    kept: dict[str, Any] = {
        "persist_result": True,
        "result_storage": storage,
        "result_serializer": "json",
    }

    @task(**kept)
    def think(outer: bool, turn: int) -> list[dict[str, Any]]:
        return get_turn(DELEGATE if outer else job.script, turn)

    def run_loop(outer: bool, perform: Perform) -> list[str]:
        replies: list[str] = []
        turn = 0
        while calls := think(outer, turn):
            replies += perform(calls)
            turn += 1
        return replies

    perform = build_gated(job, gated) if gated else build_bare(job)
    if not job.nested:
        return flow(lambda: run_loop(False, perform), name=job.thread, **kept)

    def run_inner() -> str:
        run_loop(False, perform)
        return DONE

    inner = run_inner if gated else flow(run_inner, **kept)
    return flow(
        lambda: run_loop(True, lambda calls: [inner()]), name=job.thread, **kept
    )


def build_gated(job: Job, gated: GatedBox) -> Perform:
    """Calls through the adapter."""

    def perform(calls: list[dict[str, Any]]) -> list[str]:
        details = gated.describe()
        found = [
            GateCall(gated.tools[call["name"]], call["args"], call["id"], details)
            for call in calls
        ]
        texts = perform_calls(found, thread=job.thread)
        if job.hostile:  # sends the refused calls to their tasks once more
            for call in found:
                request = {
                    "thread": job.thread,
                    "call_id": call.call_id,
                    "arguments": call.arguments,
                    "details": details,
                }
                attempt_in_task(call.tool, request)
        return texts

    return perform


def build_bare(job: Job) -> Perform:
    """Calls that suspend the flow for an input, as the documentation shows."""
    functions = build_toolbox(job).functions
    tools = {name: task(validate_call(found)) for name, found in functions.items()}

    def perform_one(call: dict[str, Any]) -> str:
        job.ledger.mark("asked")
        answer = suspend_flow_run(wait_for_input=Answer)
        if answer.verdict == "reject":
            return f"Rejected: {answer.reason}"
        return str(tools[call["name"]](**(answer.args or call["args"])))

    def perform(calls: list[dict[str, Any]]) -> list[str]:
        texts = [perform_one(call) for call in calls]
        if job.hostile:
            for call in calls:
                tools[call["name"]](**call["args"])
        return texts

    return perform
