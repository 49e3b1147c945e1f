"""One HTTP connection, pinned to checked addresses, with one deadline for everything.

It records whether it tried to send any byte of the request. That separates a failure
that certainly had no effect from an unknown outcome (docs/invariants.md I20).
"""

from __future__ import annotations

import socket
import ssl
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore2

from .addresses import NotSent

# The flags of `ssl.create_default_context`, which httpcore2 does not set by itself.
_VERIFY_FLAGS = (
    ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_STRICT
    if sys.version_info >= (3, 13)
    else ssl.VERIFY_DEFAULT
)


class Deadline:
    """A span of seconds that starts now."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Seconds left. Raises `TimeoutError` when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is over")
        return left


class PinnedBackend(httpcore2.NetworkBackend):
    """A network backend of httpcore2 that connects to the given addresses and to
    nothing else, whatever host it is asked for. httpcore2 uses the host's name for the
    Host header and for TLS, and never resolves it."""

    def __init__(self, addresses: Sequence[str], deadline: Deadline) -> None:
        self.addresses = addresses
        self.deadline = deadline
        self.sent = False  # true from the first attempt to write a byte

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """A stream to the first address that accepts a connection. Raises `NotSent`
        when none does, and TimeoutError."""
        for address in self.addresses:
            try:
                return _DeadlineStream(self, self._connect(address, port))
            except OSError as error:
                problem = error
        raise NotSent(f"no connection to {host}: {problem}") from problem

    def _connect(self, address: str, port: int) -> socket.socket:
        sock = socket.create_connection((address, port), self.deadline.remaining())
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock


class _DeadlineStream(httpcore2.NetworkStream):
    """A socket whose waits all end at the deadline, so that a service that sends one
    byte at a time cannot block a worker."""

    def __init__(self, wire: PinnedBackend, sock: socket.socket) -> None:
        self.wire = wire
        self.sock = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.sock.settimeout(self.wire.deadline.remaining())
        return self.sock.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.wire.sent = self.wire.sent or bool(buffer)
        while buffer:
            self.sock.settimeout(self.wire.deadline.remaining())
            try:
                buffer = buffer[self.sock.send(buffer) :]
            except ConnectionError as error:
                # On a WriteError httpcore2 still reads the response: a service may
                # answer and close early.
                raise httpcore2.WriteError(str(error)) from error

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        ssl_context.verify_flags |= _VERIFY_FLAGS
        self.sock.settimeout(self.wire.deadline.remaining())
        try:
            secure = ssl_context.wrap_socket(self.sock, server_hostname=server_hostname)
        except BaseException:
            self.sock.close()
            raise
        return _DeadlineStream(self.wire, secure)

    def close(self) -> None:
        self.sock.close()

    def get_extra_info(self, info: str) -> Any:
        return None
