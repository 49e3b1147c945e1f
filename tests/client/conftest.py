from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from counterseal_client import Backoff, Gate
from tests.client.fork_server.commands import start_server
from tests.client.gate import KEY, LoopbackGate, running


@dataclass
class Pauses:
    """Takes the place of sleeping, and remembers what was asked."""

    taken: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@pytest.fixture
def gate() -> Iterator[LoopbackGate]:
    with running() as gate:
        yield gate


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def client(gate: LoopbackGate, pauses: Pauses) -> Iterator[Gate]:
    backoff = Backoff(attempts=4, first=0.1)
    with Gate(gate.url, KEY, backoff=backoff, sleep=pauses) as client:
        yield client


@pytest.fixture(scope="session")
def fork_server() -> Iterator[None]:
    """For the commands of `fork_server.commands`."""
    with start_server():
        yield
