"""Executors: perform an authorised effect, and look up an unclear one. Nothing here
decides whether an effect may run, holds a transaction or retries. A tool of kind
`agent` has nothing to perform: its agent redeems the grant.

A callable is a Python function that the policy names as `module.function`. It takes a
`Call` and returns a JSON object or None. It must bound its own waiting: a function
cannot be interrupted safely, and the worker's time limits are the last resort.

A webhook is a signed request to the tool's own service. The effect certainly did not
happen when nothing was sent, or when a 200 says `failed`. Except for a 200 that says
`succeeded`, everything else is unknown: a time-out, a reset, another status, a body
that is unreadable or too long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import structlog
from django.conf import settings

from journal import canonical
from journal.errors import InvalidJson
from policies.callables import CallableNotListed, load_function
from policies.documents import ToolDefinition
from reviews.outbound import webhooks
from reviews.outbound.trace_context import build_trace_headers

# The largest stored result, in canonical bytes.
RESULT_LIMIT = 64 * 1024
NEITHER = "the answer says neither succeeded nor failed"

# The codes with which a service that verifies grants refuses one (docs/grants.md).
GRANT_REFUSAL_CODES = frozenset(
    f"grant_{why}"
    for why in (
        *("malformed", "unknown_key", "forged", "wrong_issuer", "wrong_audience"),
        *("not_yet", "expired", "not_redeemed", "other_tool", "other_action"),
    )
)

OutcomeStatus = Literal["succeeded", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt at one effect. Every attempt has the same idempotency key and its own
    fence."""

    tool: str
    tool_version: int
    args: Mapping[str, Any]
    execution: str
    idempotency_key: str
    fence: int
    # The agent's preconditions, part of the action hash.
    preconditions: Mapping[str, Any] = field(default_factory=dict)
    grant: str = ""  # the signed token, which the service can verify by itself
    agent: str = ""
    thread: str = ""  # the agent's run, part of the action hash
    traceparent: str = ""  # W3C Trace Context: the agent's span that caused it


@dataclass(frozen=True, slots=True)
class EffectOutcome:
    """What is known after an attempt or a look-up. `failed` means that there was
    certainly no effect. With `this_attempt_only` this holds only for this attempt: its
    request was never sent, but an earlier one may have been, so after an ambiguous
    attempt the outcome is still unknown."""

    status: OutcomeStatus
    result: dict[str, Any] | None = None
    code: str = ""
    detail: str = ""
    this_attempt_only: bool = False
    # The service itself allows another attempt.
    again: bool = False
    # The outcome comes from a look-up, not from an attempt.
    looked_up: bool = False
    # How many effects the service counts under the idempotency key, if it says so.
    effects: int | None = None

    @property
    def leaves_earlier_open(self) -> bool:
        """Whether the outcome says nothing about earlier attempts: the request was
        never sent, or the service refused this grant but may have accepted an earlier
        one."""
        refused = self.status == "failed" and self.code in GRANT_REFUSAL_CODES
        return self.this_attempt_only or refused


class KnownFailure(Exception):
    """Raised by a callable to say that nothing happened and why. `again` allows another
    attempt later."""

    def __init__(self, code: str, detail: str = "", *, again: bool = False) -> None:
        self.code = code
        self.detail = detail
        self.again = again
        super().__init__(detail or code)


def build_success(result: Any) -> EffectOutcome:
    """Build the outcome of an effect that happened, with any result. A result over 64
    KiB becomes `{"truncated": true, "bytes": n}`, one that is not JSON `{"unreadable":
    true}`: an error would hide an effect that did happen."""
    if result is not None and not isinstance(result, Mapping):
        result = {"value": result}
    return EffectOutcome("succeeded", _limit_result(result))


def build_failure(code: Any, detail: Any, *, again: bool = False) -> EffectOutcome:
    """Build the outcome for certainly no effect. Both texts may be foreign; they are
    cut to the column's length."""
    code, detail = _clean_code(code, "failed"), _clean_detail(detail)
    return EffectOutcome("failed", code=code, detail=detail, again=again)


def build_unknown(code: Any, detail: Any) -> EffectOutcome:
    """Build the outcome of an effect that may have happened."""
    return EffectOutcome(
        "unknown", code=_clean_code(code, "ambiguous"), detail=_clean_detail(detail)
    )


def parse_answer(answer: Mapping[str, Any]) -> EffectOutcome:
    """Parse a service's answer: `{"status": "succeeded", "result": {...}}` or
    `{"status": "failed", "error": {"code", "detail", "retry"}}`; any other is unknown.
    `count` beside `succeeded` may give the number of effects under the idempotency key.
    Only `retry: true` allows another attempt without a person."""
    status = answer.get("status")
    if status == "succeeded":
        success = build_success(answer.get("result"))
        return replace(success, effects=_parse_count(answer.get("count")))
    if status == "failed":
        error = answer.get("error")
        error = error if isinstance(error, Mapping) else {}
        again = error.get("retry") is True
        return build_failure(error.get("code"), error.get("detail"), again=again)
    return build_unknown("ambiguous", NEITHER)


def _limit_result(result: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if result is None:
        return None
    try:
        raw = canonical.encode(dict(result))
        if len(raw) > RESULT_LIMIT:
            return {"truncated": True, "bytes": len(raw)}
        canonical.parse(raw)  # the parser accepts less than the encoder writes
    except (ValueError, TypeError, RecursionError, InvalidJson):
        return {"unreadable": True}
    return dict(result)


def _parse_count(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**31 else None


def _clean_code(value: Any, default: str) -> str:
    return (
        _to_storable_text(value)[:64] if isinstance(value, str) and value else default
    )


def _clean_detail(value: Any) -> str:
    return _to_storable_text(value)[:2000] if isinstance(value, str) else ""


def _to_storable_text(text: str) -> str:
    """Replace what a text column cannot store: NUL and lone surrogates."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return whole.replace("\0", "\ufffd")


log = structlog.get_logger(__name__)


def perform_callable(path: str, call: Call) -> EffectOutcome:
    """Call the function once. Only `KnownFailure`, or that the function cannot be
    loaded here, means that nothing happened; any other exception is unknown."""
    try:
        function = load_function(path)
    except CallableNotListed as error:
        return _build_not_begun("callable_not_listed", str(error))
    except Exception as error:
        return _build_not_begun("no_such_callable", f"{path}: {type(error).__name__}")
    try:
        return build_success(function(call))
    except KnownFailure as failure:
        return build_failure(failure.code, failure.detail, again=failure.again)
    except Exception as error:
        # The function had begun, so the effect may have happened. The error's text may
        # quote the arguments, so neither the log nor the row repeats it.
        name = type(error).__name__
        log.error("callable_raised", path=path, execution=call.execution, error=name)
        return build_unknown("callable_raised", name)


def _build_not_begun(code: str, detail: str) -> EffectOutcome:
    # Another host, or this one before a change of its code, may have begun it.
    return replace(build_failure(code, detail), this_attempt_only=True)


# Larger than RESULT_LIMIT: the status of a long answer must still be read.
ANSWER_LIMIT = 1024 * 1024


def perform_webhook(url: str, call: Call, timeout: float) -> EffectOutcome:
    """Send the request for the effect once. `timeout` is in seconds."""
    try:
        answer = _post_call(url, call, timeout)
    except webhooks.NotAllowed as error:
        return EffectOutcome("failed", None, "address_refused", str(error), True)
    except webhooks.NotSent as error:
        return EffectOutcome("failed", None, "not_sent", str(error), True)
    except webhooks.NoUsableAnswer as error:
        return build_unknown("ambiguous", str(error))
    return parse_answer(answer)


def look_up_webhook(url: str, call: Call) -> Mapping[str, Any]:
    """Ask the service about the idempotency key. Raises NotSent, NoUsableAnswer."""
    payload = {
        "tool": call.tool,
        "idempotency_key": call.idempotency_key,
        "agent": call.agent,
        "thread": call.thread,
    }
    reply = webhooks.post_signed_json(
        url,
        payload,
        timeout=settings.COUNTERSEAL.http_timeout,
        headers=build_trace_headers(call.traceparent, call.execution),
        limit=ANSWER_LIMIT,
    )
    return reply.document()


def _post_call(url: str, call: Call, timeout: float) -> dict[str, Any]:
    payload = {
        "tool": call.tool,
        "tool_version": call.tool_version,
        "args": dict(call.args),
        "execution": call.execution,
        "idempotency_key": call.idempotency_key,
        "fence": call.fence,
        "agent": call.agent,
        "thread": call.thread,
        "preconditions": dict(call.preconditions),
        "grant": call.grant,
    }
    reply = webhooks.post_signed_json(
        url,
        payload,
        timeout=timeout,
        headers={
            "Idempotency-Key": call.idempotency_key,
            **build_trace_headers(call.traceparent, call.execution),
        },
        message=call.execution,
        limit=ANSWER_LIMIT,
    )
    return reply.document()


__all__ = [
    "Call",
    "EffectOutcome",
    "KnownFailure",
    "build_unknown",
    "look_up_effect",
    "perform_effect",
]

NOT_FOUND = "not_found"


def perform_effect(
    definition: ToolDefinition, call: Call, *, timeout: float | None = None
) -> EffectOutcome:
    """Ask for the effect once, and return what is known of it. `timeout` is in seconds
    and holds for a webhook; the default is the deployment's `http_timeout`. A function
    bounds itself. Raises `ValueError` for a tool whose agent performs the effect
    itself. Caller holds no transaction, and, unless the tool only reads, the claim with
    its fence."""
    executor = definition.executor
    if executor.kind == "callable":
        return perform_callable(executor.path, call)
    if executor.kind == "webhook":
        limit = settings.COUNTERSEAL.http_timeout if timeout is None else timeout
        return perform_webhook(executor.url, call, limit)
    raise ValueError(f"{call.tool} is performed by its agent")


def look_up_effect(definition: ToolDefinition, call: Call) -> EffectOutcome:
    """Ask the tool's service about an earlier attempt by its idempotency key. Never
    raises. `failed` with code `not_found` means that the service never saw the key.
    Without a clear answer, or when the service cannot be asked, the outcome is
    `unknown`."""
    try:
        answer = _fetch_answer(definition, call)
    except (webhooks.NotSent, webhooks.NoUsableAnswer) as error:
        return build_unknown("look_up_failed", str(error))
    except Exception as error:
        name = type(error).__name__
        log.error(
            "look_up_raised", tool=call.tool, execution=call.execution, error=name
        )
        return build_unknown("look_up_failed", name)
    if answer.get("status") == "not_found":
        return build_failure(NOT_FOUND, "the service never saw this key")
    outcome = replace(parse_answer(answer), looked_up=True)
    # A service's own error code "not_found" is a known failure, not an unknown key.
    return replace(outcome, code="failed") if outcome.code == NOT_FOUND else outcome


def _fetch_answer(definition: ToolDefinition, call: Call) -> Mapping[str, Any]:
    source = definition.look_up
    if source is None:
        raise LookupError("the tool declares no look-up")
    if source.url:
        return look_up_webhook(source.url, call)
    answer = load_function(source.path or "")(call)
    if not isinstance(answer, Mapping):
        raise TypeError(f"{source.path} did not return a mapping")
    return answer
