"""One process of the agent under test. It runs the real framework with the scripted
model and sends back what it found.

The processes are forked from a server that has imported the framework and done nothing
else, so that a check does not wait for imports.
"""

from __future__ import annotations

import importlib
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, Self

from .scripting import Ledger, Script
from .variants import VARIANTS

BARRIER_SECONDS = 60.0
RENDEZVOUS_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Job:
    """What one process is to do. `action` is "start", "rerun" (run again, without an
    answer, what a crash makes this framework run again), "resume" (go on with what
    people decided), "answer" (send `raw` to everything that waits) or "list".
    `rendezvous`: see `meet_at_effect`. `server` is that of `start_server`.

    `raw` is an answer in the framework's own form: "approval", "redirection" (an edit
    that names the tool `erase_note`) or "malformed" (a text in place of an answer)."""

    action: str
    variant: str
    gated: bool
    thread: str
    folder: str
    script: Script
    url: str = ""
    key: str = ""
    server: str = ""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    raw: str = ""
    interrupt_ids: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    wait_seconds: float = 0.0
    after_crash: bool = False
    nested: bool = False
    hostile: bool = False
    kill_after_effect: bool = False
    barrier: str = ""
    rendezvous: bool = False

    def find_answer(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a call with these arguments, for a framework without a gate."""
        return self.answers.get(str(args.get("to", ""))) or self.answers["*"]

    @property
    def store(self) -> Path:
        """The SQLite file of the framework's checkpoints."""
        return Path(self.folder) / "checkpoints.sqlite"

    @property
    def ledger(self) -> Ledger:
        """What happened in the world."""
        return Ledger(Path(self.folder) / "ledger")


@dataclass(slots=True)
class Pending:
    """A call that waits, as the framework shows it."""

    interrupt_id: str
    tool: str
    call_id: str
    args: dict[str, Any]

    @classmethod
    def from_call(cls, call: Mapping[str, Any]) -> Self:
        """A call of a script, by its own id."""
        return cls(call["id"], call["name"], call["id"], call["args"])

    @classmethod
    def from_facts(cls, interrupt_id: str, facts: Mapping[str, Any]) -> Self:
        """A call of an adapter, by what people are asked about it."""
        return cls(interrupt_id, facts["tool"], facts["tool_call_id"], {})


@dataclass(slots=True)
class Report:
    """How a run stands: "suspended", "finished" or "failed" with an error; without a
    word for it, what is pending decides. `values` are those of the interrupts,
    `replies` the tools' answers to the model, `final` its last words."""

    state: str = ""
    pending: list[Pending] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    final: str = ""
    error: str = ""

    def __post_init__(self) -> None:
        if not self.state:
            self.state = "suspended" if self.pending else "finished"
            self.final = "" if self.pending else self.final


class Driver(Protocol):
    """A framework's agent under test, with one job."""

    def __init__(self, job: Job) -> None: ...

    def run(self) -> Report:
        """Do the job in this process."""
        ...


def load_driver(variant: str) -> type[Driver]:
    """The agent of a variant. Raises ImportError when its framework is missing."""
    module = importlib.import_module(f".agents.{VARIANTS[variant].module}", __package__)
    driver: type[Driver] = module.Driver
    return driver


def kill_this_process() -> None:
    """End at once, as a crash does: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def meet_others(barrier: str) -> None:
    """Wait until the kit has started every process that takes part in a race."""
    end = time.monotonic() + BARRIER_SECONDS
    while barrier and not Path(barrier).exists():
        if time.monotonic() > end:
            raise TimeoutError(f"{barrier} did not appear")
        time.sleep(0.005)


def meet_at_effect(folder: Path) -> None:
    """Right before the effect, give another process the time to come here too. Then
    both go on: whoever let two of them in has two effects."""
    (folder / f"arrived-{os.getpid()}").touch()
    end = time.monotonic() + RENDEZVOUS_SECONDS
    while len(list(folder.glob("arrived-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.005)


def run_job(job: Job, connection: Connection) -> None:
    """Do a job and send its report. Ends when the kit closes its side; a check that
    kills this process leaves it open until then."""
    driver = load_driver(job.variant)
    connection.send("ready")
    meet_others(job.barrier)
    try:
        report = driver(job).run()
    except Exception as error:
        report = Report("failed", error=f"{type(error).__name__}: {error}")
    connection.send(report)
    with suppress(EOFError):
        connection.recv()
