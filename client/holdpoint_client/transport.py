"""One call to Holdpoint, retried until it succeeds or patience ends.

Retries are safe because Holdpoint answers a repeated call from the stored result: a
proposal and a redeem by their idempotency key, an outcome by its fence.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from .errors import ApiError, HoldpointError, Unreachable

RETRIED_CONFLICTS = frozenset({"in_progress", "conflict"})


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often and how long to retry; all times in seconds.

    The waits double from `first` to `longest`, less a random part of up to a quarter,
    so that many agents do not return together. A Retry-After is obeyed exactly, unless
    it is longer than `patience`: then the refusal is raised at once.
    """

    attempts: int = 7
    first: float = 0.25
    longest: float = 15.0
    patience: float = 90.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def delay(self, attempt: int, asked: float | None) -> float:
        """The wait after the given attempt, counted from 1."""
        if asked is not None:
            return asked
        doubled = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return doubled * (1 - random.random() / 4)  # noqa: S311 - spread, no secret


def retryable(error: ApiError) -> bool:
    """Whether the same call may succeed a moment later."""
    if error.status == httpx2.codes.CONFLICT:
        return error.code in RETRIED_CONFLICTS
    return error.status == httpx2.codes.TOO_MANY_REQUESTS or error.status >= 500


class Transport:
    """Sends JSON with the agent's key; turns refusals into exceptions."""

    def __init__(
        self, http: httpx2.Client, base_url: str, key: str, *, backoff: Backoff
    ) -> None:
        self._http = http
        self._root = base_url.rstrip("/") + "/api/v1"
        self._headers = {"Authorization": f"Bearer {key}"}
        self._backoff = backoff

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        patience: float = 0.0,
    ) -> Any:
        """The decoded answer. `patience`: seconds the gate itself may hold the call.

        Raises ApiError for a refusal, Unreachable when no answer came.
        """
        request = self._http.build_request(
            method,
            self._root + path,
            content=None if body is None else encode(body),
            params=dict(params or {}),
            headers={**self._headers, **_content(body), **(headers or {})},
            timeout=httpx2.Timeout(10.0, read=patience + 15.0),
        )
        return self._answer(request)

    def _answer(self, request: httpx2.Request) -> Any:
        attempt = 1
        while True:
            try:
                return self._once(request)
            except HoldpointError as error:
                self._pause(attempt, error)
            attempt += 1

    def _once(self, request: httpx2.Request) -> Any:
        try:
            response = self._http.send(request)
        except httpx2.TransportError as error:
            raise Unreachable(f"{request.method} {request.url}: {error}") from error
        if not response.is_success:
            raise ApiError.of(response)
        return _decoded(response)

    def _pause(self, attempt: int, error: HoldpointError) -> None:
        """Wait before the next attempt, or raise when there should be none."""
        if isinstance(error, ApiError) and not retryable(error):
            raise error
        asked = error.retry_after if isinstance(error, ApiError) else None
        delay = self._backoff.delay(attempt, asked)
        if attempt >= self._backoff.attempts or delay > self._backoff.patience:
            raise error
        self._backoff.sleep(delay)


def encode(body: Mapping[str, Any]) -> bytes:
    """Encode strict JSON. The client itself refuses NaN and lone surrogates."""
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def _content(body: Mapping[str, Any] | None) -> dict[str, str]:
    return {} if body is None else {"Content-Type": "application/json"}


def _decoded(response: httpx2.Response) -> Any:
    try:
        return response.json() if response.content else None
    except ValueError as error:
        raise Unreachable(f"{response.url}: the response is not JSON") from error
