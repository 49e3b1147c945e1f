"""The agents and the reviewer of the retail run, made to live with a gate whose web
processes and servers die all the time: what was not answered is asked of another web
process, under the same key, until it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from holdpoint_client import Client, Proposal
from tests.retail import actors
from tests.retail.actors import Agent, Ask, Reviewer, Send, dealt
from tests.retail.tasks import Call

from .calls import Notebook
from .calm import QUIET_S
from .hand import Hand
from .options import Options
from .people import Desk

WAIT_S = 15  # of one held call: whom it was asked of may be frozen
# A verdict whose answer was lost is said again, and was counted the first time.
LOST_RACE = actors.LOST_RACE | {"decided"}


@dataclass
class Cast:
    """Everybody who asks and answers, each in a thread of their own."""

    wishes: Sequence[Call]
    agents: Sequence[Agent]
    reviewer: Reviewer
    notebook: Notebook
    began: float = 0.0
    ended: float = 0.0  # when the last call was settled, once all are
    threads: list[threading.Thread] = field(default_factory=list)
    _settled: int = 0
    _since: float = 0.0

    def start(self) -> None:
        self.began = self._since = time.monotonic()
        self._start("rita", self.reviewer.work)
        self.threads = [
            self._start(agent.name, partial(self._work, agent)) for agent in self.agents
        ]

    @property
    def made(self) -> int:
        """How many proposals the gate has taken."""
        return len(self.notebook.answered)

    @property
    def working(self) -> bool:
        """Not when somebody had to give up: then there is nothing to wait for."""
        alive = any(thread.is_alive() for thread in self.threads)
        return alive and not self.notebook.troubles

    def stuck(self) -> bool:
        """Whether for long no call was settled. Ask often."""
        settled, now = len(self.notebook.ended), time.monotonic()
        if settled > self._settled:
            self._settled, self._since = settled, now
        return now > self._since + QUIET_S

    def _work(self, agent: Agent) -> None:
        agent.work()
        self.ended = time.monotonic()

    def _start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._do, args=(name, work), daemon=True)
        thread.start()
        return thread

    def _do(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.notebook.trouble(f"{name}: {type(error).__name__} {error}")


def cast(
    addresses: Sequence[str],
    options: Options,
    calls: Sequence[Call],
    keys: Mapping[str, str],
    token: str,
) -> Cast:
    """Agents by their keys, and a reviewer who approves everything."""
    notebook, work = Notebook(), dealt(calls)
    gap = options.seconds / len(calls)
    agents = [
        Agent(
            name,
            _asking(Hand(addresses, [key], notebook), name),
            _paced(work[name], gap),
            wait_s=WAIT_S,
        )
        for name, key in keys.items()
    ]
    desk = Desk("rita", token, addresses, notebook, threading.Event())
    reviewer = Reviewer(
        _sending(desk), calls, lambda _: False, desk.stopping, LOST_RACE
    )
    return Cast(calls, agents, reviewer, notebook)


def _paced(calls: Iterable[Call], gap: float) -> Iterator[Call]:
    """Each call when its time has come: faults are to fall from the first to the last
    of them. Who is late makes haste."""
    began = time.monotonic()
    for call in calls:
        time.sleep(max(0.0, began + call.number * gap - time.monotonic()))
        yield call


def _asking(hand: Hand, name: str) -> Ask:
    def ask(wanted: Callable[[Client], Proposal]) -> Proposal:
        answer = hand.ask("retail", name, 0, wanted)
        hand.notebook.answered[answer.id] = name
        if answer.final:
            hand.notebook.ended[answer.id] = answer.status
        return answer

    return ask


def _sending(desk: Desk) -> Send:
    """Until somebody answers, and be it a refusal."""

    def send(method: str, path: str, **said: Any) -> httpx.Response:
        while True:
            try:
                return desk.api(method, path, **said)
            except httpx.HTTPStatusError as error:
                if error.response.status_code < 500:
                    return error.response
            except httpx.HTTPError:
                pass
            desk.notebook.count("people asked again")

    return send
