"""The servers of a run, on a host of their own, and its folders; gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from hitl.local import defaults, keys, layout, postgres, valkey
from hitl.local.layout import Layout
from hitl.local.process import Program
from tests.stack import free_port

from . import processes
from .network import build, on
from .options import LADDER, Options
from .stage import Stage

DISK = "/var/tmp"  # noqa: S108 mkdtemp makes the folder, for us alone
OTHERS = ("DATABASE_URL", "REDIS_URL", "BASE_URL", "PORT", "STORE_PORT")
HBA = "local all all scram-sha-256\nhost all all {range} scram-sha-256\n"


@contextmanager
def servers(options: Options) -> Iterator[Stage]:
    """A private PostgreSQL, which waits for the disk, and Valkey, on a host of their
    own and named in the environment; stopped and removed afterwards, with all that was
    started on them.

    *Raises* Fault.
    """
    with ExitStack() as stack:
        state = Path(tempfile.mkdtemp(prefix="holdpoint-chaos-", dir=DISK))
        stack.callback(shutil.rmtree, state, ignore_errors=True)
        here = _environment(state)
        layout.make_run(here.run)
        stack.callback(shutil.rmtree, here.run, ignore_errors=True)
        # Where PostgreSQL runs as somebody else, that one may not enter a host.
        alone = postgres.host(here).user is not None
        hosts = build(options.hosts, stack, alone=alone)
        # For us too, who register agents' endpoints there.
        os.environ["WEBHOOK_NETWORKS"] = f"{hosts.outside}/32"
        ports = [free_port() for _ in range(options.webs)]
        stage = Stage(here, options, hosts, ports, free_port())
        stack.callback(_stop, stage)
        for folder in (stage.faults, stage.traces, here.logs):
            folder.mkdir(exist_ok=True)
        stack.callback(_remove_data, here)
        _launch_servers(stage)
        yield stage


def _launch_servers(stage: Stage) -> None:
    """They answer on their sockets to us, and on their host to everybody else."""
    here, data = stage.here, stage.network.data
    hba = here.state / "hba.conf"
    hba.write_text(HBA.format(range=stage.network.range))
    hba.chmod(0o644)

    def database(program: Program) -> Program:
        more = [f"listen_addresses={data.address}", f"hba_file={hba}"]
        switches = [part for one in more for part in ("-c", one)]
        return on(data, program, *switches) if stage.network.real else program

    def broker(program: Program) -> Program:
        more = f"--port 6379 --bind {data.address} --protected-mode no".split()
        return on(data, program, *more) if stage.network.real else program

    password = keys.read(here.keys, "database_password")
    start = partial(postgres.start, here, password, adapt=database)
    stage.launch("postgres", start)
    stage.launch("valkey", partial(valkey.start, here, broker))


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
