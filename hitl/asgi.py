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
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application

from .environment import end_on_wrong_settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitl.settings")
with end_on_wrong_settings():
    _wsgi = get_wsgi_application()

# Imported after Django is set up, because these modules import models.
from .checks import check_known_keys, run_startup_checks
from .health.probes import mark_stopping, update_health
from .live.anonymous_limit import AnonymousLimits
from .live.buffering import BodyMemory, ConcurrencyLimit, Receive, Scope, Send
from .live.callers import CallerMiddleware, KnownCallers
from .live.event_stream import EventStreams
from .live.listen import Hub
from .live.long_poll import LongPoll
from .live.per_key_limit import CallerLimit
from .live.request_figures import RequestFigures
from .live.shared_counts import SharedCounts
from .live.threads import WsgiApp, WsgiThreads
from .measurements import measurements
from .restore_watch import PeriodicChecks, check_epoch
from .standstills import StandstillCheck

# Measured: more threads than this only compete for the interpreter lock.
THREADS = 4
# At most this many threads authorise event streams; the others serve pages.
STREAM_CHECKS = 2

log = structlog.get_logger(__name__)


class WebApplication:
    """The ASGI application: handles the lifespan itself, passes HTTP requests to the
    event streams or to Django's threads, and closes WebSockets."""

    def __init__(self, wsgi: WsgiApp, hub: Hub) -> None:
        self.hub = hub
        self.epochs = PeriodicChecks(check_epoch, StandstillCheck().look, update_health)
        callers, room = KnownCallers(), BodyMemory()
        self.counts = counts = SharedCounts(settings.COUNTERSEAL.redis_url)
        strangers = AnonymousLimits(counts)
        door = CallerMiddleware(WsgiThreads(wsgi, THREADS), callers)
        limited = CallerLimit(door, callers, strangers)
        self.http = LongPoll(limited, hub, callers, room, counts)
        asked = ConcurrencyLimit(door, STREAM_CHECKS)
        limited = CallerLimit(asked, callers, strangers)
        self.streams = EventStreams(limited, hub, room, counts)
        self.figures = RequestFigures(self._answer, measurements)
        measurements.count_streams = self.streams.page_updates.__len__

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.streams if self.streams.serves(scope) else self.http
        await app(scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.figures(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            for warning in run_startup_checks():
                log.warning(str(warning.msg))
            for text in await asyncio.to_thread(check_known_keys, serving=True):
                log.warning(text)
        except ImproperlyConfigured as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        self.hub.start()
        self.epochs.start()
        self.streams.page_updates.start()
        measurements.start_reporting()
        end_waits_on_signal(self.hub)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.hub.stop()
        await self.epochs.stop()
        await self.streams.page_updates.stop()
        await self.counts.close()
        await asyncio.to_thread(measurements.stop_reporting)
        await send({"type": "lifespan.shutdown.complete"})


def end_waits_on_signal(hub: Hub) -> None:
    """Release the waiting clients, and be unready, as soon as the process receives
    SIGTERM or SIGINT.

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
            mark_stopping()
            loop.call_soon_threadsafe(hub.end_waits)
            if callable(before):
                before(number, frame)

        signal.signal(number, handle)


application = WebApplication(_wsgi, Hub(settings.COUNTERSEAL.database_url))
