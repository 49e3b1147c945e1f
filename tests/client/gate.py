"""A small gate on loopback that answers as the product's API does, and fails when told
to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.loopback import LoopbackServer, serve_calls

KEY = "cs_test"
PAGE = 2

# Facts of a decided proposal.
REJECTION = {
    "verdict": "reject",
    "reason_code": "not_needed",
    "reason": "They know.",
    "by_role": "reviewer",
}
GRANTED = {"status": "granted", "grant": {"token": "t"}}


@dataclass
class Fault:
    """What to answer instead, once. Status 0 cuts the line without an answer.

    With `after` the call takes effect first, so that only the answer is lost.
    """

    status: int
    code: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False
    raw: bytes = b""


@dataclass
class LoopbackGate:
    """The state: proposals by id, answers by idempotency key, every call received.

    `answers` holds facts by tool that a proposal begins with, such as its status.
    """

    proposals: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    checkpoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    # What becomes of a proposal while somebody waits for it.
    facts_at_wait: dict[str, dict[str, Any]] = field(default_factory=dict)
    questions: dict[str, dict[str, Any]] = field(default_factory=dict)
    question_facts: dict[str, Any] = field(default_factory=dict)  # at the first wait
    faults: list[Fault] = field(default_factory=list)
    calls: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    redeemed_by: str = ""  # the key that has the claim
    tools: list[dict[str, Any]] = field(default_factory=list)
    state: str = "running"  # of the agent
    url: str = ""

    def settle(self, proposal: str, **facts: Any) -> None:
        with self.changed:
            self.proposals[proposal].update(facts)
            self.changed.notify_all()

    def answer(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        if headers.get("authorization") != f"Bearer {KEY}":
            healthy = {"status": "ok", "database": "ok"}
            return (200, healthy, {}) if path == "/readyz" else problem(401, "bad_key")
        split = urlsplit(path)
        query = {k: v[0] for k, v in parse_qs(split.query).items()}
        steps = split.path.removeprefix("/api/v1/").split("/")
        match method, steps:
            case "POST", ["proposals"]:
                return self._propose(headers, body)
            case "GET", ["proposals"]:
                return self._page(query)
            case "GET", ["proposals", name]:
                return self._get(name, float(query.get("wait", 0)))
            case "POST", ["proposals", name, "withdraw"]:
                self.settle(name, status="withdrawn")
                return 200, self.proposals[name], {}
            case "POST", ["proposals", name, "acknowledge"]:
                self.settle(name, acknowledged_at="2026-08-22T19:00:00Z")
                return 200, self.proposals[name], {}
            case "POST", ["grants", "redeem"]:
                return self._redeem(headers["idempotency-key"])
            case _:
                return self._other(steps, headers, body)

    def _other(
        self, steps: list[str], headers: dict[str, str], body: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        match steps:
            case ["proposals", name, "messages"]:
                return self._take_message(name, json.loads(body))
            case ["threads", name, "checkpoint"]:
                return self._resume(name)
            case ["threads", name, "finish"]:
                self.finished.append(name)
                return 200, {"thread": name, "status": "finished"}, {}
            case ["executions", _, "outcome"]:
                return 200, self.proposals["p-1"], {}
            case ["questions", *more]:
                return self._answer_question(more, headers, body)
            case ["evidence" | "tools" | "whoami" as name]:
                agent = {"agent": "riley", "state": self.state}
                known = {"evidence": {}, "tools": self.tools, "whoami": agent}
                return 200, known[name], {}
            case _:
                return problem(404, "not_found")

    def _answer_question(
        self, steps: list[str], headers: dict[str, str], body: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        if not steps:
            return self._ask(headers["idempotency-key"], json.loads(body))
        name, *more = steps
        withdrawn = {"status": "withdrawn"}
        self.questions[name] |= withdrawn if more else self.question_facts
        return 200, self.questions[name], {}

    def _ask(self, key: str, asked: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        """A question that waits; the same key asks the same one."""
        name = self.keys.setdefault(key, (b"", f"q-{len(self.questions) + 1}"))[1]
        more = {"id": name, "status": "open", "url": f"http://gate/questions/{name}/"}
        return 201, self.questions.setdefault(name, {**asked, **more}), {}

    def ask(self, proposal: str, text: str, round_: int = 1) -> None:
        """A person's question."""
        self._add_message(proposal, "reviewer", "question", text, round_)

    def _take_message(
        self, name: str, sent: dict[str, Any]
    ) -> tuple[int, Any, dict[str, str]]:
        round_ = sent.get("round") or 1
        self._add_message(name, "agent", sent["kind"], sent["text"], round_)
        return 200, self.proposals[name], {}

    def _add_message(
        self, name: str, sender: str, kind: str, text: str, round_: int
    ) -> None:
        at = "2026-08-22T18:00:00Z"
        row = {"from": sender, "kind": kind, "text": text, "at": at, "round": round_}
        self.settle(name, messages=[*self.proposals[name].get("messages", []), row])

    def _redeem(self, key: str) -> tuple[int, Any, dict[str, str]]:
        """The claim is its first key's."""
        first = self.redeemed_by or key
        self.redeemed_by = first
        return (200, REDEEMED, {}) if key == first else problem(409, "grant_spent")

    def _propose(
        self, headers: dict[str, str], body: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        key = headers["idempotency-key"]
        asked = json.loads(body)
        with self.changed:
            if key in self.keys:
                return self._replay(key, body)
            if not isinstance(asked["args"].get("amount", ""), str):
                wrong = {"path": "args.amount", "message": "must be a string"}
                return problem(422, "invalid_args", errors=[wrong])
            name = f"p-{len(self.proposals) + 1}"
            self.keys[key] = (body, name)
            self.proposals[name] = proposal(name, asked)
            self.proposals[name].update(self.answers.get(asked["tool"], {}))
            if "checkpoint" in asked:
                kept = {"proposal": name, **asked["checkpoint"]}
                self.checkpoints[asked["thread"]] = kept
            return 201, self.proposals[name], {}

    def _resume(self, thread: str) -> tuple[int, Any, dict[str, str]]:
        kept = self.checkpoints.get(thread)
        if kept is None:
            return problem(404, "not_found")
        outcome = self.proposals[kept["proposal"]]
        more = {"checkpoint": kept, "outcome": outcome}
        status = "finished" if thread in self.finished else "running"
        return 200, {"thread": thread, "status": status, **more}, {}

    def _replay(self, key: str, body: bytes) -> tuple[int, Any, dict[str, str]]:
        first, name = self.keys[key]
        if first != body:
            return problem(422, "key_reused")
        return 200, self.proposals[name], {"Idempotent-Replayed": "true"}

    def _get(self, name: str, wait: float) -> tuple[int, Any, dict[str, str]]:
        if name not in self.proposals:
            return problem(404, "not_found")
        if wait and name in self.facts_at_wait:
            self.settle(name, **self.facts_at_wait.pop(name))
            return 200, self.proposals[name], {}
        with self.changed:
            self.changed.wait_for(
                lambda: self.proposals[name]["status"] != "pending", timeout=wait
            )
            return 200, self.proposals[name], {}

    def _page(self, query: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        found = [
            p
            for p in reversed(self.proposals.values())
            if query.get("status", p["status"]) == p["status"]
        ]
        start = int(query.get("cursor", 0))
        more = str(start + PAGE) if start + PAGE < len(found) else None
        return 200, {"items": found[start : start + PAGE], "next_cursor": more}, {}


def proposal(name: str, asked: dict[str, Any]) -> dict[str, Any]:
    """A waiting proposal in the shape of the API, with a field of a later version."""
    return {
        "id": name,
        "thread": asked["thread"],
        "tool": asked["tool"],
        "revision": 1,
        "action_hash": "sha256:00",
        "status": "pending",
        "risk": "high",
        "tier": "approve",
        "policy": {"version": 7, "rules": [{"id": "refund.any", "text": "Asked."}]},
        "request": {
            "id": "r-1",
            "url": "http://gate/requests/r-1/",
            "version": 1,
            "expires_at": "2026-08-22T19:00:00Z",
            "steps": [{"role": "reviewer", "required": 1, "given": 0}],
        },
        "returned": False,
        "messages": [],
        "grant": None,
        "decision": None,
        "execution": None,
        "created_at": "2026-08-22T18:30:00Z",
        "settled_at": None,
        "added_later": True,
    }


REDEEMED = {
    "execution": "x-1",
    "args": {"order_id": "1"},
    "action_hash": "sha256:00",
    "idempotency_key": "k",
    "fence": 3,
    "lease_until": "2026-08-22T18:31:00Z",
}


def problem(status: int, code: str, **more: Any) -> tuple[int, Any, dict[str, str]]:
    body = {"type": "about:blank", "title": code, "status": status, "code": code}
    return status, {**body, "detail": f"It is {code}.", **more}, {}


class Handler(BaseHTTPRequestHandler):
    """Carries one call to the gate, unless a fault is due."""

    gate: LoopbackGate
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.gate.calls.append((self.command, self.path, headers, body))
        fault = self.gate.faults.pop(0) if self.gate.faults else None
        if fault is None or fault.after:
            answer = self.gate.answer(self.command, self.path, headers, body)
        if fault is not None:
            self._fail(fault)
            return
        self._send(answer[0], json.dumps(answer[1]).encode(), answer[2])

    do_GET = do_POST = _serve

    def _fail(self, fault: Fault) -> None:
        if fault.status == 0:
            self.close_connection = True
            return
        status, data, _ = problem(fault.status, fault.code)
        self._send(status, fault.raw or json.dumps(data).encode(), fault.headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@contextmanager
def running() -> Iterator[LoopbackGate]:
    """A gate that listens on a free port of loopback."""
    gate = LoopbackGate()
    handler = type("GateHandler", (Handler,), {"gate": gate})
    server = LoopbackServer(("127.0.0.1", 0), handler)
    gate.url = f"http://127.0.0.1:{server.server_port}"
    with serve_calls(server):
        yield gate
