"""Servers on loopback that check what a published API requires of a call, and answer in
its recorded shapes."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from journal.models import OutboxMessage
from policies.models import PolicyVersion
from tests import factories
from tests.conftest import Gate
from tests.loopback import LoopbackServer, serve_calls

# How long a server that hangs would keep a caller without a time limit.
PATIENCE_S = 300.0


@dataclass(frozen=True)
class Answer:
    """What an API says; `hangs` says nothing at all."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False


@dataclass(frozen=True)
class Call:
    """A call as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Api:
    """One API: its rules are `rule`, and `troubles` are answered first."""

    rule: Callable[[Call], Answer]
    port: int = 0
    calls: list[Call] = field(default_factory=list)
    troubles: list[Answer] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Handler(BaseHTTPRequestHandler):
    api: Api

    def do_POST(self) -> None:
        api = self.api
        length = int(self.headers["Content-Length"])
        heads = {name.lower(): value for name, value in self.headers.items()}
        call = Call(self.path, heads, self.rfile.read(length))
        api.calls.append(call)
        answer = api.troubles.pop(0) if api.troubles else api.rule(call)
        if answer.hangs:
            api.over.wait(PATIENCE_S)
            return
        raw = answer.body
        if not isinstance(raw, bytes):
            raw = json.dumps(raw).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@contextlib.contextmanager
def running(rule: Callable[[Call], Answer]) -> Iterator[Api]:
    api = Api(rule)
    handler = type("Handler", (_Handler,), {"api": api})
    server = LoopbackServer(("127.0.0.1", 0), handler)
    api.port = server.server_port
    with serve_calls(server):
        try:
            yield api
        finally:
            api.over.set()


def activate_routes(gate: Gate, *routes: dict[str, Any]) -> PolicyVersion:
    """The tests' policy with a routing table, in force."""
    document = {**factories.document_of_tests(), "routes": list(routes)}
    return factories.policy(gate.people, document)


def count_promised(topic: str = "notice.due") -> int:
    return OutboxMessage.objects.filter(topic=topic, done_at=None).count()
