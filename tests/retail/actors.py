"""Who takes part in the retail run, each over HTTP alone: agents with the product's own
client, and a reviewer who reads what is asked and answers as the script says. How they
reach the gate is said by who casts them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from counterseal_client import Gate, Proposal
from tests.retail.tasks import Call

AGENTS = ("ann", "ben", "cleo", "dan")
WAIT_S = 60
LOOK_S = 0.05  # between two looks at an empty queue
# A lost race: the reviewer looks again and finds the request as it is now.
LOST_RACE = frozenset({"conflict"})

Script = Callable[[Call], bool]  # whether a call is to be rejected
# What an agent wants of its client, and the answer to it.
Ask = Callable[[Callable[[Gate], Proposal]], Proposal]
# Whatever the people's API answers: `send("POST", "/requests/q-1/decide", json=said)`.
Send = Callable[..., httpx2.Response]


def dealt(calls: Iterable[Call]) -> dict[str, list[Call]]:
    """The calls of each agent in file order: users go round the agents as they appear.

    A call touches only its own user and that user's orders (test_store.py looks), so
    how agents overtake each other does not matter to the store's final state.
    """
    agent_of: dict[str, str] = {}
    work: dict[str, list[Call]] = {name: [] for name in AGENTS}
    for call in calls:
        next_agent = AGENTS[len(agent_of) % len(AGENTS)]
        work[agent_of.setdefault(call.user, next_agent)].append(call)
    return work


@dataclass
class Agent:
    """Proposes its calls one by one and waits for each."""

    name: str
    ask: Ask
    calls: Iterable[Call]
    answers: dict[int, Proposal] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)  # of each call, all told
    wait_s: int = WAIT_S

    def work(self) -> None:
        for call in self.calls:
            begun = time.monotonic()
            self.answers[call.number] = self._settled(call)
            self.seconds.append(time.monotonic() - begun)

    def _settled(self, call: Call) -> Proposal:
        answer = self.ask(lambda at: self._propose(at, call))
        name = answer.id
        while not answer.final:
            answer = self.ask(lambda at: at.wait(name, self.wait_s))
        return answer

    def _propose(self, at: Gate, call: Call) -> Proposal:
        return at.propose(
            call.thread,
            call.tool,
            call.args,
            idempotency_key=call.key,
            wait=self.wait_s,
        )


@dataclass
class Reviewer:
    """Finds the call behind each request by what the request shows: thread, tool and
    arguments. What is in no task is not answered, and the run stops."""

    send: Send
    calls: Sequence[Call]
    rejects: Script
    stopping: threading.Event = field(default_factory=threading.Event)
    lost_race: frozenset[str] = LOST_RACE

    def work(self) -> None:
        known = {shown(call.thread, call.tool, call.args): call for call in self.calls}
        while not self.stopping.is_set():
            if not self._look(known):
                self.stopping.wait(LOOK_S)

    def _look(self, known: dict[str, Call]) -> int:
        found = self.send("GET", "/requests").raise_for_status().json()["items"]
        for asked in found:
            call = known[shown(asked["thread"], asked["tool"], asked["args"])]
            self._decide(asked, "reject" if self.rejects(call) else "approve")
        return len(found)

    def _decide(self, asked: dict[str, Any], verdict: str) -> None:
        said = {
            "version": asked["version"],
            "action_hash": asked["action_hash"],
            "verdict": verdict,
            "reason_code": "not_needed" if verdict == "reject" else "",
        }
        answer = self.send("POST", f"/requests/{asked['id']}/decide", json=said)
        if answer.status_code != 409 or answer.json()["code"] not in self.lost_race:
            answer.raise_for_status()


def shown(thread: str, tool: str, args: dict[str, Any]) -> str:
    """What tells one call of these tasks from every other."""
    return json.dumps([thread, tool, args], sort_keys=True)
