"""How a job drives an agent. The module of each framework has a class `Driver` with
what is different there. A step may be a coroutine, which asyncio then runs."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Coroutine
from copy import copy
from pathlib import Path
from typing import Any

from counterseal_client.gate import Gate

from ..worker import Job, Report
from .toolbox import GatedBox

ASK = "Please do it."
"""The message of the user with which a run begins."""

ERASE: dict[str, Any] = {"id": "call_1", "name": "erase_note", "args": {"to": "ann"}}
"""The call of another tool, under the id of the call that waits."""

APPROVAL = {"verdict": "approve"}
REDIRECTION = {"verdict": "modify", "tool": ERASE["name"], "args": ERASE["args"]}
MALFORMED = "yes, please"
RAW: dict[str, Any] = {
    "approval": APPROVAL,
    "redirection": REDIRECTION,
    "malformed": MALFORMED,
}
"""Answers that no person gave, in the form of the kit's own bare agents."""

Step = Coroutine[Any, Any, None] | None


def run_step(step: Any) -> Any:
    """What a step returns, which may be a coroutine."""
    return asyncio.run(step) if asyncio.iscoroutine(step) else step


class DriverBase:
    """One framework's agent in one process."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.gated = GatedBox(job) if job.gated else None

    def run(self) -> Report:
        """Do the job, and report how the stored run then stands."""
        action = self.find_action()
        if action is not None:
            run_step(action())
        report: Report = run_step(self.read_report())
        return report

    def find_action(self) -> Callable[[], Step] | None:
        """The step that the job names; none if it only asks for the report."""
        return {
            "start": self.start_run,
            "rerun": self.repeat_run,
            "resume": self.resume_run,
            "answer": self.send_raw,
        }.get(self.job.action)

    async def take_step(self) -> None:
        """Await that step, for a driver that runs in one loop of asyncio."""
        action = self.find_action()
        step = action() if action else None
        if step is not None:
            await step

    def start_run(self) -> Step:
        """Begin the run with a user message."""
        raise NotImplementedError

    def repeat_run(self) -> Step:
        """Run again, without an answer, what a crash makes run again. In a framework
        that never runs the code before a pause again, that is a crash before the run
        was stored, so that the run begins again."""
        return self.start_run()

    def resume_run(self) -> Step:
        """Go on with what people decided; hostile code then goes on from an older copy
        of the run."""
        older = self.copy_run() if self.job.hostile else None
        if self.gated:
            run_step(self.resume_gated(self.gated.gate))
        else:
            run_step(self.resume_bare())
        if self.job.hostile:
            self.replay(older)
        return None

    def resume_gated(self, gate: Gate) -> Step:
        """Go on through the adapter."""
        raise NotImplementedError

    def resume_bare(self) -> Step:
        """Go on with the answers of the job."""
        raise NotImplementedError

    def copy_run(self) -> Any:
        """The stored run as it is now."""
        raise NotImplementedError

    def replay(self, older: Any) -> None:
        """Hostile: go on from an older copy of the run, with everything approved. The
        run itself stays as it is."""
        raise NotImplementedError

    def send_raw(self) -> Step:
        """Send the job's `raw` answer to what waits, or to what once waited."""
        raise NotImplementedError

    def read_report(self) -> Report | Coroutine[Any, Any, Report]:
        """How the stored run stands."""
        raise NotImplementedError


class StoredDriver(DriverBase):
    """For a framework that leaves it to its user to keep a run: as JSON in the job's
    file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._database = sqlite3.connect(job.store, check_same_thread=False)
        self._database.execute("CREATE TABLE IF NOT EXISTS run (state TEXT NOT NULL)")

    def save(self, state: Any) -> None:
        """Store how the run stands now."""
        with self._database:
            self._database.execute("INSERT INTO run VALUES (?)", [json.dumps(state)])

    def load(self) -> Any:
        """The stored run; none before the first one."""
        return self._load("SELECT state FROM run ORDER BY rowid DESC")

    def load_first(self) -> Any:
        """The run as it was stored first."""
        return self._load("SELECT state FROM run ORDER BY rowid")

    def _load(self, query: str) -> Any:
        row = self._database.execute(query).fetchone()
        return json.loads(row[0]) if row else None

    copy_run = load

    def replay(self, older: Any) -> None:
        """Approve everything in an older run, and put the newer one back."""
        stored = self.load()
        run_step(self.approve_all(older))
        self.save(stored)

    def approve_all(self, older: Any) -> Step:
        """Go on from a stored run as if all that waited in it was approved."""
        raise NotImplementedError


class PausedDriver(StoredDriver):
    """For an adapter that ends a run with an exception which holds it: the stored run
    has that as `paused`. `calls_in` names the part with the model's calls."""

    calls_in: str

    def repeat_run(self) -> Step:
        return self.go_on(self.load())

    def approve_all(self, older: Any) -> Step:
        return self.go_on(older)

    def send_raw(self) -> Step:
        """Such a run has no answers, so a redirection is a stored part with another
        call, and a malformed answer a part that is none. A late answer is one to the
        run as it was first."""
        if self.job.interrupt_ids:
            self.replay(self.load_first())
            return None
        stored = self.load()
        if self.job.raw == "redirection":
            stored["paused"][self.calls_in] = self.build_redirection()
        if self.job.raw == "malformed":
            stored["paused"][self.calls_in] = MALFORMED
        return self.go_on(stored)

    def build_redirection(self) -> Any:
        """That part with the call ERASE."""
        raise NotImplementedError

    def go_on(self, stored: Any) -> Step:
        """Go on from a stored run, with whatever the gate says about its calls."""
        raise NotImplementedError


def copy_store(job: Job) -> Path:
    """A copy of the job's SQLite file as it is now, with what its journal has."""
    older = Path(job.folder) / "older.sqlite"
    source, target = sqlite3.connect(job.store), sqlite3.connect(older)
    source.backup(target)
    source.close()
    target.close()
    return older


class FileDriver(DriverBase):
    """For a framework that keeps a run in an SQLite file by itself."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.open(job.store)

    def open(self, file: Path) -> None:
        """Build the agent with the runs in this file."""
        raise NotImplementedError

    def copy_run(self) -> Path:
        return copy_store(self.job)

    def replay(self, older: Path) -> None:
        """Approve everything in an older file."""
        other = copy(self)
        other.open(older)
        run_step(other.approve_all())

    def approve_all(self) -> Step:
        """Go on as if all that waits was approved."""
        raise NotImplementedError
