"""The HTTP servers that tests put in another party's place, on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any


class LoopbackServer(ThreadingHTTPServer):
    """One thread a call; a caller may hang up or die before it has its answer."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing. Python 3.11 parses source when it prints a traceback, and
        `ast.parse` fails in one thread while another is inside it (CPython issue
        106905): a thread that outlives its test would fail the next one."""


@contextmanager
def serve_calls(server: LoopbackServer) -> Iterator[None]:
    """Let the server answer in a thread until the block ends, and close it then."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
