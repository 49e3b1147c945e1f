"""Agents at work: they perform each operation when its time comes, until its end.

An agent calls by the product's own client. Until there is an answer, it repeats a call
under the same key, at another web process when one is gone.
"""

from __future__ import annotations

import queue
import random
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2

from bench.seed import format_slug
from counterseal_client import ApiError, Backoff, Claim, Gate, Proposal, Unreachable

from .generator import FROM_DRIVER, Operation
from .history import Call, History
from .receivers import AgentNote, PostLedger

Answer = TypeVar("Answer")

PATIENCE_S = 90.0  # for one answer, over all tries
PAUSE = Backoff(first=0.2, longest=2.0)  # before the other web process is asked
_PLAIN = ssl.create_default_context()  # never used, and slow to make for each client
QUICK = Backoff(attempts=2, first=0.1, longest=0.3, patience=5.0)
RETRIED = {"in_progress", "conflict", "too_many"}


@dataclass
class Connections:
    """One thread's connections: a client for each web process and agent."""

    addresses: Sequence[str]
    keys: Sequence[str]
    history: History
    clients: dict[tuple[int, int], Gate] = field(default_factory=dict)

    def ask(
        self, what: str, subject: str, agent: int, call: Callable[[Gate], Answer]
    ) -> Answer:
        """The answer, from a web process that is up.

        Raises ApiError for a refusal that stands, TimeoutError without an answer.
        """
        began, asked = time.time(), []
        web = random.randrange(len(self.addresses))  # noqa: S311 - a balancer's choice
        while time.time() < began + PATIENCE_S:
            asked.append(web)
            try:
                answer = call(self._client(web, agent))
            except (ApiError, Unreachable) as error:
                if not _worth_another(error):
                    raise
                self.history.count("asked again")
                web = (web + 1) % len(self.addresses)
                time.sleep(PAUSE.compute_delay(len(asked), None))
                continue
            if len(asked) > 1:
                now = time.time()
                self.history.called(Call(what, subject, began, now, tuple(asked)))
            return answer
        raise TimeoutError(f"{what} {subject}: no answer in {PATIENCE_S:g} s")

    def _client(self, web: int, agent: int) -> Gate:
        if (web, agent) not in self.clients:
            http = httpx2.Client(trust_env=False, verify=_PLAIN)
            self.clients[web, agent] = Gate(
                self.addresses[web], self.keys[agent], backoff=QUICK, http=http
            )
        return self.clients[web, agent]


def _worth_another(error: ApiError | Unreachable) -> bool:
    if isinstance(error, Unreachable):
        return True
    return error.status >= 500 or error.code in RETRIED


THREADS = 64  # operations under way at once
WAIT_S = 15.0  # of one held call
GIVE_UP_S = 240.0  # for an end
TRIED_AGAIN_S = 3.0  # after which a person is reminded of a failure


@dataclass
class Driver:
    """All agents' operations, each made when its time comes and followed to its end."""

    operations: Sequence[Operation]
    addresses: Sequence[str]
    keys: Sequence[str]
    provider: str
    history: History
    book: PostLedger  # what the agents keep of their own
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
    def made(self) -> int:
        """How many operations the gate has taken."""
        return len(self.history.answered)

    @property
    def left(self) -> int:
        """How many operations no thread has begun yet."""
        return len(self.operations) - self._next

    def _work(self) -> None:
        hand = Connections(self.addresses, self.keys, self.history)
        while (operation := self._take()) is not None:
            time.sleep(max(0.0, self.began + operation.at - time.monotonic()))
            try:
                self._follow(hand, operation)
            except Exception as error:
                self.history.trouble(
                    f"{operation.thread}: {type(error).__name__} {error}"
                )

    def _take(self) -> Operation | None:
        with self._lock:
            if self._next >= len(self.operations):
                return None
            self._next += 1
            return self.operations[self._next - 1]

    def _follow(self, hand: Connections, operation: Operation) -> None:
        proposal = self._propose(hand, operation)
        self.history.answered[operation.key] = proposal.id
        if operation.kind == "expire":
            return  # nobody stands and waits for that
        if operation.kind == "withdraw":
            proposal = self._withdraw(hand, operation, proposal)
        if operation.kind == "own":
            proposal = self._perform(hand, operation, proposal)
        self._see_end(hand, operation, proposal)

    def _propose(self, hand: Connections, operation: Operation) -> Proposal:
        more: dict[str, Any] = {"rationale": "asked by the customer"}
        if operation.group:
            more["group"] = operation.group
        if operation.kind == "expire":
            more["expires_in"] = 60
        return hand.ask(
            "propose",
            operation.key,
            operation.agent,
            lambda at: at.propose(
                operation.thread,
                operation.tool,
                operation.args,
                idempotency_key=operation.key,
                **more,
            ),
        )

    def _withdraw(
        self, hand: Connections, operation: Operation, proposal: Proposal
    ) -> Proposal:
        try:
            return hand.ask(
                "withdraw",
                operation.key,
                operation.agent,
                lambda at: at.withdraw(proposal.id),
            )
        except ApiError:  # withdrawn by a call whose answer was lost
            return self._look(hand, operation, proposal)

    def _look(
        self, hand: Connections, operation: Operation, proposal: Proposal
    ) -> Proposal:
        return hand.ask(
            "look", operation.key, operation.agent, lambda at: at.get(proposal.id)
        )

    def _see_end(
        self, hand: Connections, operation: Operation, proposal: Proposal
    ) -> None:
        end = time.monotonic() + GIVE_UP_S
        while not proposal.final or self._tried_again(operation, proposal):
            if time.monotonic() > end:
                self.history.trouble(f"{operation.thread}: no end, {proposal.status}")
                return
            proposal = self._wait(hand, operation, proposal.id)
        self.history.ended[proposal.id] = proposal.status
        if operation.agent >= FROM_DRIVER:
            self._take_up(hand, operation, proposal)

    def _take_up(
        self, hand: Connections, operation: Operation, proposal: Proposal
    ) -> None:
        """Record the agent's own work about an outcome, then acknowledge it."""
        about = (
            format_slug(operation.agent),
            proposal.id,
            proposal.status,
            proposal.outcome,
        )
        self.book.act(AgentNote(*about, "driver", time.time()))
        hand.ask(
            "acknowledge",
            operation.key,
            operation.agent,
            lambda at: at.acknowledge(proposal),
        )
        self.book.acknowledge(AgentNote(*about, "driver", time.time()))

    def _wait(self, hand: Connections, operation: Operation, proposal: str) -> Proposal:
        return hand.ask(
            "wait", operation.key, operation.agent, lambda at: at.wait(proposal, WAIT_S)
        )

    def _tried_again(self, operation: Operation, proposal: Proposal) -> bool:
        """Whether a person is to let a failed execution run once more."""
        if operation.kind != "again" or proposal.status != "failed":
            return False
        if proposal.request is not None:
            self.failed.put(proposal.request.id)
        time.sleep(TRIED_AGAIN_S)
        return True

    def _perform(
        self, hand: Connections, operation: Operation, proposal: Proposal
    ) -> Proposal:
        """Redeem the grant, perform and report, until the gate has an outcome."""
        end = time.monotonic() + GIVE_UP_S
        token = ""
        while not proposal.final and time.monotonic() < end:
            token = proposal.grant.token if proposal.grant else token
            if not token:
                proposal = self._wait(hand, operation, proposal.id)
                continue
            try:
                return self._redeemed(hand, operation, token)
            except ApiError as error:
                # Taken by a call whose answer was lost: again when its lease is over.
                self.history.count(f"own: {error.code}")
                time.sleep(TRIED_AGAIN_S / 2)
                proposal = self._look(hand, operation, proposal)
        return proposal

    def _redeemed(
        self, hand: Connections, operation: Operation, token: str
    ) -> Proposal:
        """Raises ApiError: `grant_spent`, `stale_fence`, whatever stands."""
        key = (
            f"{operation.key}@{time.time_ns()}"  # of this try, at whichever web process
        )
        taken = hand.ask(
            "redeem",
            operation.key,
            operation.agent,
            lambda at: at.redeem(token, idempotency_key=key),
        )
        self._act(taken)
        return hand.ask(
            "report",
            operation.key,
            operation.agent,
            lambda at: at.report(taken, "succeeded", result={"done": True}),
        )

    def _act(self, taken: Claim) -> None:
        """Call the service as the agent, with the key that the gate gave it."""
        said = {
            "idempotency_key": taken.idempotency_key,
            "execution": taken.execution,
            "fence": taken.fence,
            "args": taken.args,
        }
        for _ in range(3):
            try:
                httpx2.post(
                    f"{self.provider}/own/deploy", json=said, trust_env=False, timeout=5
                ).raise_for_status()
            except httpx2.HTTPError:
                continue
            return
