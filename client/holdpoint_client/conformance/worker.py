"""One process of the agent under test: `python -m holdpoint_client.conformance.worker
JOB`, with the job as JSON. It runs the real framework with the scripted model and
prints one line with what it found.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from .scripting import Ledger, Script

MARK = "HOLDPOINT-REPORT "
"""Begins the line with the report: a framework may print lines of its own."""
BARRIER_SECONDS = 60.0
MODULES = {
    "langgraph": "langgraph_agent",
    "langchain-batched": "langchain_agent",
    "langchain-per-call": "langchain_agent",
}
"""The module in `agents` of each variant of a framework."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one process is to do. `action` is "start", "rerun" (run the stored state
    again without an answer), "resume" (go on with what people decided), "answer" (send
    `raw` to everything that waits) or "list"."""

    action: str
    variant: str
    gated: bool
    thread: str
    folder: str
    script: Script
    url: str = ""
    key: str = ""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    raw: Any = None
    interrupt_ids: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    wait_seconds: float = 0.0
    after_crash: bool = False
    nested: bool = False
    hostile: bool = False
    kill_after_effect: bool = False
    barrier: str = ""

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


@dataclass(slots=True)
class Report:
    """How a run stands: "suspended", "finished" or "failed" with an error. `values` are
    those of the interrupts, `replies` the tools' answers to the model, `final` its last
    words."""

    state: str
    pending: list[Pending] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    final: str = ""
    error: str = ""


class ScriptedAgent(Protocol):
    """A framework's agent under test."""

    def run(self, job: Job) -> Report:
        """Do the job in this process."""
        ...


def load_agent(variant: str) -> ScriptedAgent:
    """The agent of a variant. Raises ImportError when its framework is missing."""
    module = importlib.import_module(f".agents.{MODULES[variant]}", __package__)
    agent: ScriptedAgent = module.build_agent(variant)
    return agent


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


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    agent = load_agent(job.variant)
    if job.barrier:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
    meet_others(job.barrier)
    try:
        report = agent.run(job)
    except Exception as error:
        report = Report("failed", error=f"{type(error).__name__}: {error}")
    sys.stdout.write(f"{MARK}{json.dumps(asdict(report), default=str)}\n")
    sys.stdout.flush()
    # A check that kills this process keeps its standard input open.
    sys.stdin.read()


if __name__ == "__main__":
    main()
