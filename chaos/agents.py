"""Agents at work: each wish is made when its time comes, and followed to its end.

What the people and agents of a run wrote down: every call until its answer, for the
auditor and for the count of recoveries.

An agent's connections, by the product's own client: the same key until there is an
answer, at another web process when one is gone.
"""

from __future__ import annotations

import queue
import random
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2

from bench.seed import format_slug
from holdpoint_client import ApiError, Backoff, Client, Proposal, Redeemed, Unreachable

from .generator import FROM_DRIVER, Wish
from .receivers import Postbook, Word


@dataclass(frozen=True, slots=True)
class Call:
    """One thing somebody wanted from the web, from the first try to the answer."""

    what: str
    subject: str
    began: float
    ended: float
    webs: tuple[int, ...]  # which of them were asked, in order


@dataclass
class Notebook:
    """Shared by all threads of a run."""

    calls: list[Call] = field(default_factory=list)
    answered: dict[str, str] = field(default_factory=dict)  # key -> proposal
    ended: dict[str, str] = field(default_factory=dict)  # proposal -> status
    counts: Counter[str] = field(default_factory=Counter)
    troubles: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def impatient(self) -> set[str]:
        """The threads of these troubles."""
        return {one.partition(":")[0] for one in self.troubles}

    def called(self, call: Call) -> None:
        with self._lock:
            self.calls.append(call)

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def trouble(self, what: str) -> None:
        """Something that should not have been answered so."""
        with self._lock:
            self.troubles.append(what)


Answer = TypeVar("Answer")

PATIENCE_S = 90.0  # for one answer, over all tries
PAUSE = Backoff(first=0.2, longest=2.0)  # before the other web process is asked
_PLAIN = ssl.create_default_context()  # never used, and slow to make for each client
QUICK = Backoff(attempts=2, first=0.1, longest=0.3, patience=5.0)
RETRIED = {"in_progress", "conflict", "too_many"}


@dataclass
class Hand:
    """One thread's connections: a client for each web process and agent."""

    addresses: Sequence[str]
    keys: Sequence[str]
    notebook: Notebook
    clients: dict[tuple[int, int], Client] = field(default_factory=dict)

    def ask(
        self, what: str, subject: str, agent: int, call: Callable[[Client], Answer]
    ) -> Answer:
        """The answer, from whoever lives. Raises ApiError for a refusal that stands,
        TimeoutError when nobody answers."""
        began, asked = time.time(), []
        web = random.randrange(len(self.addresses))  # noqa: S311 - a balancer's choice
        while time.time() < began + PATIENCE_S:
            asked.append(web)
            try:
                answer = call(self._client(web, agent))
            except (ApiError, Unreachable) as error:
                if not _worth_another(error):
                    raise
                self.notebook.count("asked again")
                web = (web + 1) % len(self.addresses)
                time.sleep(PAUSE.delay(len(asked), None))
                continue
            if len(asked) > 1:
                now = time.time()
                self.notebook.called(Call(what, subject, began, now, tuple(asked)))
            return answer
        raise TimeoutError(f"{what} {subject}: no answer in {PATIENCE_S:g} s")

    def _client(self, web: int, agent: int) -> Client:
        if (web, agent) not in self.clients:
            http = httpx2.Client(trust_env=False, verify=_PLAIN)
            self.clients[web, agent] = Client(
                self.addresses[web], self.keys[agent], backoff=QUICK, http=http
            )
        return self.clients[web, agent]


def _worth_another(error: ApiError | Unreachable) -> bool:
    if isinstance(error, Unreachable):
        return True
    return error.status >= 500 or error.code in RETRIED


HANDS = 64  # wishes under way at once
WAIT_S = 15.0  # of one held call
GIVE_UP_S = 240.0  # for an end
TRIED_AGAIN_S = 3.0  # after which a person is reminded of a failure


@dataclass
class Driver:
    """All agents' wishes, each made when its time comes and followed to its end."""

    wishes: Sequence[Wish]
    addresses: Sequence[str]
    keys: Sequence[str]
    provider: str
    notebook: Notebook
    book: Postbook  # what the agents keep of their own
    failed: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    threads: list[threading.Thread] = field(default_factory=list)
    began: float = 0.0
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        self.began = time.monotonic()
        for _ in range(HANDS):
            thread = threading.Thread(target=self._work, daemon=True)
            thread.start()
            self.threads.append(thread)

    @property
    def working(self) -> bool:
        return any(thread.is_alive() for thread in self.threads)

    @property
    def made(self) -> int:
        """How many wishes the gate has taken."""
        return len(self.notebook.answered)

    @property
    def left(self) -> int:
        """How many wishes nobody has taken in hand yet."""
        return len(self.wishes) - self._next

    def _work(self) -> None:
        hand = Hand(self.addresses, self.keys, self.notebook)
        while (wish := self._take()) is not None:
            time.sleep(max(0.0, self.began + wish.at - time.monotonic()))
            try:
                self._follow(hand, wish)
            except Exception as error:
                self.notebook.trouble(f"{wish.thread}: {type(error).__name__} {error}")

    def _take(self) -> Wish | None:
        with self._lock:
            if self._next >= len(self.wishes):
                return None
            self._next += 1
            return self.wishes[self._next - 1]

    def _follow(self, hand: Hand, wish: Wish) -> None:
        proposal = self._propose(hand, wish)
        self.notebook.answered[wish.key] = proposal.id
        if wish.kind == "expire":
            return  # nobody stands and waits for that
        if wish.kind == "withdraw":
            proposal = self._withdraw(hand, wish, proposal)
        if wish.kind == "own":
            proposal = self._perform(hand, wish, proposal)
        self._see_end(hand, wish, proposal)

    def _propose(self, hand: Hand, wish: Wish) -> Proposal:
        more: dict[str, Any] = {"rationale": "asked by the customer"}
        if wish.group:
            more["group"] = wish.group
        if wish.kind == "expire":
            more["expires_in"] = 60
        return hand.ask(
            "propose",
            wish.key,
            wish.agent,
            lambda at: at.propose(
                wish.thread, wish.tool, wish.args, idempotency_key=wish.key, **more
            ),
        )

    def _withdraw(self, hand: Hand, wish: Wish, proposal: Proposal) -> Proposal:
        try:
            return hand.ask(
                "withdraw",
                wish.key,
                wish.agent,
                lambda at: at.withdraw(proposal.id),
            )
        except ApiError:  # withdrawn by a call whose answer was lost
            return self._look(hand, wish, proposal)

    def _look(self, hand: Hand, wish: Wish, proposal: Proposal) -> Proposal:
        return hand.ask("look", wish.key, wish.agent, lambda at: at.get(proposal.id))

    def _see_end(self, hand: Hand, wish: Wish, proposal: Proposal) -> None:
        end = time.monotonic() + GIVE_UP_S
        while not proposal.final or self._tried_again(wish, proposal):
            if time.monotonic() > end:
                self.notebook.trouble(f"{wish.thread}: no end, {proposal.status}")
                return
            proposal = self._wait(hand, wish, proposal.id)
        self.notebook.ended[proposal.id] = proposal.status
        if wish.agent >= FROM_DRIVER:
            self._take_up(hand, wish, proposal)

    def _take_up(self, hand: Hand, wish: Wish, proposal: Proposal) -> None:
        """The agent's own work about what it saw, and then the word that it has it."""
        about = format_slug(wish.agent), proposal.id, proposal.status, proposal.outcome
        self.book.act(Word(*about, "driver", time.time()))
        hand.ask(
            "acknowledge",
            wish.key,
            wish.agent,
            lambda at: at.acknowledge(proposal),
        )
        self.book.acknowledge(Word(*about, "driver", time.time()))

    def _wait(self, hand: Hand, wish: Wish, proposal: str) -> Proposal:
        return hand.ask(
            "wait", wish.key, wish.agent, lambda at: at.wait(proposal, WAIT_S)
        )

    def _tried_again(self, wish: Wish, proposal: Proposal) -> bool:
        """A failure that a person lets run once more is no end."""
        if wish.kind != "again" or proposal.status != "failed":
            return False
        if proposal.request is not None:
            self.failed.put(proposal.request.id)
        time.sleep(TRIED_AGAIN_S)
        return True

    def _perform(self, hand: Hand, wish: Wish, proposal: Proposal) -> Proposal:
        """Redeem, do it, and report, until the gate knows what became of it."""
        end = time.monotonic() + GIVE_UP_S
        token = ""
        while not proposal.final and time.monotonic() < end:
            token = proposal.grant.token if proposal.grant else token
            if not token:
                proposal = self._wait(hand, wish, proposal.id)
                continue
            try:
                return self._redeemed(hand, wish, token)
            except ApiError as error:
                # Taken by a call whose answer was lost: again when its lease is over.
                self.notebook.count(f"own: {error.code}")
                time.sleep(TRIED_AGAIN_S / 2)
                proposal = self._look(hand, wish, proposal)
        return proposal

    def _redeemed(self, hand: Hand, wish: Wish, token: str) -> Proposal:
        """Raises ApiError: `grant_spent`, `stale_fence`, whatever stands."""
        key = f"{wish.key}@{time.time_ns()}"  # of this try, at whichever web process
        taken = hand.ask(
            "redeem",
            wish.key,
            wish.agent,
            lambda at: at.redeem(token, idempotency_key=key),
        )
        self._act(taken)
        return hand.ask(
            "report",
            wish.key,
            wish.agent,
            lambda at: at.outcome(taken, "succeeded", result={"done": True}),
        )

    def _act(self, taken: Redeemed) -> None:
        """The agent asks the service itself, with the key that it was given."""
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
