"""One run of one framework under test, bare or with Counterseal, as the checks drive
it: processes that start and resume the agent, and people who decide."""

from __future__ import annotations

import json
import multiprocessing
import re
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import httpx2

from counterseal_client.errors import ApiError, CountersealError
from counterseal_client.gate import Gate

from .catalogue import CheckFailed, CheckNotRun, expect
from .people import Reviewer, Visitor
from .scripting import Effect, Ledger, Script
from .variants import TYPESCRIPT, VARIANTS, find_node
from .worker import Job, Pending, Report, run_job

PROCESS_SECONDS = 90.0  # for one process of an agent
PATIENCE_SECONDS = 60.0  # for what the gate does in the background
WINDOW_SECONDS = 900.0  # for the longest undo window that the kit waits for


@dataclass(frozen=True, slots=True)
class Target:
    """The gate that the kit runs against, from the `--target` file or the options.

    `logins` has user name, password and token of people by role. `mail` is the folder
    in which that gate leaves its mails, `kill_web` the command that kills its web
    processes, `endpoint` the port and the secret of the agent's webhooks. What is
    missing leaves checks out, and the kit says which.
    """

    url: str
    key: str
    agent: str = "conformance"
    logins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    mail: str = ""
    kill_web: tuple[str, ...] = ()
    folder: str = "."
    endpoint: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Target:
        """Read the file that `make conformance` writes."""
        data = json.loads(path.read_text())
        return cls(**{**data, "kill_web": tuple(data.get("kill_web", ()))})

    def get_login(self, role: str, *needed: str) -> Mapping[str, str]:
        """What is known of a person, with these parts: `username`, `password`, `token`.
        Raises CheckNotRun where one was not given."""
        login = self.logins.get(role, {})
        lacking = [part for part in needed if not login.get(part)]
        if lacking:
            raise CheckNotRun(f"no {lacking[0]} of the role {role} was given")
        return login

    def get_token(self, role: str) -> str:
        """A person's token. Raises CheckNotRun without one."""
        return self.get_login(role, "token")["token"]

    def sign_in(self, role: str) -> Visitor:
        """A session of that person at the pages. Raises CheckNotRun without a
        password."""
        login = self.get_login(role, "password", "username")
        return Visitor.sign_in(self.url, login)

    def list_lacks(self) -> list[str]:
        """What this gate lacks so that no check could hold, one sentence each."""
        try:
            with self.connect() as gate:
                names = {tool.name for tool in gate.tools()}
        except ApiError as error:
            return [f"The gate does not take the agent's key: {error}"]
        except (CountersealError, httpx2.TransportError) as error:
            return [f"No gate answers at {self.url}: {error}"]
        lacks = []
        if missing := sorted(set(list_kit_tools()) - names):
            lacks.append(
                f"The agent may not use {', '.join(missing)}: add the tools that"
                " --policy prints to the gate's policy, and allow them to the agent."
            )
        token = self.logins.get("reviewer", {}).get("token", "")
        if token:
            with closing(Reviewer(self.url, token)) as reviewer:
                if reviewer.check_token() != HTTPStatus.OK:
                    lacks.append("The gate does not take the reviewer's token.")
        return lacks

    def connect(self) -> Gate:
        """The agent's own view of the gate."""
        return Gate(self.url, self.key, http=httpx2.Client(trust_env=False))

    def restart_web(self) -> None:
        """Kill the web processes and wait until new ones answer."""
        if not self.kill_web:
            raise CheckNotRun("this gate may not be killed")
        subprocess.run(self.kill_web, cwd=self.folder, check=True)  # noqa: S603
        wait_for(self.is_ready, "the gate did not come back")

    def is_ready(self) -> bool:
        """Whether the gate takes calls."""
        try:
            answer = httpx2.get(f"{self.url}/readyz", trust_env=False, timeout=5)
        except httpx2.TransportError:
            return False
        return answer.status_code == 200


def list_kit_tools() -> list[str]:
    """The names of the tools in the kit's policy."""
    text = files(__package__).joinpath("policy.yaml").read_text()
    return re.findall(r"^  (\w+):$", text.partition("\ntools:\n")[2], re.M)


def wait_for(
    condition: Callable[[], bool], otherwise: str, seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait until the condition holds. Raises CheckFailed with what happened instead."""
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, otherwise)
        time.sleep(0.1)


class AgentProcess(Protocol):
    """A process of the agent, in the language of its framework."""

    def read_report(self) -> Report:
        """What the process found. Raises CheckFailed when it died before."""
        ...

    def end(self) -> None:
        """Let it end by itself. Raises CheckFailed when something keeps it alive."""

    def kill(self) -> None:
        """SIGKILL, in the middle of anything."""

    def wait_for_death(self) -> None:
        """Wait until the process has killed itself. Raises CheckFailed if it lives."""


class PythonProcess:
    """An `AgentProcess` of Python."""

    def __init__(self, job: Job) -> None:
        module = f"{__package__}.agents.{VARIANTS[job.variant].module}"
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([module])
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=run_job, args=(job, theirs))
        self._process.start()
        theirs.close()
        self._receive()  # that it is ready

    def read_report(self) -> Report:
        report = self._receive()
        assert isinstance(report, Report)
        return report

    def _receive(self) -> object:
        try:
            expect(self._connection.poll(PROCESS_SECONDS), "the agent does not answer")
            return self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            raise CheckFailed(f"the agent's process died ({code})") from None

    def end(self) -> None:
        self._connection.close()
        self._process.join(PROCESS_SECONDS)
        if self._process.exitcode is None:
            self.kill()
            raise CheckFailed("the agent's process does not end")

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def wait_for_death(self) -> None:
        self._process.join(PROCESS_SECONDS)
        code = self._process.exitcode
        expect(code == -signal.SIGKILL, f"the process was not killed ({code})")


class NodeProcess:
    """An `AgentProcess` of Node: it reads the job as a line of JSON, and answers with
    lines of JSON."""

    def __init__(self, job: Job) -> None:
        program = TYPESCRIPT / "conformance" / VARIANTS[job.variant].module
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [find_node(), str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._write, self._read = self._process.stdin, self._process.stdout
        self._write.write(json.dumps(asdict(job)) + "\n")
        self._write.flush()
        self._receive()  # that it is ready

    def read_report(self) -> Report:
        found = self._receive()
        pending = [Pending(**call) for call in found.pop("pending", [])]
        return Report(**found, pending=pending)

    def _receive(self) -> Any:
        guard = threading.Timer(PROCESS_SECONDS, self._process.kill)
        guard.start()
        line = self._read.readline()
        guard.cancel()
        expect(bool(line), f"the agent's process died ({self._process.poll()})")
        return json.loads(line)

    def end(self) -> None:
        self._write.close()
        try:
            self._process.wait(PROCESS_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise CheckFailed("the agent's process does not end") from None
        self._read.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def wait_for_death(self) -> None:
        code = self._process.wait(PROCESS_SECONDS)
        self._process.communicate()
        expect(code == -signal.SIGKILL, f"the process was not killed ({code})")


class Subject:
    """One agent's run: its thread, its stored state, its ledger, and its people."""

    def __init__(
        self,
        target: Target,
        variant: str,
        *,
        gated: bool,
        folder: Path,
        server: str = "",
    ) -> None:
        self.target = target
        self.server = server
        self.variant = variant
        self.gated = gated
        self.thread = f"kit-{uuid.uuid4().hex}"
        self.folder = folder / self.thread
        self.folder.mkdir(parents=True)
        self.script: Script = []
        self.options: dict[str, Any] = {}
        self._answers: dict[str, dict[str, Any]] = {}

    @property
    def ledger(self) -> Ledger:
        """What happened in the world."""
        return Ledger(self.folder / "ledger")

    @property
    def effects(self) -> list[Effect]:
        """The effects so far."""
        return self.ledger.list_effects()

    def spawn(self, action: str, **more: Any) -> AgentProcess:
        """A process that does one action of `Job`. A run goes on only when nothing that
        people decided can still be taken back."""
        if action == "resume":
            self.wait_for_undo_window()
        given = {"answers": self._answers, **self.options, **more}
        variant = VARIANTS[self.variant]
        begin = NodeProcess if variant.under_node else PythonProcess
        return begin(
            Job(
                action=action,
                variant=self.variant,
                gated=self.gated,
                thread=self.thread,
                folder=str(self.folder),
                script=self.script,
                url=self.target.url,
                key=self.target.key,
                server=self.server,
                **given,
            )
        )

    def run(self, action: str, **more: Any) -> Report:
        """The report of a process that does one action and ends."""
        process = self.spawn(action, **more)
        report = process.read_report()
        process.end()
        return report

    def start(self, script: Script, **options: Any) -> Report:
        """Run the agent until it suspends. `options` hold for all its processes."""
        self.script = script
        self.options = options
        return self.run("start")

    def start_waiting(self, script: Script) -> Report:
        """Raises CheckFailed unless it suspends with its calls pending."""
        report = self.start(script)
        expect(report.state == "suspended", f"it did not suspend: {report}")
        return report

    def resume(self, wait_seconds: float = 0, **more: Any) -> Report:
        """Go on in a new process with what people decided."""
        return self.run("resume", wait_seconds=wait_seconds, **more)

    def wait_for_undo_window(self) -> None:
        """Wait until the people's decisions can no longer be recalled."""
        if not self.gated or not self.target.logins.get("reviewer", {}).get("token"):
            return
        reviewer, agent = self.reviewer, self.target.agent
        wait_for(
            lambda: not reviewer.list_requests(agent, self.thread, "recallable"),
            "the gate's undo window did not close",
            WINDOW_SECONDS,
        )

    def list_requests(self) -> list[dict[str, Any]]:
        """What waits for people at the gate."""
        return self.reviewer.list_requests(self.target.agent, self.thread)

    @cached_property
    def reviewer(self) -> Reviewer:
        """The person who decides by program."""
        return Reviewer(self.target.url, self.target.get_token("reviewer"))

    @property
    def gate(self) -> Gate:
        """The agent's own view of the gate."""
        return self.target.connect()

    def find_request(self) -> dict[str, Any]:
        """The one request that waits. Raises CheckFailed for another number."""
        rows = self.list_requests()
        expect(len(rows) == 1, f"{len(rows)} requests wait at the gate instead of one")
        return rows[0]

    def decide(
        self, verdict: str, *, to: str = "", reason: str = "", args: Any = None
    ) -> bool:
        """People decide all that waits, or the call to one person. Whether the decision
        was taken; a bare framework finds out when it resumes."""
        if not self.gated:
            given = {"verdict": verdict, "reason": reason}
            if args is not None:
                given["args"] = args
            self._answers[to or "*"] = given
            return True
        taken = True
        for row in self.list_requests():
            if not to or row["args"].get("to") == to:
                answer = self.reviewer.decide(row["id"], verdict, reason, args)
                taken = taken and answer.status_code == 200
        return taken

    def count_waiting(self) -> int:
        """How many calls people are asked about."""
        if self.gated:
            return len(self.list_requests())
        return len(self.run("list").pending)

    def close(self) -> None:
        """End the run at the gate, so that nothing of it waits any more."""
        if "reviewer" in self.__dict__:
            self.reviewer.close()
        if self.gated:
            with suppress(ApiError):  # the gate knows no such run
                self.gate.finish(self.thread, "gave_up")
