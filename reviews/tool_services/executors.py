"""What every executor takes and gives, and what a result may look like.

How an authorised effect is performed, and how an unclear one is looked up.

One module a kind. Nothing here decides whether an effect may run, holds a transaction
or tries again. A tool of kind `agent` is redeemed by its agent: nothing to perform.

Effects in this process: a Python function named by the policy as `module.function`.

It takes a `Call` and returns a JSON object or None. It bounds its own waiting: a
function cannot be interrupted safely, the worker's time limits are the last resort.

Effects by a signed request to the tool's own service.

Nothing sent, or a 200 that says `failed`, is known; everything else that is not a 200
saying `succeeded` may have happened: time-out, reset, any other status, a body that
cannot be read or is too long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import structlog
from django.conf import settings

from journal import canonical
from journal.errors import InvalidJson
from policies.documents import ToolDefinition
from reviews.outbound import webhooks
from reviews.outbound.callables import NotListed, load

# The most a stored result may be, as canonical bytes (gate.md 7).
RESULT_LIMIT = 64 * 1024

# What a service that verifies grants says of one that it does not take
# (docs/grants.md).
GRANT_REFUSED = frozenset(
    f"grant_{why}"
    for why in (
        *("malformed", "unknown_key", "forged", "wrong_issuer", "wrong_audience"),
        *("not_yet", "expired", "not_redeemed", "other_tool", "other_action"),
    )
)

Status = Literal["succeeded", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt at one effect. The idempotency key is the same for every attempt,
    the fence is another for each."""

    tool: str
    tool_version: int
    args: Mapping[str, Any]
    execution: str
    idempotency_key: str
    fence: int
    # What the agent said must hold: with the rest, what the action's hash is over.
    preconditions: Mapping[str, Any] = field(default_factory=dict)
    grant: str = ""  # signed, so that a service can verify it by itself
    agent: str = ""
    thread: str = ""  # the agent's run, which with the rest the action's hash is over


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known after an attempt or a look-up.

    `failed` means known: no effect. With `this_attempt_only` that knowledge does not
    cover earlier attempts: the request never left, but an earlier one may have, so
    after an ambiguous attempt it is worth no more than `unknown`.
    """

    status: Status
    result: dict[str, Any] | None = None
    code: str = ""
    detail: str = ""
    this_attempt_only: bool = False
    # The service says itself that it may be asked once more.
    again: bool = False
    # It was found by a look-up: nothing was performed for this answer.
    looked_up: bool = False
    # How many effects the service counts under our reference, where it says so.
    effects: int | None = None

    @property
    def leaves_earlier_open(self) -> bool:
        """Whether it is about this attempt alone: the request never left, or its grant
        was not taken, by a service that may have taken an earlier one."""
        refused = self.status == "failed" and self.code in GRANT_REFUSED
        return self.this_attempt_only or refused


class KnownFailure(Exception):
    """Raised by a callable to say that nothing happened, why, and whether it may go
    well at another time."""

    def __init__(self, code: str, detail: str = "", *, again: bool = False) -> None:
        self.code = code
        self.detail = detail
        self.again = again
        super().__init__(detail or code)


def succeeded(result: Any) -> Outcome:
    """The effect happened, whatever its result looks like.

    A result over 64 KiB becomes `{"truncated": true, "bytes": n}` and one that is not
    JSON `{"unreadable": true}`: refusing it would deny an effect that is there.
    """
    if result is not None and not isinstance(result, Mapping):
        result = {"value": result}
    return Outcome("succeeded", _kept(result))


def failed(code: Any, detail: Any, *, again: bool = False) -> Outcome:
    """Known: no effect. Both texts may be foreign and are cut to what a row takes."""
    code, detail = _code(code, "failed"), _detail(detail)
    return Outcome("failed", code=code, detail=detail, again=again)


def unknown(code: Any, detail: Any) -> Outcome:
    """It may have happened."""
    return Outcome("unknown", code=_code(code, "ambiguous"), detail=_detail(detail))


def said(answer: Mapping[str, Any]) -> Outcome:
    """What a service's own words say: `{"status": "succeeded", "result": {...}}`,
    `{"status": "failed", "error": {"code", "detail", "retry"}}`, or nothing that is
    known. `count` may say how many effects there are under our key. `retry: true` is
    the only word that lets it be tried again by itself."""
    status = answer.get("status")
    if status == "succeeded":
        found = succeeded(answer.get("result"))
        return replace(found, effects=_count(answer.get("count")))
    if status == "failed":
        error = answer.get("error")
        error = error if isinstance(error, Mapping) else {}
        again = error.get("retry") is True
        return failed(error.get("code"), error.get("detail"), again=again)
    return unknown("ambiguous", "the answer says neither succeeded nor failed")


def _kept(result: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if result is None:
        return None
    try:
        raw = canonical.encode(dict(result))
        if len(raw) > RESULT_LIMIT:
            return {"truncated": True, "bytes": len(raw)}
        canonical.parse(raw)  # as it is read back, which takes less than is written
    except (ValueError, TypeError, RecursionError, InvalidJson):
        return {"unreadable": True}
    return dict(result)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**31 else None


def _code(value: Any, default: str) -> str:
    return _storable(value)[:64] if isinstance(value, str) and value else default


def _detail(value: Any) -> str:
    return _storable(value)[:2000] if isinstance(value, str) else ""


def _storable(text: str) -> str:
    """A column holds neither NUL nor half a character."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return whole.replace("\0", "\ufffd")


log = structlog.get_logger(__name__)


def perform_callable(path: str, call: Call) -> Outcome:
    """Run it once. Only `KnownFailure`, or no such function here and now, says nothing
    happened."""
    try:
        function = load(path)
    except NotListed as error:
        return _not_begun("callable_not_listed", str(error))
    except Exception as error:
        return _not_begun("no_such_callable", f"{path}: {type(error).__name__}")
    try:
        return succeeded(function(call))
    except KnownFailure as failure:
        return failed(failure.code, failure.detail, again=failure.again)
    except Exception as error:
        # Whatever went wrong, it went wrong after the function had begun.
        # Its text may quote the arguments, so neither the log nor the row repeats it.
        name = type(error).__name__
        log.error("callable_raised", path=path, execution=call.execution, error=name)
        return unknown("callable_raised", name)


def _not_begun(code: str, detail: str) -> Outcome:
    # Another host, or this one before it was changed, may have begun it.
    return replace(failed(code, detail), this_attempt_only=True)


def look_up_callable(path: str, call: Call) -> Mapping[str, Any]:
    """What the function says of an earlier attempt: `{"status", "result"}`."""
    answer = load(path)(call)
    if not isinstance(answer, Mapping):
        raise TypeError(f"{path} did not return a mapping")
    return answer


# A service may answer more than is kept: the effect's status is read all the same.
ANSWER_LIMIT = 1024 * 1024


def perform_webhook(url: str, call: Call, timeout: float) -> Outcome:
    """Ask the service for the effect, once. `timeout` is in seconds."""
    try:
        answer = _ask(url, call, timeout)
    except webhooks.NotAllowed as error:
        return Outcome("failed", None, "address_refused", str(error), True)
    except webhooks.NotSent as error:
        return Outcome("failed", None, "not_sent", str(error), True)
    except webhooks.Ambiguous as error:
        return unknown("ambiguous", str(error))
    return said(answer)


def look_up_webhook(url: str, call: Call) -> Mapping[str, Any]:
    """What the service says of our key. Raises `NotSent` and `Ambiguous`."""
    payload = {
        "tool": call.tool,
        "idempotency_key": call.idempotency_key,
        "agent": call.agent,
        "thread": call.thread,
    }
    timeout = settings.HOLDPOINT.http_timeout
    reply = webhooks.post(url, payload, timeout=timeout, limit=ANSWER_LIMIT)
    return reply.document()


def _ask(url: str, call: Call, timeout: float) -> dict[str, Any]:
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
    reply = webhooks.post(
        url,
        payload,
        timeout=timeout,
        headers={"Idempotency-Key": call.idempotency_key},
        message=call.execution,
        limit=ANSWER_LIMIT,
    )
    return reply.document()


__all__ = ["Call", "KnownFailure", "Outcome", "look_up", "perform", "unknown"]

NOT_FOUND = "not_found"


def perform(
    definition: ToolDefinition, call: Call, *, timeout: float | None = None
) -> Outcome:
    """Ask for the effect once, and say what is known of it.

    `timeout` is in seconds, for a webhook; the deployment's without. A function bounds
    itself. Raises `ValueError` for a tool whose agent performs the effect itself.
    Caller holds no transaction, and the claim and its fence unless the tool only reads.
    """
    executor = definition.executor
    if executor.kind == "callable":
        return perform_callable(executor.path, call)
    if executor.kind == "webhook":
        limit = settings.HOLDPOINT.http_timeout if timeout is None else timeout
        return perform_webhook(executor.url, call, limit)
    raise ValueError(f"{call.tool} is performed by its agent")


def look_up(definition: ToolDefinition, call: Call) -> Outcome:
    """Ask what became of an earlier attempt, by our idempotency key. Never raises.

    `failed` with code `not_found` means that the service never saw the key. Anything
    that is not a clear answer, not being able to ask included, is `unknown`.
    """
    try:
        answer = _answer(definition, call)
    except (webhooks.NotSent, webhooks.Ambiguous) as error:
        return unknown("look_up_failed", str(error))
    except Exception as error:
        name = type(error).__name__
        log.error(
            "look_up_raised", tool=call.tool, execution=call.execution, error=name
        )
        return unknown("look_up_failed", name)
    if answer.get("status") == "not_found":
        return failed(NOT_FOUND, "the service never saw this key")
    found = replace(said(answer), looked_up=True)
    # What a service itself calls so is a failure that it knows of.
    return replace(found, code="failed") if found.code == NOT_FOUND else found


def _answer(definition: ToolDefinition, call: Call) -> Mapping[str, Any]:
    source = definition.look_up
    if source is None:
        raise LookupError("the tool declares no look-up")
    if source.url:
        return look_up_webhook(source.url, call)
    return look_up_callable(source.path or "", call)
