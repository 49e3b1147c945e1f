from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from holdpoint_client import Backoff, Client

from .gate import KEY, Gate, running


@dataclass
class Pauses:
    """Takes the place of sleeping, and remembers what was asked."""

    taken: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@pytest.fixture
def gate() -> Iterator[Gate]:
    with running() as gate:
        yield gate


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def client(gate: Gate, pauses: Pauses) -> Iterator[Client]:
    backoff = Backoff(attempts=4, first=0.1, sleep=pauses)
    with Client(gate.url, KEY, backoff=backoff) as client:
        yield client
