"""Runs `counterseal up`: the steps of a start, each reported with its duration, and the
programs of a private installation."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError

from hitl import checks
from hitl.child_processes import call_in_child
from hitl.environment import LOOPBACK, MOST_WEB_PROCESSES, ROOT
from hitl.static_files import collect_static_files

from . import (
    defaults,
    gate_file,
    keys,
    postgres,
    preflight,
    valkey,
)
from .layout import InstallationError, Layout, create_run_folder
from .process import Child, Program
from .supervisor import StartInterrupted, SupervisedService, Supervisor

WEB_SHUTDOWN_S = 1
WORKER_PROCESSES = 2
# The demo's shop and agent may know the gate's addresses but not its database.
HIDDEN_FROM_DEMO = {"DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"}


def build_web_program(
    here: Layout, environ: Mapping[str, str], name: str = "web"
) -> Program:
    """One web process. No proxy precedes it, so it ignores forwarding headers."""
    host = environ.get("HOST", LOOPBACK)
    return _build_python_program(
        here,
        environ,
        name,
        f"-m hitl.web --host {host} --port {environ['PORT']} "
        f"--no-proxy-headers --stop-within {WEB_SHUTDOWN_S}",
    )


@dataclass(frozen=True, slots=True)
class WebProcess:
    """One of the web processes that share the port, and the file that it creates once
    it accepts connections."""

    program: Program
    ready_file: Path

    def start(self) -> Child:
        self.ready_file.unlink(missing_ok=True)  # of the process that it replaces
        return Child(self.program)


def build_web_processes(
    here: Layout, environ: Mapping[str, str], count: int
) -> list[WebProcess]:
    """The web processes `web-1`, `web-2` and so on, each with a log of its own."""
    return [
        _build_web_process(here, environ, f"web-{number}")
        for number in range(1, count + 1)
    ]


def _build_web_process(
    here: Layout, environ: Mapping[str, str], name: str
) -> WebProcess:
    program = build_web_program(here, environ, name)
    ready_file = here.run / f"{name}.ready"
    argv = [*program.argv, "--ready-file", str(ready_file)]
    return WebProcess(replace(program, argv=argv), ready_file)


def build_worker_program(here: Layout, environ: Mapping[str, str]) -> Program:
    """One Celery worker with an embedded beat, so that there is exactly one beat.

    SIGQUIT stops it: running tasks get `worker_soft_shutdown_timeout`, then their
    messages return to the broker. SIGTERM would wait longer for the tasks. If
    the supervisor is killed, the broker dies too; a worker that then tried to return
    messages would never end, so it gets SIGKILL.
    """
    program = _build_python_program(
        here,
        environ,
        "worker",
        f"-m celery --app hitl.celery worker --beat --concurrency {WORKER_PROCESSES} "
        "--without-gossip --without-mingle --without-heartbeat",
        stop_signal=signal.SIGQUIT,
    )
    return replace(program, orphan_signal=signal.SIGKILL)


def build_store_program(here: Layout, environ: Mapping[str, str]) -> Program:
    """The demo's shop, which the gate treats as an external service."""
    secret = environ.get("WEBHOOK_SECRET") or keys.read_key(here.keys, "webhook_secret")
    env = _filter_demo_environ(environ) | {"COUNTERSEAL_WEBHOOK_SECRET": secret}
    return _build_python_program(here, env, "store", "-m demo.store")


def build_riley_program(here: Layout, environ: Mapping[str, str]) -> Program:
    """The demo's agent."""
    return _build_python_program(
        here, _filter_demo_environ(environ), "riley", "-m demo.riley"
    )


def _filter_demo_environ(environ: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in environ.items() if k not in HIDDEN_FROM_DEMO}


def _build_python_program(
    here: Layout,
    environ: Mapping[str, str],
    name: str,
    args: str,
    *,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Program:
    return Program(
        name=name,
        argv=[sys.executable, *args.split()],
        env={**environ, "PYTHONUNBUFFERED": "1"},
        log=here.logs / f"{name}.log",
        stop_signal=stop_signal,
        cwd=ROOT,
    )


READY_TIMEOUT_S = 60
WEB_NAMES = tuple(f"web-{number}" for number in range(1, MOST_WEB_PROCESSES + 1))
# The supervisor signals all services of a group, then waits for them together. The
# groups share five seconds: 3.0 for running tasks and requests, 0.3, and 1.4 for
# PostgreSQL to flush its data.
STOP_ORDER = (("riley", "worker", *WEB_NAMES), ("store", "valkey"), ("postgres",))
TASKS_STOP_S = 3.0
OTHERS_STOP_S = 0.3
POSTGRES_STOP_S = 1.4

PrintLine = Callable[[str], None]
# Creates what a gate begins with, in a migrated database. Returns the lines that say
# how people get in, and those of a first call: none where no agent is ready for it.
PrepareGate = Callable[[Layout, bool], tuple[Sequence[str], Sequence[str]]]


@dataclass
class Installation:
    """One start of the installation that the environment describes."""

    here: Layout
    environ: MutableMapping[str, str]
    say: PrintLine
    demo: bool
    prepare: PrepareGate
    supervisor: Supervisor = field(init=False)
    webs: list[WebProcess] = field(init=False)
    way_in: Sequence[str] = ()
    first_call: Sequence[str] = ()
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(self.say)
        count = settings.COUNTERSEAL.web_processes
        self.webs = build_web_processes(self.here, self.environ, count)

    def start(self, *, patient: bool) -> None:
        """Start everything in order. `patient`: wait for ports that the previous,
        killed installation may still hold.

        *Raises* InstallationError.
        """
        self._look_first(patient=patient)
        self._database()
        self._broker()
        # The supervisor lives on: it would keep what the migrations leave in memory.
        self.way_in, self.first_call = call_in_child(self._fill_database)
        self._processes()

    def _fill_database(self) -> tuple[Sequence[str], Sequence[str]]:
        with self._step("migrations and files"):
            _run_command("migrate", interactive=False)
            collect_static_files(self.here.state)
        if self.demo and self.environ.get("HISTORY") != "0":
            with self._step("thirty days of history"):
                _run_command("write_demo_history")
        with self._step("demo data" if self.demo else "policy and people"):
            if self.demo:
                _run_command("seed_demo")
            return self.prepare(self.here, self.demo)

    def _look_first(self, *, patient: bool) -> None:
        preflight.check_disk(self.here)
        host = self.environ.get("HOST", LOOPBACK)
        preflight.check_solo(host, demo=self.demo)
        ports = [("PORT", host)] + [("STORE_PORT", LOOPBACK)] * self.demo
        for name, address in ports:
            port = int(self.environ[name])
            preflight.check_port(address, port, name, patient=patient)
        for warning in checks.run_startup_checks():
            self.say(f"  warning: {warning.msg}")
        create_run_folder(self.here.run)

    def _database(self) -> None:
        password = keys.read_key(self.here.keys, "database_password")
        url = self.environ["DATABASE_URL"]
        with self._step("PostgreSQL"):
            if url != self.here.database_url(password):
                preflight.check_database(url)
                return
            start = partial(postgres.start_server, self.here, password)
            self.supervisor.launch(
                "postgres", SupervisedService(start, POSTGRES_STOP_S)
            )

    def _broker(self) -> None:
        url = self.environ["REDIS_URL"]
        with self._step("broker"):
            if url != self.here.redis_url:
                preflight.check_broker(url)
                return
            start = partial(valkey.start_server, self.here)
            self.supervisor.launch("valkey", SupervisedService(start, OTHERS_STOP_S))

    def _processes(self) -> None:
        store = ", store" if self.demo else ""
        with self._step(f"web ({len(self.webs)}), worker{store}"):
            if self.demo:
                self._run(build_store_program(self.here, self.environ), OTHERS_STOP_S)
            for web in self.webs:
                service = SupervisedService(web.start, TASKS_STOP_S)
                self.supervisor.launch(web.program.name, service)
            self._run(build_worker_program(self.here, self.environ), TASKS_STOP_S)
            self._wait_ready()
        if self.demo and self.environ.get("RILEY") != "0":
            self._run(build_riley_program(self.here, self.environ), TASKS_STOP_S)

    def _run(self, program: Program, stop_within: float) -> None:
        start, ends = partial(Child, program), program.name == "riley"
        service = SupervisedService(start, stop_within, may_finish=ends)
        self.supervisor.launch(program.name, service)

    def _wait_ready(self) -> None:
        """Wait until all web processes accept connections and say that they can work,
        or raise if one has stopped."""
        end = time.monotonic() + READY_TIMEOUT_S
        while not (all(web.ready_file.exists() for web in self.webs) and self._ready()):
            self._check_webs_run()
            if time.monotonic() > end:
                raise InstallationError(
                    f"no answer from /readyz in {READY_TIMEOUT_S} s: read "
                    f"{self.here.logs}/web-*.log"
                )
            time.sleep(0.05)

    def _check_webs_run(self) -> None:
        for web in self.webs:
            name, log = web.program.name, web.program.log
            if self.supervisor.services[name].child.exit_code() is not None:
                raise InstallationError(
                    f"{name} stopped: {_read_last_line(log)}; read {log}"
                )

    def _ready(self) -> bool:
        port = self.environ["PORT"]
        host = self.environ.get("HOST", LOOPBACK).replace("0.0.0.0", LOOPBACK)  # noqa: S104
        question = urllib.request.Request(
            f"http://{host}:{port}/readyz",
            headers={"Host": urlsplit(self.environ["BASE_URL"]).netloc},
        )
        try:
            with DIRECT_OPENER.open(question, timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    @contextlib.contextmanager
    def _step(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.say(f"  {name:<24}{time.monotonic() - start:5.1f} s")

    def announce(self) -> None:
        """Print the address, how people get in, and the first call."""
        took = time.monotonic() - self.began
        self._write_gate_file()
        self.say(
            f"\nCounterseal is running at {self.environ['BASE_URL']}  ({took:.1f} s)"
        )
        for role, login in _read_logins(self.here).items():
            self.say(f"  {role:<16}{login['username']:<10}{login['password']}")
        if "store" in self.supervisor.services:
            address = f"http://{LOOPBACK}:{self.environ['STORE_PORT']}"
            self.say(f"The demo store and its ledger are at {address}")
        for line in [*self.way_in, "", *self.first_call, ""]:
            self.say(line)
        self.say(f"Logs are in {self.here.logs}. Press Ctrl-C to stop.")

    @property
    def credentials(self) -> tuple[str, str]:
        """The address of the gate, and the key of its ready agent."""
        return self.environ["BASE_URL"], settings.COUNTERSEAL.agent_key

    def _write_gate_file(self) -> None:
        if not self.first_call:
            return
        try:
            gate_file.write_gate_file(*self.credentials)
        except OSError as error:
            self.say(
                f"  warning: {error}: programs do not find this gate by themselves"
            )


# Ignore the environment's proxy: this opener only reaches our own loopback address.
DIRECT_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def run_installation(
    environ: MutableMapping[str, str],
    say: PrintLine,
    *,
    demo: bool,
    prepare: PrepareGate,
) -> None:
    """Start everything, with the store and its agent for the `demo`, keep it running
    until SIGTERM or Ctrl-C, then stop it in order.

    *Raises* InstallationError.
    """
    here = defaults.fill_environment(environ)
    with preflight.lock_state(here) as unclean:
        installation = Installation(here, environ, say, demo, prepare)
        supervisor = installation.supervisor
        supervisor.listen_for_stop()
        say(f"Starting Counterseal in {here.state}")
        try:
            with _report_full_disk():
                installation.start(patient=unclean)
            solo = settings.COUNTERSEAL.solo
            defaults.remember_run(here, environ["PORT"], solo=solo)
            installation.announce()
            supervisor.keep()
        except StartInterrupted:
            pass
        finally:
            start = time.monotonic()
            defaults.forget_run(here)
            gate_file.remove_gate_file(*installation.credentials)
            supervisor.stop(STOP_ORDER)
            say(f"Stopped in {time.monotonic() - start:.1f} s")


@contextlib.contextmanager
def _report_full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise InstallationError(
            "the disk is full: free some space on the disk of STATE"
        ) from error


def _run_command(name: str, **options: Any) -> None:
    """Run one of Django's commands silently. *Raises* InstallationError."""
    try:
        call_command(name, stdout=io.StringIO(), stderr=io.StringIO(), **options)
    except (DatabaseError, ImproperlyConfigured) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise InstallationError(f"{name} failed: {reason}") from error


def _read_logins(here: Layout) -> dict[str, dict[str, str]]:
    file = here.state / "demo.json"
    if not file.exists():
        return {}
    logins: dict[str, dict[str, str]] = json.loads(file.read_text())["logins"]
    return logins


def _read_last_line(log: Any) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no output"
