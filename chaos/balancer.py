"""Calls of the gate under faults: each is repeated until there is an answer, at another
web process when one is gone."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import httpx2

from counterseal_client import ApiError, Backoff, Unreachable

from .history import Call, History

Answer = TypeVar("Answer")
FAILURES = (ApiError, Unreachable, httpx2.HTTPError)

PATIENCE_S = 90.0  # for one answer, over all tries
PAUSE = Backoff(first=0.2, longest=2.0)  # before the other web process is asked
TEMPORARY = {"in_progress", "conflict", "too_many"}


@dataclass
class Balancer:
    """Asks one web process after the other until one of them answers."""

    addresses: Sequence[str]
    history: History

    def ask(self, what: str, subject: str, call: Callable[[int], Answer]) -> Answer:
        """The answer of a web process, by its number, that is up. Raises the last
        failure: a refusal that stands, or any after PATIENCE_S."""
        began, asked = time.time(), [random.randrange(len(self.addresses))]  # noqa: S311
        while True:
            try:
                answer = call(asked[-1])
            except FAILURES as failure:
                if not is_temporary(failure) or time.time() > began + PATIENCE_S:
                    raise
                self.history.count("asked again")
                time.sleep(PAUSE.compute_delay(len(asked), None))
                asked.append((asked[-1] + 1) % len(self.addresses))
                continue
            if len(asked) > 1:
                now = time.time()
                self.history.called(Call(what, subject, began, now, tuple(asked)))
            return answer


def is_temporary(failure: Exception) -> bool:
    """Whether the same call may be answered otherwise."""
    if isinstance(failure, ApiError):
        return failure.status >= 500 or failure.code in TEMPORARY
    if isinstance(failure, httpx2.HTTPStatusError):
        answer = failure.response
        lost_race = answer.status_code == 409 and '"conflict"' in answer.text
        return answer.status_code >= 500 or lost_race
    return True
