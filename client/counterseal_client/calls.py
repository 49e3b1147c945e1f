"""The core of the client: what is sent, how an answer is read, what is sent again.

Nothing here opens a connection or waits. An operation is a generator, a *flow*: it
yields an HttpCall, a Pause or an Effect, and gets an HttpAnswer or a result back.
`Gate` runs flows with blocking calls and `AsyncGate` with awaited ones, so both behave
alike.

Retries are safe because Counterseal answers a repeated call from the stored result: a
proposal and a redeem by their idempotency key, an outcome by its fence.
"""

from __future__ import annotations

import json
import math
import random
import sys
import uuid
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from .errors import ApiError, CountersealError, Unreachable, parse_problem

CONNECT_SECONDS = 10.0
READ_SECONDS = 15.0
UPLOAD_SECONDS = 60.0
"""A file is drawn before the gate answers."""
LONGEST_HOLD = 60.0
"""The most seconds for which Counterseal holds one call."""
RETRIED_CONFLICTS = frozenset({"in_progress", "conflict"})


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One request. `read_seconds` is how long to wait for its answer."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = None
    read_seconds: float = READ_SECONDS


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One response. `headers` have lower-case names."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Effect:
    """Run a tool's function now, with the approved arguments. `claim` is what
    `get_claim` returns inside it."""

    arguments: Mapping[str, Any]
    claim: Any


Step = HttpCall | Pause | Effect
Value = TypeVar("Value")
Flow = Generator[Step, Any, Value]


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

    def compute_delay(self, attempt: int, asked: float | None) -> float:
        """The wait after the given attempt, counted from 1. `asked` is a Retry-After,
        if there was one."""
        if asked is not None:
            return asked
        doubled = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return doubled * (1 - random.random() / 4)  # noqa: S311 - spread, no secret


def read_trace_headers() -> dict[str, str]:
    """The `traceparent` (W3C Trace Context) of the current OpenTelemetry span; empty
    outside a span, and in a program that does not use OpenTelemetry."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return {}
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return {}
    ids = f"{span.trace_id:032x}-{span.span_id:016x}"
    return {"traceparent": f"00-{ids}-{span.trace_flags:02x}"}


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the gate is, who calls it, and how patiently."""

    url: str
    key: str = field(repr=False)
    backoff: Backoff = field(default_factory=Backoff)

    def build_call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        idempotency_key: str = "",
        hold: float = 0.0,
    ) -> HttpCall:
        """A call of the API. `hold` is for how many seconds Counterseal may keep it
        until there is news. Raises ValueError for a body that is not strict JSON."""
        headers = {"Authorization": f"Bearer {self.key}", **read_trace_headers()}
        content = None if body is None else encode_body(body)
        if content is not None:
            headers["Content-Type"] = "application/json"
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        seconds = math.ceil(min(hold, LONGEST_HOLD))
        parameters = {**(query or {}), **({"wait": str(seconds)} if hold > 0 else {})}
        return HttpCall(
            method=method,
            url=f"{self.url.rstrip('/')}/api/v1{path}" + build_query(parameters),
            headers=headers,
            content=content,
            read_seconds=READ_SECONDS + max(0, seconds),
        )

    def build_upload(self, path: str, body: bytes, media_type: str) -> HttpCall:
        """A call whose body is a file."""
        call = self.build_call("POST", path)
        headers = {**call.headers, "Content-Type": media_type}
        return replace(call, headers=headers, content=body, read_seconds=UPLOAD_SECONDS)

    def build_public_call(self, path: str) -> HttpCall:
        """A GET of an address that needs no key, such as that of the public keys."""
        return HttpCall("GET", f"{self.url.rstrip('/')}{path}", headers={})

    def send_call(self, call: HttpCall) -> Flow[Any]:
        """The decoded answer, after as many attempts as it takes.

        Raises ApiError for a refusal, Unreachable when no usable answer came.
        """
        attempt = 1
        while True:
            try:
                return decode_answer(call, (yield call))
            except CountersealError as error:
                yield Pause(self._choose_delay(attempt, error))
            attempt += 1

    def _choose_delay(self, attempt: int, error: CountersealError) -> float:
        """The pause before the next attempt. Raises the error when there is none."""
        if isinstance(error, ApiError) and not is_retryable(error):
            raise error
        asked = error.retry_after if isinstance(error, ApiError) else None
        delay = self.backoff.compute_delay(attempt, asked)
        if attempt >= self.backoff.attempts or delay > self.backoff.patience:
            raise error
        return delay


def is_retryable(error: ApiError) -> bool:
    """Whether the same call may succeed a moment later."""
    if error.status == HTTPStatus.CONFLICT:
        return error.code in RETRIED_CONFLICTS
    return error.status == HTTPStatus.TOO_MANY_REQUESTS or error.status >= 500


def decode_answer(call: HttpCall, answer: HttpAnswer) -> Any:
    """The answer's JSON, None for an empty one. Raises ApiError, and Unreachable for a
    success that is not JSON: a proxy answered."""
    if not 200 <= answer.status < 300:
        raise build_api_error(answer)
    try:
        return json.loads(answer.content) if answer.content else None
    except ValueError as error:
        raise Unreachable(f"{call.url}: the response is not JSON") from error


def build_api_error(answer: HttpAnswer) -> ApiError:
    """The error of a response, even if its body is not problem details."""
    try:
        problem = parse_problem(json.loads(answer.content))
    except ValueError:
        problem = parse_problem(None)
    return ApiError(
        answer.status,
        problem.code,
        problem.detail or _find_phrase(answer.status),
        errors=problem.errors,
        retry_after=_parse_seconds(answer.headers.get("retry-after")),
        facts=problem.facts,
    )


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Encode strict JSON. Raises ValueError for NaN and lone surrogates."""
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def build_query(parameters: Mapping[str, str]) -> str:
    """The query with its question mark; empty parameters are left out."""
    given = {name: value for name, value in parameters.items() if value}
    return f"?{urlencode(given)}" if given else ""


def quote_path(*parts: str) -> str:
    """A path of the API from its parts, each quoted."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


def choose_key(given: str) -> str:
    """The idempotency key of one call, the same however often the call is sent."""
    return given or str(uuid.uuid4())


def _find_phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no detail"


def _parse_seconds(header: str | None) -> float | None:
    """Retry-After in seconds. Counterseal never sends a date."""
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None
