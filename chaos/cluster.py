"""The cluster of a run: servers, the product's processes and the services around them.

Each process has a slot on one host, in which it dies and is started again, as a
supervisor would. The servers have a host of their own. Everything is stopped and
removed afterwards.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hitl.local import installation, keys, postgres, valkey
from hitl.local.layout import Layout
from hitl.local.process import Child, Program, kill_group
from world.database import Ledger
from world.processes import (
    START_S,
    build_environ,
    build_service_program,
    build_worker_program,
    create_installation,
    free_port,
    is_ready,
    read_log,
    wait_until,
    watch_worker,
)

from . import traces as trace
from .network import DATA, Host, Network, build_network, run_on_host
from .options import LADDER, Options


def list_group(pid: int) -> list[int]:
    """All living processes of a group, its leader first."""
    pids = [int(f.name) for f in Path("/proc").iterdir() if f.name.isdigit()]
    members = [member for member in pids if _group_of(member) == pid]
    return sorted(members, key=lambda member: (member != pid, member))


def _group_of(pid: int) -> int | None:
    stat = _stat(pid)
    return int(stat[2]) if stat and stat[0] != "Z" else None


def _stat(pid: int) -> list[str]:
    """From the state on: state, parent, group, ..."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rsplit(")", 1)[1].split()


def find_stopped_group(pid: int) -> int | None:
    """The leader of this process's group, while it is stopped."""
    stat = _stat(pid)
    return int(stat[2]) if stat and stat[0] == "T" else None


def signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, number)


def signal_process(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@dataclass
class Slot:
    """The place of one process, on one host."""

    name: str
    start: Callable[[], Child]
    host: str = DATA
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


AGAIN_S = 0.5  # after which the dead are started again
STEP_S = 0.02  # between two looks at everything
REST_S = 15.0  # more than the longest task and the longest wait


@dataclass
class Cluster:
    """One installation, its hosts, and the services around it."""

    here: Layout
    options: Options
    network: Network
    ports: list[int]
    provider_port: int
    slots: dict[str, Slot] = field(default_factory=dict)

    @property
    def webs(self) -> list[Slot]:
        return [slot for slot in self.slots.values() if slot.name.startswith("web")]

    @property
    def workers(self) -> list[Slot]:
        return [slot for slot in self.slots.values() if slot.name.startswith("worker")]

    def host(self, number: int) -> Host:
        """Where the web process or worker of this number runs: hosts take turns."""
        return self.network.apps[number % len(self.network.apps)]

    @property
    def addresses(self) -> list[str]:
        """The addresses of the web processes."""
        ports = enumerate(self.ports)
        return [f"http://{self.host(n).address}:{port}" for n, port in ports]

    @property
    def outside(self) -> str:
        """The address on which services of somebody else are reached."""
        return self.network.outside

    @property
    def provider(self) -> str:
        return f"http://{self.outside}:{self.provider_port}"

    @property
    def description(self) -> str:
        """A short description of what runs where."""
        size = f"{len(self.ports)} web processes and {self.options.workers} workers"
        if not self.network.real:
            return f"{size} on one host, told apart by their ports"
        return f"{size} on {self.options.hosts} hosts, the servers on another"

    @property
    def ledger(self) -> Ledger:
        """What services did and what agents and people received."""
        return Ledger(self.here.state / "ledger.sqlite")

    @property
    def fault_points(self) -> Path:
        return self.here.state / "faults"

    @property
    def traces(self) -> Path:
        return self.here.state / "traces"

    def launch(self, name: str, start: Callable[[], Child], host: str = DATA) -> Slot:
        slot = Slot(name, start, host)
        slot.run()
        self.slots[name] = slot
        return slot

    def restart_dead(self) -> None:
        """Start dead processes again. Call it often, from the main thread."""
        for slot in self.slots.values():
            if slot.again_at is None and slot.child.exit_code() is not None:
                kill_group(slot.child.pid)
                slot.again_at = time.monotonic() + AGAIN_S
            elif slot.again_at is not None and time.monotonic() >= slot.again_at:
                slot.run()

    def rest(self) -> None:
        """Stop the product's processes, so that the checkers see no change."""
        ours = [slot.child for slot in (*self.webs, *self.workers)]
        for child in ours:
            child.ask_to_stop()
        for child in ours:
            child.end(within=REST_S)

    def log(self, name: str) -> str:
        return read_log(self.here, name)

    def keep_logs(self, folder: Path, *, broken: bool) -> None:
        """What the processes said, where something did not hold; nothing is left there
        of an earlier run."""
        shutil.rmtree(folder, ignore_errors=True)
        if broken:
            shutil.copytree(self.here.logs, folder)


POOL = 2  # processes of a worker
BEATS = 2  # workers that also tell the time; one must be left when the other dies
# Each server by its usual port: a host has its ports to itself. Valkey asks nobody for
# a password, on a bridge that nobody else can reach.
SERVERS = "postgresql://counterseal:{password}@{at}/counterseal", "redis://{at}:6379/0"


def start_processes(cluster: Cluster, outside: Sequence[str] = ()) -> None:
    """Start the product and the world, and wait until all of them are ready. `outside`
    names another module that plays the world, with its arguments."""
    cluster.launch("provider", partial(Child, _provider(cluster, outside)))
    for number, port in enumerate(cluster.ports):
        web, host = _web(cluster, number, port), cluster.host(number)
        cluster.launch(f"web-{number}", partial(Child, web), host.name)
    waiting = {}
    for number in range(cluster.options.workers):
        name, host = f"worker-{number}", cluster.host(number)
        waiting[name] = watch_worker(cluster.here, name)
        worker = _worker(cluster, name, number)
        cluster.launch(name, partial(Child, worker), host.name)
    for address in cluster.addresses:
        wait_until(partial(is_ready, address), START_S, partial(cluster.log, "web-0"))
    for name, takes_tasks in waiting.items():
        wait_until(takes_tasks, START_S, partial(cluster.log, name))


def _environ(cluster: Cluster, **variables: str) -> dict[str, str]:
    """As in production, with every fault point armed."""
    return build_environ(
        BASE_URL=cluster.addresses[0],
        COUNTERSEAL_FAULT=str(cluster.fault_points),
        ALLOWED_HOSTS=",".join(host.address for host in cluster.network.apps),
        **_served(cluster),
        **variables,
    )


def _served(cluster: Cluster) -> dict[str, str]:
    """The addresses of the servers for a process on another host."""
    if not cluster.network.real:
        return {}
    password = keys.read_key(cluster.here.keys, "database_password")
    database, broker = (
        url.format(password=password, at=cluster.network.data.address)
        for url in SERVERS
    )
    return {"DATABASE_URL": database, "REDIS_URL": broker}


def _web(cluster: Cluster, number: int, port: int) -> Program:
    host = cluster.host(number)
    environ = _environ(cluster, PORT=str(port), HOST=host.address)
    program = installation.build_web_program(cluster.here, environ, f"web-{number}")
    return run_on_host(host, program)


def _worker(cluster: Cluster, name: str, number: int) -> Program:
    traced = {trace.FOLDER: str(cluster.traces), trace.NAME: name}
    program = build_worker_program(
        cluster.here,
        _environ(cluster, **traced),
        name,
        beat=number < BEATS,
        processes=POOL,
        more=("--include", "chaos.traces"),
    )
    return run_on_host(cluster.host(number), program)


def _provider(cluster: Cluster, outside: Sequence[str]) -> Program:
    secret = keys.read_key(cluster.here.keys, "webhook_secret")
    address = f"{cluster.outside}:{cluster.provider_port}"
    usual = ("chaos.services", address, str(cluster.ledger.file))
    log = cluster.here.logs / "provider.log"
    return build_service_program(outside or usual, secret, log)


GATE = {
    "AGENT_RATE_PER_MINUTE": "100000",
    **{name: str(seconds) for name, seconds in LADDER.items()},
}
HBA = "local all all scram-sha-256\nhost all all {range} scram-sha-256\n"


@contextmanager
def start_servers(options: Options) -> Iterator[Cluster]:
    """A private PostgreSQL, which waits for the disk, and Valkey, on a host of their
    own and named in the environment; stopped and removed afterwards, with all that was
    started on them.

    *Raises* Fault.
    """
    with ExitStack() as stack:
        here = stack.enter_context(create_installation("chaos", **GATE))
        # Where PostgreSQL runs as somebody else, that one may not enter a host.
        alone = postgres.detect_host(here).user is not None
        hosts = build_network(options.hosts, stack, alone=alone)
        # For us too, who register agents' endpoints there.
        for name in ("WEBHOOK_NETWORKS", "CALLBACK_NETWORKS"):
            os.environ[name] = f"{hosts.outside}/32"
        ports = [free_port() for _ in range(options.webs)]
        cluster = Cluster(here, options, hosts, ports, free_port())
        stack.callback(_stop, cluster)
        for folder in (cluster.fault_points, cluster.traces, here.logs):
            folder.mkdir(exist_ok=True)
        _launch_servers(cluster)
        yield cluster


def _launch_servers(cluster: Cluster) -> None:
    """Start the servers: on sockets for this process, on their host for all others."""
    here, data = cluster.here, cluster.network.data
    hba = here.state / "hba.conf"
    hba.write_text(HBA.format(range=cluster.network.range))
    hba.chmod(0o644)

    def database(program: Program) -> Program:
        more = [f"listen_addresses={data.address}", f"hba_file={hba}"]
        switches = [part for setting in more for part in ("-c", setting)]
        return (
            run_on_host(data, program, *switches) if cluster.network.real else program
        )

    def broker(program: Program) -> Program:
        more = f"--port 6379 --bind {data.address} --protected-mode no".split()
        return run_on_host(data, program, *more) if cluster.network.real else program

    password = keys.read_key(here.keys, "database_password")
    start = partial(postgres.start_server, here, password, adapt=database)
    cluster.launch("postgres", start)
    cluster.launch("valkey", partial(valkey.start_server, here, broker))


def _stop(cluster: Cluster) -> None:
    """Stop what depends on other processes before these."""
    for slot in reversed(list(cluster.slots.values())):
        signal_group(slot.child.pid, signal.SIGCONT)
        if slot.name in {"postgres", "valkey"}:
            slot.child.stop(within=5)
        else:
            slot.kill()
