"""What every executor takes and gives, and what a result may look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from journal import canonical
from journal.errors import InvalidJson

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
