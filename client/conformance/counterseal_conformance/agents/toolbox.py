"""What the agents of all frameworks share: the functions of the tools, bare and behind
the gate, and the steps of a job."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import httpx2

from counterseal_client.gate import Gate
from counterseal_client.gated_tools import GatedTool
from counterseal_client.operations import Details
from counterseal_client.tools import get_claim

from ..scripting import TOOL_NAMES, ToolBox, build_turn
from ..worker import Job, Report, kill_this_process, meet_at_effect

# The script of an agent that has a nested one.
DELEGATE = [build_turn(("outer_1", "delegate", {"task": "send it"}))]


def build_toolbox(job: Job) -> ToolBox:
    """The functions of the tools. Behind the gate each call has its key; a framework
    alone hands none to a tool."""
    return ToolBox(
        job.ledger,
        find_key=lambda: get_claim().idempotency_key if job.gated else "",
        before_effect=partial(meet_at_effect, Path(job.folder))
        if job.rendezvous
        else bool,
        after_effect=kill_this_process if job.kill_after_effect else bool,
    )


class GatedBox:
    """The functions behind the gate."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.gate = Gate(job.url, job.key, http=httpx2.Client(trust_env=False))
        box = build_toolbox(job)
        self.tools: Mapping[str, GatedTool[..., Any]] = {
            name: self.gate.tool()(getattr(box, name)) for name in TOOL_NAMES
        }

    def add_details(self, details: Details) -> Details:
        """The details of a proposal with those of the job, and a mark that this code
        ran."""
        self._job.ledger.mark("described")
        return {**details, **cast("Details", self._job.details)}


class TextStore:
    """A file with the state of one run as text, for a framework that leaves it to its
    user to keep one."""

    def __init__(self, job: Job) -> None:
        self._database = sqlite3.connect(job.store, check_same_thread=False)
        self._database.execute("CREATE TABLE IF NOT EXISTS run (state TEXT NOT NULL)")

    def save_state(self, state: str) -> None:
        with self._database:
            self._database.execute("DELETE FROM run")
            self._database.execute("INSERT INTO run VALUES (?)", [state])

    def load_state(self) -> str:
        """The state; empty before the first one."""
        row = self._database.execute("SELECT state FROM run").fetchone()
        return str(row[0]) if row else ""


def copy_store(job: Job) -> Path:
    """A copy of the job's SQLite file as it is now, with what its journal has."""
    older = Path(job.folder) / "older.sqlite"
    source, target = sqlite3.connect(job.store), sqlite3.connect(older)
    source.backup(target)
    source.close()
    target.close()
    return older


class StoredDriver:
    """What drivers with a TextStore have: the job, the store, and the gate's tools
    unless the framework is bare."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._store = TextStore(job)
        self._gated = GatedBox(job) if job.gated else None


class Driver(Protocol):
    """One framework's agent in one process, as a job drives it."""

    def start_run(self) -> None:
        """Begin the run with a user message."""

    def repeat_run(self) -> None:
        """Run again, without an answer, what a crash makes run again."""

    def resume_run(self) -> None:
        """Go on with what people decided."""

    def send_raw(self) -> None:
        """Send the job's `raw` answer to what waits, or to what once waited."""

    def read_report(self) -> Report:
        """How the stored run stands."""
        ...


def run_action(driver: Driver, job: Job) -> Report:
    """Let the driver take the action that the job names."""
    actions = {
        "start": driver.start_run,
        "rerun": driver.repeat_run,
        "resume": driver.resume_run,
        "answer": driver.send_raw,
    }
    if job.action != "list":
        actions[job.action]()
    return driver.read_report()


def find_answer(job: Job, args: Mapping[str, Any]) -> dict[str, Any]:
    """The job's answer to a call with these arguments, for a framework without a
    gate."""
    return job.answers.get(str(args.get("to", ""))) or job.answers["*"]
