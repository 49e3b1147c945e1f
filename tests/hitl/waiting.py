"""A web process whose every answer says "not final": for tests of waiting itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from hitl.asgi import Web
from hitl.hub import Hub


def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """A WSGI application that names the waiter's own path as what to wait for."""
    subject = environ["PATH_INFO"].rsplit("/", 1)[-1]
    headers = [("Content-Type", "application/json"), ("Holdpoint-Wait", subject)]
    start_response("200 OK", headers)
    return [b'{"status": ', b'"pending"}']


application = Web(app, Hub(os.environ["DATABASE_URL"]))
