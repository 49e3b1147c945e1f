"""uvicorn's HTTP protocol with limits on the time and the size of request heads.

Without them, a client could send half a request on each of many connections and keep
all of them open, or send a head without an end, which the parser would keep in memory.
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
MOST_HEAD_BYTES = 64 * 1024  # of the request line and the headers
MOST_HEADERS = 100  # of one request, with the trailers of a chunked body
PIECE = 16 * 1024  # bytes that the parser gets at a time
LINGER_S = 1.0
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\ncache-control: no-store\r\n\r\n"
)


class HeadTooLarge(Exception):
    """Ends the parsing of a request whose head is over a limit."""


class Protocol(HttpToolsProtocol):
    """Closes a connection whose request line and headers are not complete within
    HEAD_TIMEOUT seconds, however often more bytes arrive, and one whose request line
    and headers are longer than MOST_HEAD_BYTES or more than MOST_HEADERS."""

    _late: asyncio.TimerHandle | None = None
    _began = False
    _refused = False
    _headers = 0
    _head_bytes = 0  # of the complete parts of this head
    _size = 0  # of the piece that the parser has now
    _fed = 0  # bytes that the parser got since the last byte of a body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._began = True
        for start in range(0, len(data), PIECE):
            if self._refused or self.transport.is_closing():
                return
            self._feed(data[start : start + PIECE])
        # The next request on this connection has begun, perhaps with an empty line. For
        # the first request the timer already runs.
        last: RequestResponseCycle | None = self.cycle
        if self._late is None and last is not None and last.response_complete:
            self._expect_head()

    def _feed(self, piece: bytes) -> None:
        """Give the parser a piece. A header, a trailer or the head of a chunk that it
        has not seen the end of is in its memory, so bytes are counted here as well."""
        self._fed += len(piece)
        self._size = len(piece)
        super().data_received(piece)
        if self._fed > MOST_HEAD_BYTES:
            self._refuse_head()

    def on_message_begin(self) -> None:
        self._headers = self._head_bytes = 0
        self._fed = self._size
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers += 1
        self._count_head(len(name) + len(value) + len(": \r\n"))
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._fed = 0
        super().on_body(body)

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MOST_HEAD_BYTES or self._headers > MOST_HEADERS:
            self._refuse_head()
            raise HeadTooLarge  # the parser stops, and uvicorn calls the next method

    def send_400_response(self, msg: str) -> None:
        if not self._refused:
            super().send_400_response(msg)

    def _refuse_head(self) -> None:
        """Answer 431 and close. The client gets time to read the answer: bytes that
        nobody reads would make the system reset the connection. No answer is written
        into that of an earlier request."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._head_is_here()
        last: RequestResponseCycle | None = self.cycle
        if last is not None and not last.response_complete:
            self.transport.close()
            return
        self.transport.write(TOO_LARGE)
        self.loop.call_later(LINGER_S, self.transport.close)

    def on_headers_complete(self) -> None:
        self._head_is_here()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if not self.transport.is_closing():
            seconds = settings.COUNTERSEAL.head_timeout
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
