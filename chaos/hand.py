"""An agent's connections, by the product's own client: the same key until there is an
answer, at another web process when one is gone."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import httpx

from holdpoint_client import ApiError, Backoff, Client, Unreachable

from .calls import Call, Notebook

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
            http = httpx.Client(trust_env=False, verify=_PLAIN)
            self.clients[web, agent] = Client(
                self.addresses[web], self.keys[agent], backoff=QUICK, http=http
            )
        return self.clients[web, agent]


def _worth_another(error: ApiError | Unreachable) -> bool:
    if isinstance(error, Unreachable):
        return True
    return error.status >= 500 or error.code in RETRIED
