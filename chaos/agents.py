"""Agents at work: they perform each operation when its time comes, until its end."""

from __future__ import annotations

import queue
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2

from counterseal_client import ApiError, Backoff, Gate, Proposal
from world.agents import perform_claim, propose_action
from world.database import Ledger
from world.receivers import Act, acknowledge, act_once

from .balancer import Balancer
from .generator import AGENTS, FROM_DRIVER, Operation
from .history import History

Answer = TypeVar("Answer")

_PLAIN = ssl.create_default_context()  # never used, and slow to make for each client
QUICK = Backoff(attempts=2, first=0.1, longest=0.3, patience=5.0)
THREADS = 64  # operations under way at once
WAIT_S = 15.0  # of one held call
GIVE_UP_S = 240.0  # for an end
TRIED_AGAIN_S = 3.0  # after which a person is reminded of a failure


@dataclass
class Gates(Balancer):
    """One thread's connections: a client for each web process and agent."""

    keys: Sequence[str]
    clients: dict[tuple[int, int], Gate] = field(default_factory=dict)

    def ask_as(
        self, agent: int, what: str, subject: str, call: Callable[[Gate], Answer]
    ) -> Answer:
        return self.ask(what, subject, lambda web: call(self._client(web, agent)))

    def _client(self, web: int, agent: int) -> Gate:
        if (web, agent) not in self.clients:
            http = httpx2.Client(trust_env=False, verify=_PLAIN)
            self.clients[web, agent] = Gate(
                self.addresses[web], self.keys[agent], backoff=QUICK, http=http
            )
        return self.clients[web, agent]


@dataclass
class Driver:
    """All agents' operations, each made when its time comes and followed to its end."""

    operations: Sequence[Operation]
    addresses: Sequence[str]
    keys: Sequence[str]
    provider: str
    history: History
    ledger: Ledger  # has what the agents keep of their own
    failed: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    threads: list[threading.Thread] = field(default_factory=list)
    began: float = 0.0
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        self.began = time.monotonic()
        for _ in range(THREADS):
            thread = threading.Thread(target=self._work, daemon=True)
            thread.start()
            self.threads.append(thread)

    @property
    def working(self) -> bool:
        return any(thread.is_alive() for thread in self.threads)

    @property
    def left(self) -> int:
        """How many operations no thread has begun yet."""
        return len(self.operations) - self._next

    def _work(self) -> None:
        gates = Gates(self.addresses, self.history, self.keys)
        while (operation := self._take()) is not None:
            time.sleep(max(0.0, self.began + operation.at - time.monotonic()))
            try:
                Course(self, gates, operation).follow()
            except Exception as error:
                self.history.trouble(
                    f"{operation.thread}: {type(error).__name__} {error}"
                )

    def _take(self) -> Operation | None:
        with self._lock:
            if not self.left:
                return None
            self._next += 1
            return self.operations[self._next - 1]


@dataclass
class Course:
    """One operation, from its proposal to its end."""

    driver: Driver
    gates: Gates
    operation: Operation

    def follow(self) -> None:
        kind = self.operation.kind
        proposal = self._propose()
        self.driver.history.answered[self.operation.key] = proposal.id
        if kind == "expire":
            return  # nobody stands and waits for that
        if kind == "withdraw":
            proposal = self._withdraw(proposal.id)
        if kind == "own":
            proposal = self._perform(proposal)
        self._see_end(proposal)

    def _ask(self, what: str, call: Callable[[Gate], Answer]) -> Answer:
        operation = self.operation
        return self.gates.ask_as(operation.agent, what, operation.key, call)

    def _propose(self) -> Proposal:
        details: dict[str, Any] = {"rationale": "asked by the customer"}
        if self.operation.group:
            details["group"] = self.operation.group
        if self.operation.kind == "expire":
            details["expires_in"] = 60
        return self._ask(
            "propose", lambda at: propose_action(at, self.operation, **details)
        )

    def _withdraw(self, proposal: str) -> Proposal:
        try:
            return self._ask("withdraw", lambda at: at.withdraw(proposal))
        except ApiError:  # withdrawn by a call whose answer was lost
            return self._look(proposal)

    def _look(self, proposal: str) -> Proposal:
        return self._ask("look", lambda at: at.get(proposal))

    def _wait(self, proposal: str) -> Proposal:
        return self._ask("wait", lambda at: at.wait(proposal, WAIT_S))

    def _see_end(self, proposal: Proposal) -> None:
        history, end = self.driver.history, time.monotonic() + GIVE_UP_S
        while not proposal.final or self._is_tried_again(proposal):
            if time.monotonic() > end:
                history.trouble(f"{self.operation.thread}: no end, {proposal.status}")
                return
            proposal = self._wait(proposal.id)
        history.ended[proposal.id] = proposal.status
        if self.operation.agent >= FROM_DRIVER:
            self._take_up(proposal)

    def _take_up(self, proposal: Proposal) -> None:
        """Record the agent's own work about an outcome, then acknowledge it."""
        act = Act(
            AGENTS[self.operation.agent],
            proposal.id,
            proposal.status,
            proposal.outcome,
            "driver",
            time.time(),
        )
        act_once(self.driver.ledger, act)
        self._ask("acknowledge", lambda at: at.acknowledge(proposal))
        acknowledge(self.driver.ledger, act)

    def _is_tried_again(self, proposal: Proposal) -> bool:
        """Whether a person is to let a failed execution run once more."""
        if self.operation.kind != "again" or proposal.status != "failed":
            return False
        if proposal.request is not None:
            self.driver.failed.put(proposal.request.id)
        time.sleep(TRIED_AGAIN_S)
        return True

    def _perform(self, proposal: Proposal) -> Proposal:
        """Redeem the grant, perform and report, until the gate has an outcome."""
        end = time.monotonic() + GIVE_UP_S
        token = ""
        while not proposal.final and time.monotonic() < end:
            token = proposal.grant.token if proposal.grant else token
            if not token:
                proposal = self._wait(proposal.id)
                continue
            try:
                return self._redeem(token)
            except ApiError as error:
                # Taken by a call whose answer was lost: again when its lease is over.
                self.driver.history.count(f"own: {error.code}")
                time.sleep(TRIED_AGAIN_S / 2)
                proposal = self._look(proposal.id)
        return proposal

    def _redeem(self, token: str) -> Proposal:
        """Raises ApiError: `grant_spent`, `stale_fence`, whatever stands."""
        # Of this try, at whichever web process.
        key = f"{self.operation.key}@{time.time_ns()}"
        claim = self._ask("redeem", lambda at: at.redeem(token, idempotency_key=key))
        perform_claim(self.driver.provider, self.operation.tool, claim)
        return self._ask(
            "report", lambda at: at.report(claim, "succeeded", result={"done": True})
        )
