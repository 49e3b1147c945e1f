"""Agents by HTTP alone, with the product's own client. Who casts them says how they
reach the gate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx2

from counterseal_client import Claim, Gate, Proposal

WAIT_S = 60
# What an agent wants of its client, and the answer to it.
Ask = Callable[[Callable[[Gate], Proposal]], Proposal]


class Action(Protocol):
    """What an agent proposes, in one of its runs and under a key of its own."""

    @property
    def thread(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def args(self) -> dict[str, Any]: ...
    @property
    def key(self) -> str: ...
    @property
    def number(self) -> int: ...


def propose_action(gate: Gate, action: Action, **details: Any) -> Proposal:
    return gate.propose(
        action.thread, action.tool, action.args, idempotency_key=action.key, **details
    )


@dataclass
class Agent:
    """Proposes its actions one by one and waits for each."""

    name: str
    ask: Ask
    actions: Iterable[Action]
    answers: dict[int, Proposal] = field(default_factory=dict)  # by an action's number
    seconds: list[float] = field(default_factory=list)  # of each action, all in all
    wait_s: int = WAIT_S

    def work(self) -> None:
        for action in self.actions:
            began = time.monotonic()
            self.answers[action.number] = self._settle(action)
            self.seconds.append(time.monotonic() - began)

    def _settle(self, action: Action) -> Proposal:
        answer = self.ask(lambda at: propose_action(at, action, wait=self.wait_s))
        number = answer.id
        while not answer.final:
            answer = self.ask(lambda at: at.wait(number, self.wait_s))
        return answer


def perform_claim(provider: str, tool: str, claim: Claim) -> None:
    """Call a service as the agent, with the key that the gate gave it; thrice at most,
    as long as there is no answer."""
    payload = {
        "idempotency_key": claim.idempotency_key,
        "execution": claim.execution,
        "fence": claim.fence,
        "args": claim.args,
    }
    for _ in range(3):
        try:
            httpx2.post(
                f"{provider}/own/{tool}", json=payload, trust_env=False, timeout=5
            ).raise_for_status()
        except httpx2.HTTPError:
            continue
        return
