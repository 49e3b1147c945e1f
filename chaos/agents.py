"""Agents at work: each wish is made when its time comes, and followed to its end."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from bench.seed import slug
from holdpoint_client import ApiError, Proposal, Redeemed

from .calls import Notebook
from .generator import Wish
from .hand import Hand
from .house import FROM_DRIVER
from .receivers import Postbook, Word

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
        about = slug(wish.agent), proposal.id, proposal.status, proposal.outcome
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
                httpx.post(
                    f"{self.provider}/own/deploy", json=said, trust_env=False, timeout=5
                ).raise_for_status()
            except httpx.HTTPError:
                continue
            return
