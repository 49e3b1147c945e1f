"""uvicorn's HTTP protocol with a time limit on request heads.

Without a limit, a client could send half a request on each of many connections and keep
all of them open.
"""

from __future__ import annotations

import asyncio

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)

TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\n"
    b"connection: close\r\ncontent-length: 0\r\ncache-control: no-store\r\n\r\n"
)


class Protocol(HttpToolsProtocol):
    """Closes a connection whose request line and headers are not complete within
    HEAD_TIMEOUT seconds, however often more bytes arrive."""

    _late: asyncio.TimerHandle | None = None
    _began = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._began = True
        super().data_received(data)
        # The next request on this connection has begun, perhaps with an empty line. For
        # the first request the timer already runs.
        last: RequestResponseCycle | None = self.cycle
        if self._late is None and last is not None and last.response_complete:
            self._expect_head()

    def on_headers_complete(self) -> None:
        self._head_is_here()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if not self.transport.is_closing():
            seconds = settings.HOLDPOINT.head_timeout
            self._late = self.loop.call_later(seconds, self._give_up)

    def _head_is_here(self) -> None:
        self._began = False
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        """Close the connection; answer 408 first if a request had begun."""
        self._late = None
        if not self.transport.is_closing():
            if self._began:
                self.transport.write(TOO_SLOW)
            self.transport.close()
