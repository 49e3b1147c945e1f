"""A tool's service that verifies grants by itself: all that it must do. And what runs a
coroutine for a test that is none."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeVar

from counterseal_client.grants import InvalidGrant, verify
from tests.loopback import LoopbackServer, serve_calls

Result = TypeVar("Result")


class Deploys(LoopbackServer):
    """It deploys, and nothing else. `jwks` are the gate's public keys: fetched once, it
    is never asked again."""

    tool = "deploy"

    def __init__(self, jwks: Mapping[str, Any], audience: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.jwks, self.audience, self.lock = jwks, audience, threading.Lock()
        self.done: dict[str, Any] = {}  # grant id -> what was done; a database's row

    def perform(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            grant = verify(
                asked["grant"],
                self.jwks,
                audience=self.audience,
                tool=self.tool,
                args=asked["args"],
                preconditions=asked["preconditions"],
            )
        except InvalidGrant as no:
            return no.answer
        with self.lock:  # once by its id; a repetition gets the same answer
            fresh = {"deployed": dict(asked["args"]), "number": len(self.done) + 1}
            result = self.done.setdefault(grant.id, fresh)
        return {"status": "succeeded", "result": result}


class Handler(BaseHTTPRequestHandler):
    server: Deploys

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        raw = json.dumps(self.server.perform(asked)).encode()
        self.send_response(200)  # the gate knows then that nothing else happened
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@contextmanager
def running(jwks: Mapping[str, Any], audience: str) -> Iterator[Deploys]:
    """The service on a port of loopback, in a thread."""
    service = Deploys(jwks, audience)
    with serve_calls(service):
        yield service


def run_coroutine(work: Coroutine[Any, Any, Result]) -> Result:
    """What it returns. It runs in a thread of its own: tests with a browser leave an
    event loop behind in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
