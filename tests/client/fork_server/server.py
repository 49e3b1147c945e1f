"""A process that has imported what the client's commands and the tests' MCP servers
import, and forks a child for each request of `launcher`. The child runs a module or a
file as `python` does: every child is a real process, of which only the imports were
done before.

    python -E server.py DESCRIPTOR    # of a listening socket; ends with its input
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BASE_PATH = sys.path[1:]
CLIENT = Path(__file__).parents[3] / "client"
# Beside the commands: what a child would import at its first connection or message.
MODULES = (
    "anyio._backends._asyncio",
    "encodings.idna",
    "counterseal_client.command_line.main",
    "counterseal_client.mcp.command",
    "counterseal_client.mcp.extension",
    "httpcore2",
    "rich.logging",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)


@dataclass
class Request:
    """What a child is to run, and where."""

    words: list[bytes]
    environ: dict[bytes, bytes]
    folder: bytes
    streams: list[int]


@dataclass
class Child:
    """A running child. A byte from its launcher is a signal for it, and the end of the
    launcher is SIGKILL. Its life is a socket that ends with it."""

    pid: int
    launcher: socket.socket
    life: socket.socket

    def pass_signals(self) -> None:
        numbers = self.launcher.recv(64)
        if not numbers:
            self.launcher.close()
        for number in numbers or [signal.SIGKILL]:
            os.kill(self.pid, number)

    def answer_status(self) -> None:
        _, status = os.waitpid(self.pid, 0)
        # The launcher may have died, too.
        with self.life, self.launcher, suppress(OSError):
            self.launcher.sendall(status.to_bytes(4, "big"))


def serve_requests(listener: socket.socket) -> Request | None:
    """Return in each child, with what it runs; in the server itself at the end of its
    input, when no child is left. The server has one thread, so that a fork copies a
    whole process."""
    children: list[Child] = []
    while True:
        sources: dict[Any, Child | None] = {sys.stdin: None, listener: None}
        sources |= {child.life: child for child in children}
        sources |= {c.launcher: c for c in children if c.launcher.fileno() >= 0}
        # One at a time: what happens to one may concern the next.
        source = select.select(list(sources), [], [])[0][0]
        child = sources[source]
        if child is None and source is listener:
            if request := fork_child(listener, children):
                return request
        elif child is None:
            for child in children:
                os.kill(child.pid, signal.SIGKILL)
            return None
        elif source is child.life:
            children.remove(child)
            child.answer_status()
        else:
            child.pass_signals()


def fork_child(listener: socket.socket, children: list[Child]) -> Request | None:
    """The request in the child; None in the server."""
    launcher, _ = listener.accept()
    request = read_request(launcher)
    if request is None:
        launcher.close()
        return None
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid:
        theirs.close()
        for number in request.streams:
            os.close(number)
        children.append(Child(pid, launcher, ours))
        return None
    theirs.detach()  # stays open to the end of the process
    for one in (launcher, ours, *(c.launcher for c in children)):
        one.close()
    for child in children:
        child.life.close()
    return request


def read_request(launcher: socket.socket) -> Request | None:
    """None from a launcher that died before it had asked."""
    head, streams, _, _ = socket.recv_fds(launcher, 8, 3)
    size = int.from_bytes(head, "big")
    body = launcher.recv(size, socket.MSG_WAITALL)
    if len(head) == 8 and len(body) == size:
        words, environ, folder = marshal.loads(body)
        return Request(words, environ, folder, streams)
    for number in streams:
        os.close(number)
    return None


def run_request(request: Request) -> None:
    """Become the process of a request, and run its module or file."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, given in enumerate(request.streams):
        os.dup2(given, number)
        os.close(given)
    os.chdir(request.folder)
    os.environ.clear()
    os.environb.update(request.environ)
    time.tzset()
    errors = sys.stdin.errors
    sys.stdin = open_stream(0, "rb", errors)
    sys.stdout = open_stream(1, "wb", errors, line_buffering=os.isatty(1))
    sys.stderr = open_stream(2, "wb", "backslashreplace", line_buffering=True)
    run_words([os.fsdecode(word) for word in request.words])


def open_stream(
    number: int, mode: str, errors: str | None, *, line_buffering: bool = False
) -> io.TextIOWrapper:
    binary: Any = open(number, mode, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(binary, "utf-8", errors, line_buffering=line_buffering)


def run_words(words: list[str]) -> None:
    """Run `-m MODULE WORD ...` or `FILE WORD ...`."""
    is_module = words[0] == "-m"
    first = os.getcwd() if is_module else str(Path(words[0]).resolve().parent)
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [first, *filter(None, given), *BASE_PATH]
    sys.argv = words[is_module:]
    if is_module:
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(words[0], run_name="__main__")


def run_to_end(request: Request) -> None:
    """Run it, and end as the interpreter does, but without taking all modules apart:
    that would be most of what a child costs. An error that nobody caught is left to the
    interpreter."""
    code: Any = 0
    try:
        run_request(request)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            raise
        code = ended.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def import_modules() -> None:
    sys.path.append(str(CLIENT))
    from counterseal_client.command_line import commands

    for found in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
        importlib.import_module(found.name)
    for name in MODULES:
        importlib.import_module(name)
    # The collector does not touch, and so not copy, what all children share.
    gc.collect()
    gc.freeze()


def main() -> None:
    import_modules()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        request = serve_requests(listener)
    if request is not None:
        run_to_end(request)


if __name__ == "__main__":
    main()
