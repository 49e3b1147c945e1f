"""Who takes part in the retail run, each over HTTP alone: agents with the product's own
client, and a reviewer who reads what is asked and answers as the script says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from holdpoint_client import Client, Proposal

from .tasks import Call

AGENTS = ("ann", "ben", "cleo", "dan")
WAIT_S = 60
LOOK_S = 0.05  # between two looks at an empty queue
# A lost race: the reviewer looks again and finds the request as it is now.
LOST_RACE = "conflict"

Script = Callable[[Call], bool]  # whether a call is to be rejected


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
    key: str
    base_url: str
    calls: Sequence[Call]
    answers: dict[int, Proposal] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)  # of each call, all told

    def work(self) -> None:
        with Client(self.base_url, self.key, http=httpx.Client(trust_env=False)) as at:
            for call in self.calls:
                begun = time.monotonic()
                self.answers[call.number] = self._settled(at, call)
                self.seconds.append(time.monotonic() - begun)

    def _settled(self, at: Client, call: Call) -> Proposal:
        answer = at.propose(
            call.thread, call.tool, call.args, idempotency_key=call.key, wait=WAIT_S
        )
        while not answer.final:
            answer = at.wait(answer.id, WAIT_S)
        return answer


@dataclass
class Reviewer:
    """Finds the call behind each request by what the request shows: thread, tool and
    arguments. What is in no task is not answered, and the run stops."""

    base_url: str
    token: str
    calls: Sequence[Call]
    rejects: Script
    stopping: threading.Event = field(default_factory=threading.Event)
    looks: int = 0
    verdicts: dict[str, str] = field(default_factory=dict)  # by request

    def work(self) -> None:
        known = {shown(call.thread, call.tool, call.args): call for call in self.calls}
        headers = {"Authorization": f"Bearer {self.token}"}
        root = f"{self.base_url}/api/v1"
        with httpx.Client(base_url=root, headers=headers, trust_env=False) as http:
            while not self.stopping.is_set():
                if not self._look(http, known):
                    self.stopping.wait(LOOK_S)

    def _look(self, http: httpx.Client, known: dict[str, Call]) -> int:
        self.looks += 1
        found = http.get("/requests").raise_for_status().json()["items"]
        for asked in found:
            call = known[shown(asked["thread"], asked["tool"], asked["args"])]
            self._decide(http, asked, "reject" if self.rejects(call) else "approve")
        return len(found)

    def _decide(self, http: httpx.Client, asked: dict[str, Any], verdict: str) -> None:
        said = {
            "version": asked["version"],
            "action_hash": asked["action_hash"],
            "verdict": verdict,
            "reason_code": "not_needed" if verdict == "reject" else "",
        }
        answer = http.post(f"/requests/{asked['id']}/decide", json=said)
        if answer.status_code == 409 and answer.json()["code"] == LOST_RACE:
            return
        answer.raise_for_status()
        self.verdicts[asked["id"]] = verdict


def shown(thread: str, tool: str, args: dict[str, Any]) -> str:
    """What tells one call of these tasks from every other."""
    return json.dumps([thread, tool, args], sort_keys=True)
