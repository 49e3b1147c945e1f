"""Runs one web process, as `counterseal serve` does.

Start as many as the host has cores, all on one port. Each listens on a socket of its
own, and Linux gives every new connection to one of them by a hash of its addresses.
With one socket for all, as `uvicorn --workers` has, the process that wakes first takes
all connections that arrive together, and keeps them as long as they are alive.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from .garbage_collection import suspend_collection

APPLICATION, PROTOCOL = "hitl.asgi:application", "hitl.protocol:Protocol"
START_FAILED = 3  # the exit code of uvicorn itself


class WebServer(uvicorn.Server):
    """uvicorn's server, which creates a file once it accepts connections."""

    def __init__(self, config: uvicorn.Config, ready_file: Path | None) -> None:
        super().__init__(config)
        self.ready_file = ready_file

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self.ready_file is not None:
            self.ready_file.touch()


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
        timeout_graceful_shutdown=given.stop_within,
    )
    with suspend_collection():
        config.load()
    server = WebServer(config, given.ready_file)
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
        "--stop-within",
        type=int,
        default=3,
        metavar="SECONDS",
        help="how long running requests may take after a signal to stop (3)",
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
    return run_web_process(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
