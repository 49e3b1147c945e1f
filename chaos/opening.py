"""The product's processes and the world around them: with what environment and on which
host each is started."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import httpx

from hitl.local import keys, programs
from hitl.local.process import Child, Program
from tests.stack import wait_until

from . import services, traces
from .cluster import Stage
from .network import on

START_S = 60.0
POOL = 2  # processes of a worker
BEATS = 2  # workers that also tell the time; one must be left when the other dies
# Each server by its usual port: a host has its ports to itself. Valkey asks nobody for
# a password, on a bridge that nobody else can reach.
SERVERS = "postgresql://holdpoint:{password}@{at}/holdpoint", "redis://{at}:6379/0"


def open_up(stage: Stage, outside: Sequence[str] = ()) -> None:
    """Start the product and the world, and wait until all of them are ready. `outside`
    names another module that plays the world, with its arguments."""
    stage.launch("provider", partial(Child, _provider(stage, outside)))
    for number, port in enumerate(stage.ports):
        web, host = _web(stage, number, port), stage.host(number)
        stage.launch(f"web-{number}", partial(Child, web), host.name)
    for number in range(stage.options.workers):
        worker, host = _worker(stage, number), stage.host(number)
        stage.launch(f"worker-{number}", partial(Child, worker), host.name)
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
        "ALLOWED_HOSTS": ",".join(host.address for host in stage.network.apps),
        **_served(stage),
        **more,
    }


def _served(stage: Stage) -> dict[str, str]:
    """The servers as they are called from another host."""
    if not stage.network.real:
        return {}
    password = keys.read(stage.here.keys, "database_password")
    database, broker = (
        one.format(password=password, at=stage.network.data.address) for one in SERVERS
    )
    return {"DATABASE_URL": database, "REDIS_URL": broker}


def _web(stage: Stage, number: int, port: int) -> Program:
    host = stage.host(number)
    environ = _environ(stage, PORT=str(port), HOST=host.address)
    program = on(host, programs.web(stage.here, environ))
    return _named(stage, program, f"web-{number}", program.argv)


def _worker(stage: Stage, number: int) -> Program:
    name = f"worker-{number}"
    more = {traces.FOLDER: str(stage.traces), traces.NAME: name}
    program = programs.worker(stage.here, _environ(stage, **more))
    argv = [part for part in program.argv if number < BEATS or part != "--beat"]
    argv[argv.index("--concurrency") + 1] = str(POOL)
    argv += ["--include", "chaos.traces", "--hostname", f"{name}@%h"]
    return _named(stage, program, name, [*stage.host(number).prefix, *argv])


def _named(stage: Stage, program: Program, name: str, argv: Sequence[str]) -> Program:
    log = stage.here.logs / f"{name}.log"
    return replace(program, name=name, argv=argv, log=log)


def _provider(stage: Stage, outside: Sequence[str]) -> Program:
    secret = keys.read(stage.here.keys, "webhook_secret")
    address = f"{stage.outside}:{stage.provider_port}"
    usual = ("chaos.services", address, str(stage.ledger))
    program = programs.worker(stage.here, dict(os.environ))
    return replace(
        program,
        name="provider",
        argv=[program.argv[0], "-m", *(outside or usual)],
        env={**os.environ, services.SECRET: secret},
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
