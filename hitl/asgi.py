"""The ASGI application of the web process, which uvicorn serves on one port.

Django's WSGI handler answers requests in a fixed pool of threads, each with a
persistent database connection. Calls that wait for an outcome wait on the event loop
(hitl/live/long_poll.py), and so do the event streams of open pages
(hitl/live/event_stream.py).
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from types import FrameType
from typing import Any, cast

import structlog
from a2wsgi import WSGIMiddleware
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitl.settings")
_wsgi = get_wsgi_application()

# Imported after Django is set up, because these modules import models.
from .checks import refuse_unsafe  # noqa: E402
from .live.anonymous_limit import Strangers  # noqa: E402
from .live.buffering import App, Few, Receive, Room, Scope, Send  # noqa: E402
from .live.callers import Callers, Introduced  # noqa: E402
from .live.event_stream import Streams  # noqa: E402
from .live.listen import Hub  # noqa: E402
from .live.long_poll import LongPoll  # noqa: E402
from .live.per_key_limit import Fair  # noqa: E402
from .restore_watch import Watch  # noqa: E402
from .restore_watch import look as look_at_epoch  # noqa: E402
from .standstills import Standstills  # noqa: E402

# Measured: more threads than this only compete for the interpreter lock (stack.md).
THREADS = 4
# At most this many threads authorise event streams; the others serve pages.
STREAMS_ASKED = 2

log = structlog.get_logger(__name__)


class Web:
    """The ASGI application: handles the lifespan itself, passes HTTP requests to the
    event streams or to Django's threads, and closes WebSockets."""

    def __init__(self, wsgi: Any, hub: Hub) -> None:
        self.hub = hub
        self.epochs = Watch(look_at_epoch, Standstills().look)
        callers, strangers, room = Callers(), Strangers(), Room()
        threads = cast(App, WSGIMiddleware(wsgi, workers=THREADS))
        door = Introduced(threads, callers)
        self.http = LongPoll(Fair(door, callers, strangers), hub, callers, room)
        asked = Few(door, STREAMS_ASKED)
        self.streams = Streams(Fair(asked, callers, strangers), hub, room)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            app = self.streams if self.streams.serves(scope) else self.http
            await app(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            for warning in refuse_unsafe():
                log.warning(str(warning.msg))
        except ImproperlyConfigured as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        self.hub.start()
        self.epochs.start()
        self.streams.newsroom.start()
        on_stop_signal(self.hub)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.hub.stop()
        await self.epochs.stop()
        await self.streams.newsroom.stop()
        await send({"type": "lifespan.shutdown.complete"})


def on_stop_signal(hub: Hub) -> None:
    """Release the waiting clients as soon as the process receives SIGTERM or SIGINT.

    uvicorn notifies its application only after every request has ended, so a wait of
    one minute would delay a deployment by one minute. The previous signal handler still
    runs. Does nothing outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)

        def handle(number: int, frame: FrameType | None, before: Any = before) -> None:
            loop.call_soon_threadsafe(hub.end_waits)
            if callable(before):
                before(number, frame)

        signal.signal(number, handle)


application = Web(_wsgi, Hub(settings.HOLDPOINT.database_url))
