"""The services of others, as a process: `python -m chaos.services <address> <file>`.

    POST /<tool>            the effect, in the way of the tool's class
    POST /<tool>/look-up    what became of a key
    POST /own/<tool>        the same for an agent that performs its effect itself
    POST /hooks/<agent>     a webhook to an agent's server (world/receivers.py)

A keyed service does a key once. A queryable one does what it is told as often as it is
told, but not for a fence older than one it knows: between our last look at the lease
and the first byte no gate can hold back a process that slept. An opaque one does it
always.
Some calls get no answer, or a late one: before or after the effect.

The ledger is what the services really did, in one SQLite file that survives every
fault. Nothing in the file stops a key from being there twice, only the services' own
ways do.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from world.database import Ledger
from world.receivers import WebhookReceiver
from world.services import (
    SECRET,
    Answer,
    Refusal,
    Service,
    ServiceHandler,
    draw_mishap,
)


@dataclass(frozen=True)
class Effect:
    """Something that happened, once for each row. `args` is JSON with sorted keys."""

    at: float
    tool: str
    key: str
    execution: str
    fence: int
    args: str


@dataclass(frozen=True)
class ServiceCall:
    """One call of a service by the gate or an agent, to `do` or to `look`, and what the
    service said."""

    at: float
    what: str
    key: str
    fence: int
    answer: str


def count_answers(ledger: Ledger) -> dict[str, int]:
    """How often the services were called, by what for and what they said."""
    calls = Counter(f"{call.what} {call.answer}" for call in ledger.load(ServiceCall))
    return dict(sorted(calls.items()))


CLASSES = {
    "note": "keyed",
    "tag": "queryable",
    "pay": "keyed",
    "ship": "queryable",
    "letter": "opaque",
    "repay": "keyed",
    "deploy": "keyed",
    "wipe": "keyed",
}
# Of a thousand first calls of a key, how many end so.
MISHAPS = {15: "lost", 30: "unsaid", 50: "late"}
LATE_S = 1.3  # more than the gate waits
BUSY_S = 0.01  # what an effect takes


class Provider(Service):
    """All services, with one ledger, and the agents' servers."""

    def __init__(self, address: str, ledger: Ledger, secret: str) -> None:
        super().__init__(address, ProviderHandler, secret)
        self.ledger = ledger
        self.hooks = WebhookReceiver(ledger)
        self.locks: dict[str, threading.Lock] = defaultdict(threading.Lock)


class ProviderHandler(ServiceHandler):
    """The calls above."""

    server: Provider

    def do_POST(self) -> None:
        body = self.read_body()
        first, _, rest = self.path.strip("/").partition("/")
        if first == "hooks":
            self._hear(rest, body)
        elif first != "own" and not self.is_signed(body):
            self.answer(401, {"code": "bad_signature"})
        else:
            self._serve(first, rest, json.loads(body))

    def _hear(self, agent: str, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.hooks.hear(agent, headers, body)
        if answer.status is None:
            self.hang_up()
        else:
            self.answer(answer.status, {}, **answer.headers)

    def _serve(self, first: str, rest: str, payload: dict[str, Any]) -> None:
        effect = build_effect(rest if first == "own" else first, payload)
        with self.server.locks[effect.key]:  # one key is one row of theirs
            answer = self._look(effect) if rest == "look-up" else self._do(effect)
        if answer is None:
            self.hang_up()
        else:
            self.answer(200, answer)

    def _look(self, effect: Effect) -> Answer:
        happened = bool(self.server.ledger.load(Effect, key=effect.key))
        self._note("look", effect, "found" if happened else "not found")
        if happened:
            return {"status": "succeeded", "result": {"seen": True}}
        return {"status": "not_found"}

    def _do(self, effect: Effect) -> Answer | None:
        """The effect, or not; None is no answer."""
        before = self.server.ledger.load(ServiceCall, key=effect.key)
        times = sum(call.what == "do" for call in before)
        note = json.loads(effect.args).get("note")
        mishap = "" if times or note else draw_mishap(effect.key, MISHAPS)
        if mishap == "lost":
            self._note("do", effect, "lost before")
            return None
        try:
            if note == "decline" or (note == "decline once" and not times):
                raise Refusal("declined", "not done")
            newest = max((call.fence for call in before), default=0)
            answer = self._perform(effect, newest)
        except Refusal as refusal:
            answer = refusal.answer
        self._note("do", effect, mishap or str(answer["status"]))
        if mishap == "late":
            time.sleep(LATE_S)
        return None if mishap == "unsaid" else answer

    def _perform(self, effect: Effect, newest_fence: int) -> Answer:
        """Raises Refusal."""
        way = CLASSES[effect.tool]
        if way == "queryable" and effect.fence < newest_fence:
            raise Refusal("old_fence", "not done")
        if way != "keyed" or not self.server.ledger.load(Effect, key=effect.key):
            time.sleep(BUSY_S)
            self.server.ledger.add(replace(effect, at=time.time()))
        return {"status": "succeeded", "result": {"reference": effect.key[:16]}}

    def _note(self, what: str, effect: Effect, answer: str) -> None:
        """That the service was called, and what it said."""
        call = ServiceCall(time.time(), what, effect.key, effect.fence, answer)
        self.server.ledger.add(call)


def build_effect(tool: str, payload: Mapping[str, Any]) -> Effect:
    """The effect that a call asks for."""
    return Effect(
        time.time(),
        tool,
        payload["idempotency_key"],
        payload.get("execution", ""),
        int(payload.get("fence", 0)),
        json.dumps(payload.get("args", {}), sort_keys=True),
    )


def main(address: str, file: str) -> None:
    """Serve until killed; a ledger that is there is carried on with."""
    Provider(address, Ledger(Path(file)), os.environ[SECRET]).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
