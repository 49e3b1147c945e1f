from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from agents import keys
from tests.conftest import Gate
from tests.factories import proposal_body
from tests.reviews import service


@dataclass
class Caller:
    """An agent at the API, over HTTP through the whole middleware."""

    key: str
    numbers: Any

    def get(self, path: str) -> Any:
        return Client().get(f"/api/v1{path}", headers=self._headers())

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        return Client().post(
            f"/api/v1{path}",
            raw,
            content_type="application/json",
            headers={**self._headers(), **headers},
        )

    def propose(
        self, tool: str = "pay", key: str = "", wait: int = 0, **fields: Any
    ) -> Any:
        body = proposal_body(tool, **fields).model_dump(mode="json", exclude_unset=True)
        path = f"/proposals?wait={wait}" if wait else "/proposals"
        return self.post(
            path, body, **{"Idempotency-Key": key or f"k{next(self.numbers)}"}
        )

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}


@pytest.fixture
def caller(gate: Gate) -> Caller:
    """The tests' agent with a fresh key."""
    return Caller(keys.issue_key(agent=gate.agent, by=gate.owen), itertools.count())


@pytest.fixture
def receiver(networks: Callable[..., None]) -> Iterator[service.Service]:
    """A real server on loopback that letters may reach."""
    networks("127.0.0.1/32")
    with service.running() as running:
        yield running
