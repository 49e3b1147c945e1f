"""The HTTP servers that tests put in another party's place, on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from world.services import QuietServer

LoopbackServer = QuietServer


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
