"""The servers of agents that hear of outcomes by post, at `/hooks/<agent>`.

Each checks a letter as the product's client does, does its work about an outcome once,
and then answers; some tell the gate by a call before that. Some first letters of an id
are refused, lost, done and not answered, or answered too late: drawn from the id, so
that it heals. A few are refused twice. The gate tries again after 5 s, then 10 s; what
its schedule does later (to 6 h, for three days), and an endpoint that is gone or
switched off, is not covered here: tests/agents/test_delivery.py is.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import httpx

from holdpoint_client import Backoff, Client, webhooks
from holdpoint_client.errors import HoldpointError

from .receivers import Arrival, Listener, Postbook, Word

# Of a thousand first letters of an id, how many end so; each bound is above the last.
REFUSED, ASKED_TO_WAIT, LOST, UNSAID, LATE = 30, 45, 60, 75, 90
TWICE = 5  # of those refused
LATE_S = 1.3  # more than the gate waits
RETRY_AFTER_S = "1"
QUICK = Backoff(attempts=2, first=0.05, longest=0.1, patience=1.0)


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, or None for no answer at all; and what is said beside it."""

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def said(self) -> str:
        return "nothing" if self.status is None else str(self.status)


class Hooks:
    """All of them, in one process; any number of threads."""

    def __init__(self, book: Postbook) -> None:
        self._book = book
        self._listeners = {one.agent: one for one in book.listeners()}

    def hear(self, agent: str, headers: Mapping[str, str], raw: bytes) -> Answer:
        """One letter: it is written down first, then acted on, then answered."""
        listener, at = self._listeners.get(agent), time.time()
        if listener is None:
            return Answer(404)
        try:
            event = webhooks.verify(headers, raw, listener.secret)
        except webhooks.NotVerified:
            event = None
        line, before = self._book.arrive(_arrival(at, agent, headers, raw, event))
        answer = Answer(401)
        if event is not None:
            answer = self._answer(listener, event, before)
        self._book.answered(line, answer.said)
        return answer

    def _answer(self, to: Listener, event: webhooks.Event, before: int) -> Answer:
        mishap = _mishap(event.id, before)
        if mishap == "refused":
            return Answer(503)
        if mishap == "asked to wait":
            return Answer(503, {"Retry-After": RETRY_AFTER_S})
        if mishap == "lost":
            return Answer(None)
        if event.outcome and not self._take(to, event):
            return Answer(503)
        if mishap == "late":
            time.sleep(LATE_S)
        return Answer(None if mishap == "unsaid" else 200)

    def _take(self, to: Listener, event: webhooks.Event) -> bool:
        """Work first, then the word; whether the gate has heard it, where it is to."""
        word = Word(
            to.agent, event.proposal, event.status, event.outcome, "hook", time.time()
        )
        self._book.act(word)
        if to.says == "answer":
            return True
        if not _told(to, event):
            return False
        self._book.acknowledge(replace(word, at=time.time()))
        return True


def _told(to: Listener, event: webhooks.Event) -> bool:
    """Whether one of the web processes took the agent's word."""
    for address in to.gate.split():
        http = httpx.Client(trust_env=False, timeout=1)
        try:
            with Client(address, to.key, backoff=QUICK, http=http) as gate:
                found = replace(gate.get(event.proposal), outcome=event.outcome)
                gate.acknowledge(found)
        except HoldpointError:
            continue
        return True
    return False


def _arrival(
    at: float,
    agent: str,
    headers: Mapping[str, str],
    raw: bytes,
    event: webhooks.Event | None,
) -> Arrival:
    message, body = headers.get("webhook-id", ""), hashlib.sha256(raw).hexdigest()
    if event is None:
        return Arrival(at, agent, message, False, body, "", "", "")
    about = event.outcome, event.proposal, event.status
    return Arrival(at, agent, message, True, body, *about)


def _mishap(message: str, before: int) -> str:
    """What goes wrong with a letter; the same whenever it is run."""
    drawn = int(hashlib.sha256(message.encode()).hexdigest()[:8], 16) % 1000
    if before:
        return "refused" if before == 1 and drawn < TWICE else ""
    bounds = {
        REFUSED: "refused",
        ASKED_TO_WAIT: "asked to wait",
        LOST: "lost",
        UNSAID: "unsaid",
        LATE: "late",
    }
    return next((name for bound, name in bounds.items() if drawn < bound), "")
