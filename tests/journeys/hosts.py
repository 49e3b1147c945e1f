"""The gate on several hosts, each a network namespace: A has PostgreSQL and the broker,
B and C have a web process and a worker, D the proxy, E a standby. This process is on a
host of its own, as the agents and people are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import redis

from chaos.network import Host, Network, build_network
from hitl.local import keys
from hitl.local.layout import Layout
from hitl.local.postgres import UNSHARE
from hitl.local.process import Child, Program
from tests import worlds
from tests.guards import ROOT, lacking
from tests.stack import START_S, wait_until
from world.processes import build_worker_program, is_ready

POSTGRES = Path("/usr/lib/postgresql/15/bin")
TOOLS = ("redis-server", "nginx", "pgbouncer", "unshare")
B, C, D, E = "host-0", "host-1", "host-2", "host-3"
WEB_PORT, PROXY_PORT, POOLER_PORT = 8000, 8080, 6432
STATE_MIB = 16  # of a host whose disk can be filled
PATH = {"PATH": f"{os.environ['PATH']}:/usr/sbin", "LC_ALL": "C"}
# What of the shipped sample is about TLS: this proxy speaks plain HTTP.
TLS_LINES = re.compile(r"^\s*ssl_.*\n", re.M)
# A lost lease is not waited for long.
SHORT = {
    "HTTP_TIMEOUT": "2",
    "SOFT_TIME_LIMIT": "5",
    "TIME_LIMIT": "6",
    "LEASE_SECONDS": "8",
    "VISIBILITY_TIMEOUT": "12",
}


def run(argv: list[str], **environ: str) -> str:
    done = subprocess.run(
        argv,
        env={**PATH, **environ},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass
class Server:
    """One PostgreSQL on one host."""

    host: Host
    data: Path
    log: Path
    child: Child | None = None

    def create(self, network: str) -> None:
        argv = [*UNSHARE, str(POSTGRES / "initdb"), "--auth=trust", "--encoding=UTF8"]
        run([*argv, "--no-sync", f"--pgdata={self.data}", "--username=counterseal"])
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {network} trust\n")
            rules.write(f"host replication all {network} trust\n")

    def copy(self, primary: Server) -> None:
        """Become a standby of that one, named after this host."""
        shutil.rmtree(self.data, ignore_errors=True)
        source = f"host={primary.host.address} user=counterseal"
        source += f" application_name={self.host.name}"
        argv = [*self.host.prefix, *UNSHARE, str(POSTGRES / "pg_basebackup")]
        options = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        run([*argv, f"--pgdata={self.data}", f"--dbname={source}", *options])

    def restore(self, primary: Server) -> None:
        """Become what a backup of that one is, put back: on a timeline of its own."""
        self.copy(primary)
        (self.data / "standby.signal").rename(self.data / "recovery.signal")
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write("restore_command = 'false'\n")
        self.start()
        wait_until(lambda: self.query("SELECT pg_is_in_recovery()") == [(False,)], 30)

    def start(self) -> None:
        settings = {
            "listen_addresses": self.host.address,
            "unix_socket_directories": "",
            "max_connections": "100",
            "fsync": "off",  # processes are killed here, never a machine
        }
        switches = [p for name in settings for p in ("-c", f"{name}={settings[name]}")]
        argv = [str(POSTGRES / "postgres"), "-D", str(self.data), *switches]
        self.child = Child(
            Program(
                "postgres", [*self.host.prefix, *UNSHARE, *argv], PATH, log=self.log
            )
        )
        wait_until(self.answers, 60, self.log.read_text)

    def answers(self) -> bool:
        with suppress(psycopg.OperationalError):
            return bool(self.query("SELECT 1"))
        return False

    def query(self, text: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        url = f"postgresql://counterseal@{self.host.address}/{database}"
        with psycopg.connect(url, autocommit=True, connect_timeout=3) as connection:
            cursor = connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    def promote(self) -> None:
        run([*UNSHARE, str(POSTGRES / "pg_ctl"), "promote", "-D", str(self.data)])

    def configure(self, name: str, value: str) -> None:
        self.query(f"ALTER SYSTEM SET {name} = '{value}'")
        self.query("SELECT pg_reload_conf()")

    def kill(self) -> None:
        assert self.child is not None
        self.child.kill()


@dataclass
class Member:
    """A host with a web process and a worker, and a STATE of its own."""

    host: Host
    state: Path
    logs: Path
    environ: dict[str, str]
    web: Child = field(init=False)
    worker: Child = field(init=False)
    ready_before: int = 0  # how often a worker had said so

    @property
    def url(self) -> str:
        return f"http://{self.host.address}:{WEB_PORT}"

    def start(self) -> None:
        self.launch_worker()
        self.launch_web()
        self.wait_until_up()

    def wait_until_up(self) -> None:
        wait_until(lambda: is_ready(self.url), START_S, lambda: self.read_log("web"))
        wait_until(
            lambda: self.read_log("worker").count(" ready.") > self.ready_before,
            START_S,
            lambda: self.read_log("worker"),
        )

    def launch_web(self) -> None:
        address = ["--host", self.host.address, "--port", str(WEB_PORT)]
        argv = [sys.executable, "-m", "hitl.web", *address, "--drain", "5"]
        self.web = self._launch(Program("web", argv, self.environ, cwd=ROOT), "web")

    def launch_worker(self) -> None:
        self.ready_before = self.read_log("worker").count(" ready.")
        here = Layout(self.state, self.state / "run")
        program = build_worker_program(here, self.environ, processes=2)
        self.worker = self._launch(program, "worker")

    def _launch(self, program: Program, name: str) -> Child:
        argv = [*self.host.prefix, *program.argv]
        return Child(replace(program, argv=argv, log=self._log(name)))

    def _log(self, name: str) -> Path:
        return self.logs / f"{name}-{self.host.name}.log"

    def read_log(self, name: str) -> str:
        file = self._log(name)
        return file.read_text(errors="replace") if file.exists() else ""

    def kill(self) -> None:
        self.web.kill()
        self.worker.kill()

    def stop_worker(self) -> float:
        return _terminate(self.worker)

    def stop_web(self) -> float:
        return _terminate(self.web)


def _terminate(child: Child) -> float:
    """SIGTERM, as a process manager sends it: the seconds until it ended."""
    began = time.monotonic()
    child.process.terminate()
    child.process.wait(60)
    return time.monotonic() - began


@dataclass
class Hosts:
    """All of them."""

    network: Network
    folder: Path
    primary: Server
    standby: Server
    environ: dict[str, str]
    members: dict[str, Member] = field(default_factory=dict)
    broker: Child | None = None
    pooler: Child | None = None
    proxy: Child | None = None

    @property
    def url(self) -> str:
        return f"http://{self.network.hosts[D].address}:{PROXY_PORT}"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def start_broker(self) -> None:
        """An empty one."""
        data = self.network.data
        options = ["--bind", data.address, "--protected-mode", "no", "--save", ""]
        argv = [*data.prefix, "redis-server", "--port", "6379", *options]
        self.broker = Child(
            Program("redis", argv, PATH, log=self.logs / "redis.log", cwd=self.folder)
        )
        client = redis.Redis(data.address)

        def answers() -> bool:
            with suppress(redis.RedisError):
                return bool(client.ping())
            return False

        wait_until(answers, 20)

    def start_proxy(self) -> None:
        """nginx with the shipped sample, but for TLS."""
        sample = (ROOT / "deploy/nginx/counterseal.conf").read_text()
        upstream, *_, server = re.split(r"^server ", sample, flags=re.M)
        for old, name in (("10.0.0.11", B), ("10.0.0.12", C)):
            upstream = upstream.replace(old, self.network.hosts[name].address)
        server = TLS_LINES.sub("", server).replace("443 ssl http2", str(PROXY_PORT))
        config = self.folder / "nginx.conf"
        config.write_text(
            f"daemon off; user root; pid {self.folder}/nginx.pid;"
            " events {}\nhttp {\naccess_log off;\n"
            f"{upstream}server {server}\n}}\n"
        )
        argv = ["nginx", "-c", str(config), "-e", str(self.logs / "nginx.log")]
        prefix = self.network.hosts[D].prefix
        self.proxy = Child(
            Program("nginx", [*prefix, *argv], PATH, log=self.logs / "nginx.log")
        )
        wait_until(lambda: is_ready(self.url), 20)

    def start_pooler(self) -> str:
        """pgbouncer in session mode before the primary: its address for the gate."""
        data = self.network.data
        config = self.folder / "pgbouncer.ini"
        config.write_text(
            f"[databases]\ncounterseal = host={data.address} user=counterseal\n"
            f"[pgbouncer]\nlisten_addr = {data.address}\nlisten_port = {POOLER_PORT}\n"
            "pool_mode = session\nauth_type = any\ndefault_pool_size = 40\n"
        )
        argv = [*data.prefix, *UNSHARE, "pgbouncer", str(config)]
        log = self.logs / "pgbouncer.log"
        self.pooler = Child(Program("pgbouncer", argv, PATH, log=log))
        url = f"postgresql://counterseal@{data.address}:{POOLER_PORT}/counterseal"

        def answers() -> bool:
            with suppress(psycopg.OperationalError):
                psycopg.connect(url, connect_timeout=3).close()
                return True
            return False

        wait_until(answers, 20, log.read_text)
        return url

    def query(self, text: str) -> list[tuple[Any, ...]]:
        return self.primary.query(text, "counterseal")

    def manage(self, *arguments: str) -> str:
        environ = self.members[B].environ if self.members else self.environ
        return run([sys.executable, "manage.py", *arguments], **environ)

    def replicate(self, *, synchronous: bool) -> None:
        """Make the other server a standby of the primary, and let it be waited for."""
        self.standby.copy(self.primary)
        self.standby.start()
        wait_until(lambda: self._streams("streaming"), 60)
        if synchronous:
            self.primary.configure("synchronous_standby_names", "*")
            wait_until(lambda: self._streams("streaming", "sync"), 60)

    def _streams(self, *words: str) -> bool:
        rows = self.primary.query("SELECT state, sync_state FROM pg_stat_replication")
        return any(set(words) <= set(row) for row in rows)

    def is_noted(self) -> bool:
        """Whether each host has seen that the database waits for a standby."""
        notes = [member.state / "host" for member in self.members.values()]
        return all(
            note.exists() and json.loads(note.read_text())["synchronous"]
            for note in notes
        )

    def fail_over(self) -> None:
        """The primary dies, and the standby takes over."""
        self.primary.kill()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary
        wait_until(
            lambda: self.primary.query("SELECT pg_is_in_recovery()") == [(False,)], 30
        )
        self.primary.configure("synchronous_standby_names", "")

    def set_mode(self, failover: str) -> None:
        """Restart every process of the gate with this setting."""
        for member in self.members.values():
            member.kill()
            member.environ["FAILOVER"] = failover
            member.launch_worker()
            member.launch_web()
        for member in self.members.values():
            member.wait_until_up()

    def fill_state(self, name: str) -> Callable[[], None]:
        """Fill the disk of this host's STATE; call the result to make room again."""
        filler = self.members[name].state / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        return filler.unlink


def require_tools() -> None:
    """Skip, naming what this machine lacks."""
    if os.geteuid() != 0:
        lacking("root, for network namespaces")
    for tool in TOOLS:
        if shutil.which(tool, path=PATH["PATH"]) is None:
            lacking(tool)
    if not (POSTGRES / "postgres").exists():
        lacking("PostgreSQL 15")


@contextmanager
def start_hosts(folder: Path, *, failover: str) -> Iterator[Hosts]:
    """All hosts with their servers, and a migrated database; stopped afterwards."""
    require_tools()
    with ExitStack() as stack:
        network = build_network(4, stack)
        if not network.real:
            lacking("network namespaces")
        hosts = _build_hosts(network, folder, failover)
        stack.callback(_stop, hosts)
        hosts.primary.create(network.range)
        hosts.primary.start()
        hosts.primary.query("CREATE DATABASE counterseal")
        hosts.start_broker()
        hosts.manage("migrate", "--verbosity", "0")
        for name in (B, C):
            _add_member(hosts, name, stack)
        for member in hosts.members.values():
            member.wait_until_up()
        yield hosts


def _build_hosts(network: Network, folder: Path, failover: str) -> Hosts:
    for name in ("logs", "state"):
        (folder / name).mkdir(parents=True)
    keys.ensure_keys(folder / "keys")
    primary, standby = (
        Server(host, folder / f"data-{host.name}", folder / "logs" / f"{host.name}.log")
        for host in (network.data, network.hosts[E])
    )
    addresses = ",".join(f"{server.host.address}:5432" for server in (primary, standby))
    apps = [network.hosts[name] for name in (B, C, D)]
    environ = {
        **os.environ,
        **SHORT,
        "STATE": str(folder / "state"),
        "DEPLOYMENT": "local",
        "FAILOVER": failover,
        "BASE_URL": f"http://{apps[-1].address}:{PROXY_PORT}",
        "ALLOWED_HOSTS": ",".join(host.address for host in apps),
        "FORWARDED_ALLOW_IPS": apps[-1].address,
        "DATABASE_URL": f"postgresql://counterseal@{addresses}/counterseal"
        "?target_session_attrs=read-write",
        "REDIS_URL": f"redis://{network.data.address}:6379/0",
        "PORT": str(WEB_PORT),
        "AGENT_RATE_PER_MINUTE": "100000",
        "COUNTERSEAL_CALLABLES": "tests",
        worlds.LEDGER: str(folder / "ledger.sqlite"),
        "LOG_LEVEL": "INFO",
        "LOG_FORMAT": "json",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'client'}",
    }
    shutil.copytree(folder / "keys", folder / "state" / "keys")
    return Hosts(network, folder, primary, standby, environ)


def _add_member(hosts: Hosts, name: str, stack: ExitStack) -> None:
    state = hosts.folder / f"state-{name}"
    state.mkdir()
    run(["mount", "-t", "tmpfs", "-o", f"size={STATE_MIB}m", "tmpfs", str(state)])
    stack.callback(run, ["umount", "--lazy", str(state)])
    shutil.copytree(hosts.folder / "keys", state / "keys")
    (state / "static").mkdir()
    environ = {**hosts.environ, "STATE": str(state)}
    member = Member(hosts.network.hosts[name], state, hosts.logs, environ)
    hosts.members[name] = member
    member.launch_worker()
    member.launch_web()
    stack.callback(member.kill)


def _stop(hosts: Hosts) -> None:
    others = [hosts.proxy, hosts.pooler, hosts.broker]
    for child in [*others, hosts.standby.child, hosts.primary.child]:
        if child is not None:
            child.kill()
