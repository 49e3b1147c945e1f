"""A web process whose every answer says "not final": for tests of waiting itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from hitl.asgi import WebApplication
from hitl.live.listen import Hub

asked: list[str] = []


def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """A WSGI application that names the waiter's own path as what to wait for;
    `/asked` says how many have asked."""
    if environ["PATH_INFO"] == "/asked":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [str(len(asked)).encode()]
    subject = environ["PATH_INFO"].rsplit("/", 1)[-1]
    asked.append(subject)
    headers = [("Content-Type", "application/json"), ("Counterseal-Wait", subject)]
    start_response("200 OK", headers)
    return [b'{"status": ', b'"pending"}']


application = WebApplication(app, Hub(os.environ["DATABASE_URL"]))
