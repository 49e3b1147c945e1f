"""Everything that runs: PostgreSQL, Valkey, several web processes and workers, and the
outside world. What dies by itself is started again, as a supervisor would."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import httpx

from hitl.environment import LOOPBACK
from hitl.local import defaults, keys, layout, postgres, programs, valkey
from hitl.local.layout import Layout
from hitl.local.process import Child, Program, kill_group
from tests.stack import free_port, wait_until

from . import processes, provider, trace
from .options import LADDER, Options

DISK = "/var/tmp"  # noqa: S108 mkdtemp makes the folder, for us alone
OTHERS = ("DATABASE_URL", "REDIS_URL", "BASE_URL", "PORT", "STORE_PORT")
START_S = 60.0
AGAIN_S = 0.5  # after which the dead are started again
POOL = 2  # processes of a worker
BEATS = 2  # workers that also tell the time; one must be left when the other dies


@dataclass
class Slot:
    """A place in which a process runs, dies and is started again."""

    name: str
    start: Callable[[], Child]
    child: Child = field(init=False)
    again_at: float | None = None
    frozen: bool = False
    starts: int = 0

    def run(self) -> None:
        self.child = self.start()
        self.starts += 1
        self.again_at = None
        self.frozen = False

    @property
    def alive(self) -> bool:
        return self.again_at is None and self.child.exit_code() is None

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """The whole group: what it started must not live on."""
        if number is signal.SIGKILL:
            kill_group(self.child.pid)
        else:
            self.child.process.send_signal(number)
        self.child.process.wait()


@dataclass
class Stage:
    """One installation and the world around it."""

    here: Layout
    options: Options
    ports: list[int]
    provider_port: int
    slots: dict[str, Slot] = field(default_factory=dict)

    @property
    def webs(self) -> list[Slot]:
        return [slot for slot in self.slots.values() if slot.name.startswith("web")]

    @property
    def workers(self) -> list[Slot]:
        return [slot for slot in self.slots.values() if slot.name.startswith("worker")]

    @property
    def addresses(self) -> list[str]:
        return [f"http://{LOOPBACK}:{port}" for port in self.ports]

    @property
    def provider(self) -> str:
        return f"http://{LOOPBACK}:{self.provider_port}"

    @property
    def ledger(self) -> Path:
        return self.here.state / "ledger.sqlite"

    @property
    def faults(self) -> Path:
        return self.here.state / "faults"

    @property
    def traces(self) -> Path:
        return self.here.state / "traces"

    def launch(self, name: str, start: Callable[[], Child]) -> Slot:
        slot = Slot(name, start)
        slot.run()
        self.slots[name] = slot
        return slot

    def keep(self) -> list[str]:
        """Start again who died; their names. Call it often, from the main thread."""
        again = []
        for slot in self.slots.values():
            if slot.again_at is None and slot.child.exit_code() is not None:
                kill_group(slot.child.pid)
                slot.again_at = time.monotonic() + AGAIN_S
            elif slot.again_at is not None and time.monotonic() >= slot.again_at:
                slot.run()
                again.append(slot.name)
        return again

    def log(self, name: str) -> str:
        file = self.here.logs / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""


@contextmanager
def servers(options: Options) -> Iterator[Stage]:
    """A private PostgreSQL, which waits for the disk, and Valkey, named in the
    environment; stopped and removed afterwards, with all that was started on them.

    *Raises* Fault.
    """
    with ExitStack() as stack:
        state = Path(tempfile.mkdtemp(prefix="holdpoint-chaos-", dir=DISK))
        stack.callback(shutil.rmtree, state, ignore_errors=True)
        here = _environment(state)
        layout.make_run(here.run)
        stack.callback(shutil.rmtree, here.run, ignore_errors=True)
        ports = [free_port() for _ in range(options.webs)]
        stage = Stage(here, options, ports, free_port())
        stack.callback(_stop, stage)
        for folder in (stage.faults, stage.traces, here.logs):
            folder.mkdir(exist_ok=True)
        password = keys.read(here.keys, "database_password")
        stage.launch("postgres", partial(postgres.start, here, password))
        stack.callback(_remove_data, here)
        stage.launch("valkey", partial(valkey.start, here))
        yield stage


def _environment(state: Path) -> Layout:
    for name in OTHERS:
        os.environ.pop(name, None)
    os.environ |= {
        "STATE": str(state),
        "DEPLOYMENT": "local",
        "LOG_LEVEL": "WARNING",
        "AGENT_RATE_PER_MINUTE": "100000",
        "DJANGO_SETTINGS_MODULE": "hitl.settings",
        **{name: str(seconds) for name, seconds in LADDER.items()},
    }
    return defaults.fill(os.environ)


def _remove_data(here: Layout) -> None:
    home = here.postgres_data.resolve().parent
    if home != here.state:
        shutil.rmtree(home, ignore_errors=True)


def _stop(stage: Stage) -> None:
    """In the order in which they need one another."""
    for slot in reversed(list(stage.slots.values())):
        processes.signal_all(slot.child.pid, signal.SIGCONT)
        if slot.name in {"postgres", "valkey"}:
            slot.child.stop(within=5)
        else:
            slot.kill()


def open_up(stage: Stage, outside: Sequence[str] = ()) -> None:
    """Start the product and the world, and wait until all of them are ready. `outside`
    names another module that plays the world, with its arguments."""
    stage.launch("provider", partial(Child, _provider(stage, outside)))
    for number, port in enumerate(stage.ports):
        stage.launch(f"web-{number}", partial(Child, _web(stage, number, port)))
    for number in range(stage.options.workers):
        stage.launch(f"worker-{number}", partial(Child, _worker(stage, number)))
    for address in stage.addresses:
        wait_until(partial(_ready, address), START_S, partial(stage.log, "web-0"))
    for slot in stage.workers:
        said = partial(stage.log, slot.name)
        wait_until(partial(_says_ready, said), START_S, said)


def _environ(stage: Stage, **more: str) -> dict[str, str]:
    """As in production, a line a request in JSON, with every fault point armed."""
    return {
        **os.environ,
        "BASE_URL": stage.addresses[0],
        "LOG_LEVEL": "INFO",
        "LOG_FORMAT": "json",
        "HOLDPOINT_FAULT": str(stage.faults),
        **more,
    }


def _web(stage: Stage, number: int, port: int) -> Program:
    program = programs.web(stage.here, _environ(stage, PORT=str(port)))
    return _named(stage, program, f"web-{number}", program.argv)


def _worker(stage: Stage, number: int) -> Program:
    name = f"worker-{number}"
    more = {trace.FOLDER: str(stage.traces), trace.NAME: name}
    program = programs.worker(stage.here, _environ(stage, **more))
    argv = [part for part in program.argv if number < BEATS or part != "--beat"]
    argv[argv.index("--concurrency") + 1] = str(POOL)
    argv += ["--include", "chaos.trace", "--hostname", f"{name}@%h"]
    return _named(stage, program, name, argv)


def _named(stage: Stage, program: Program, name: str, argv: Sequence[str]) -> Program:
    log = stage.here.logs / f"{name}.log"
    return replace(program, name=name, argv=argv, log=log)


def _provider(stage: Stage, outside: Sequence[str]) -> Program:
    secret = keys.read(stage.here.keys, "webhook_secret")
    usual = ("chaos.provider", str(stage.provider_port), str(stage.ledger))
    program = programs.worker(stage.here, dict(os.environ))
    return replace(
        program,
        name="provider",
        argv=[program.argv[0], "-m", *(outside or usual)],
        env={**os.environ, provider.SECRET: secret},
        log=stage.here.logs / "provider.log",
    )


def _ready(address: str) -> bool:
    try:
        answer = httpx.get(f"{address}/readyz", trust_env=False, timeout=5)
    except httpx.TransportError:
        return False
    return answer.status_code == 200


def _says_ready(said: Callable[[], str]) -> bool:
    return " ready." in said()
