"""The servers of a run, on a host of their own, and its folders; gone afterwards."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from bench.servers import folders
from hitl.local import keys, postgres, valkey
from hitl.local.process import Program
from tests.stack import free_port

from . import processes
from .cluster import Stage
from .network import build, on
from .options import LADDER, Options

GATE = {
    "AGENT_RATE_PER_MINUTE": "100000",
    **{name: str(seconds) for name, seconds in LADDER.items()},
}
HBA = "local all all scram-sha-256\nhost all all {range} scram-sha-256\n"


@contextmanager
def servers(options: Options) -> Iterator[Stage]:
    """A private PostgreSQL, which waits for the disk, and Valkey, on a host of their
    own and named in the environment; stopped and removed afterwards, with all that was
    started on them.

    *Raises* Fault.
    """
    with ExitStack() as stack:
        here = stack.enter_context(folders("chaos", **GATE))
        # Where PostgreSQL runs as somebody else, that one may not enter a host.
        alone = postgres.host(here).user is not None
        hosts = build(options.hosts, stack, alone=alone)
        # For us too, who register agents' endpoints there.
        for name in ("WEBHOOK_NETWORKS", "CALLBACK_NETWORKS"):
            os.environ[name] = f"{hosts.outside}/32"
        ports = [free_port() for _ in range(options.webs)]
        stage = Stage(here, options, hosts, ports, free_port())
        stack.callback(_stop, stage)
        for folder in (stage.faults, stage.traces, here.logs):
            folder.mkdir(exist_ok=True)
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


def _stop(stage: Stage) -> None:
    """In the order in which they need one another."""
    for slot in reversed(list(stage.slots.values())):
        processes.signal_all(slot.child.pid, signal.SIGCONT)
        if slot.name in {"postgres", "valkey"}:
            slot.child.stop(within=5)
        else:
            slot.kill()
