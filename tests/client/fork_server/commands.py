"""Commands that run Python in a child of the fork server, and its start."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hitl.local.layout import build_layout

HERE = Path(__file__).parent
LAUNCHER = [sys.executable, "-I", "-S", str(HERE / "launcher.py")]
SOCKET = build_layout(Path(os.environ["STATE"])).run / "fork.sock"
BACKLOG = 64
# Every HTTP client reads those of the system, whatever its gate's address: a third of
# what a command costs. Nothing here speaks TLS.
NO_AUTHORITIES = {"SSL_CERT_FILE": "", "SSL_CERT_DIR": str(HERE)}


def build_command(*words: str) -> list[str]:
    """What stands for `python WORD ...` while the fork server runs."""
    return [*LAUNCHER, str(SOCKET), *words]


@contextmanager
def start_server() -> Iterator[None]:
    """The fork server of this process, and its end. Who asks before it has imported
    everything waits."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(SOCKET))
        listener.listen(BACKLOG)
        process = subprocess.Popen(
            [sys.executable, "-E", str(HERE / "server.py"), str(listener.fileno())],
            env={**os.environ, "LANG": "C.UTF-8"},
            stdin=subprocess.PIPE,
            start_new_session=True,
            pass_fds=[listener.fileno()],
        )
    with process:  # it ends with its standard input
        yield
    SOCKET.unlink()
