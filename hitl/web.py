"""Runs one web process, as `counterseal serve` does.

Start as many as the host has cores, all on one port. Each listens on a socket of its
own, and Linux gives every new connection to one of them by a hash of its addresses.
With one socket for all, as `uvicorn --workers` has, the process that wakes first takes
all connections that arrive together, and keeps them as long as they are alive.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import uvicorn
from django.conf import settings

from .environment import end_on_wrong_settings
from .garbage_collection import suspend_collection
from .variable_types import is_loopback

APPLICATION, PROTOCOL = "hitl.asgi:application", "hitl.protocol:Protocol"
START_FAILED = 3  # the exit code of uvicorn itself
# Longer than proxies keep a connection without requests (nginx 60 s): what one sends on
# a connection that the gate closes at that moment is lost.
IDLE_S = 75
LAST_ANSWER = (b"connection", b"close")
TICK_S = 0.1


class WebServer(uvicorn.Server):
    """uvicorn's server, which creates a file once it accepts connections, and goes on
    answering for `drain` seconds after a signal to stop."""

    def __init__(
        self, config: uvicorn.Config, ready_file: Path | None, drain: float = 0
    ) -> None:
        super().__init__(config)
        self.ready_file, self.drain = ready_file, drain

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self.ready_file is not None:
            self.ready_file.touch()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.drain:
            await self.answer_last_requests()
        await super().shutdown(sockets)

    async def answer_last_requests(self) -> None:
        """Answer as before, while /readyz says 503 and proxies learn of it. Each answer
        ends its connection, so that proxies have none open in the end. A second SIGINT
        ends this at once."""
        self.config.encoded_headers.append(LAST_ANSWER)
        end = time.monotonic() + self.drain
        while time.monotonic() < end and not self.force_exit:
            await self.on_tick(0)  # renews the headers of every answer
            await asyncio.sleep(TICK_S)


def open_shared_socket(host: str, port: int) -> socket.socket:
    """A socket on this address, which other processes of this user may open, too. It
    gets connections only once it listens. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    shared = socket.socket(family, socket.SOCK_STREAM)
    try:
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        shared.bind((host, port))
    except OSError:
        shared.close()
        raise
    return shared


def run_web_process(given: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, with the options of `add_arguments`. Return the
    exit code."""
    # guard: solo-loopback
    if settings.COUNTERSEAL.solo and not is_loopback(given.host):
        sys.stderr.write(
            f"--host {given.host}: a gate in solo mode is for this machine only: leave"
            " --host out, or SOLO\n"
        )
        return START_FAILED
    try:
        shared = open_shared_socket(given.host, given.port)
    except OSError as error:
        sys.stderr.write(f"{given.host} port {given.port}: {error.strerror}\n")
        return START_FAILED
    config = uvicorn.Config(
        APPLICATION,
        http=PROTOCOL,
        lifespan="on",
        access_log=False,
        server_header=False,
        proxy_headers=not given.no_proxy_headers,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=given.stop_within,
    )
    with suspend_collection():
        config.load()
    server = WebServer(config, given.ready_file, given.drain)
    with shared:
        server.run(sockets=[shared])
    return 0 if server.started else START_FAILED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a web process."""
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--no-proxy-headers",
        action="store_true",
        help="ignore X-Forwarded-For and X-Forwarded-Proto: no proxy is in front",
    )
    parser.add_argument(
        "--drain",
        type=int,
        default=0,
        metavar="SECONDS",
        help="how long to go on answering after a signal to stop, while /readyz tells"
        " proxies to choose another process (0)",
    )
    parser.add_argument(
        "--stop-within",
        type=int,
        default=3,
        metavar="SECONDS",
        help="how long running requests may then take (3)",
    )
    parser.add_argument(
        "--ready-file",
        type=Path,
        metavar="PATH",
        help="create this file once the process accepts connections",
    )


def main(arguments: Sequence[str]) -> int:
    """Run one web process. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m hitl.web", description=__doc__)
    add_arguments(parser)
    given = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitl.settings")
    with end_on_wrong_settings():
        return run_web_process(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
