"""What goes wrong between the client and Counterseal. Each exception says what happened
and what to do next; `tool_errors` has those of a tool's call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NEXT_STEPS: Mapping[str, str] = {
    "bad_key": "Pass the key that `counterseal agents register` printed, or ask the"
    " agent's owner for a new one.",
    "tool_not_allowed": "Ask an administrator to run `counterseal agents change AGENT"
    " --by ADMINISTRATOR --add-tool TOOL`, and check that the key has the scope"
    " `propose`.",
    "agent_stopped": "Stop proposing. A person must lift the stop first.",
    "not_found": "Check the id, and that it was made with this agent's key.",
    "in_progress": "Send the same call again, with the same key.",
    "conflict": "Send the same call again, with the same key.",
    "grant_spent": "Do not perform the effect: another call has the claim. Read the"
    " proposal to see what became of it.",
    "stale_fence": "Do not repeat the effect. Read the proposal to see its state.",
    "grant_expired": "Propose the action again, as a new call.",
    "tool_changed": "Read the tool with `tools()` and propose the action again.",
    "precondition": "Read the current state, then propose the action again.",
    "invalid_args": "Correct the fields above and send the call again.",
    "invalid": "Correct the fields above and send the call again.",
    "key_reused": "Give another action another key. To repeat a call, send exactly the"
    " same arguments and details.",
    "key_missing": "Send an idempotency key.",
    "rationale": "Pass `rationale`: one or two sentences that say why.",
    "too_little_time": "Propose earlier, or with a longer `expires_in`.",
    "too_large": "Shorten the arguments, the evidence or the checkpoint.",
    "too_many": "Wait for `retry_after` seconds, then send the call again.",
    "restored": "Wait: two people must confirm the restore first.",
    "unavailable": "Send the same call again with the same key.",
    "server": "Send the same call again with the same key, or call `get`.",
}
"""What a caller does about each code of the API."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """An invalid field of the input, and why."""

    path: str
    message: str


class CountersealError(Exception):
    """Base of the exceptions that this client raises. `next_step` is one sentence."""

    def __init__(self, text: str, *, next_step: str = "") -> None:
        self.next_step = next_step
        super().__init__(f"{text} {next_step}" if next_step else text)


class Unreachable(CountersealError):
    """No usable response arrived after all retries.

    Counterseal may have stored the proposal: propose it again with the same idempotency
    key to get the stored response.
    """

    def __init__(self, text: str) -> None:
        step = "Send the call again with the same key: it may have been stored."
        super().__init__(f"{text}.", next_step=step)


class InvalidAnswer(CountersealError):
    """The response is JSON, but not what this client expects: the address may belong to
    another service, or to a release of Counterseal that this client does not know."""

    def __init__(self, expected: str, errors: Sequence[FieldError]) -> None:
        self.errors = tuple(errors)
        step = "Check the address of the gate and the release of this client."
        super().__init__(
            f"The answer is not a {expected}: {format_errors(self.errors)}.",
            next_step=step,
        )


class InvalidArguments(CountersealError, ValueError):
    """The arguments of a call do not fit the function. Nothing was proposed, or, after
    an edit by a reviewer, nothing was performed."""

    def __init__(self, tool: str, errors: Sequence[FieldError]) -> None:
        self.tool = tool
        self.errors = tuple(errors)
        super().__init__(
            f"The arguments of {tool} do not fit: {format_errors(self.errors)}.",
            next_step="Correct them and call the tool again.",
        )


class ApiError(CountersealError):
    """Counterseal refused the call, with problem details (RFC 9457).

    `code` is for programs, `detail` for people, `errors` lists the invalid fields,
    `retry_after` is the number of seconds to wait, `facts` are the problem's other
    members.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        retry_after: float | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.retry_after = retry_after
        self.facts = dict(facts or {})
        fields = f" ({format_errors(self.errors)})" if self.errors else ""
        step = NEXT_STEPS.get(code, "")
        super().__init__(f"{status} {code}: {detail}{fields}", next_step=step)


@dataclass(frozen=True, slots=True)
class ProblemDetails:
    """The body of a refusal (RFC 9457), as far as it can be read."""

    code: str = "server"
    detail: str = ""
    errors: tuple[FieldError, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


_KNOWN_MEMBERS = {"type", "title", "status", "code", "detail", "errors"}


def parse_problem(body: object) -> ProblemDetails:
    """Read problem details from decoded JSON; a page of a proxy has none."""
    if not isinstance(body, dict):
        return ProblemDetails()
    rows = body.get("errors")
    return ProblemDetails(
        code=str(body.get("code") or "server"),
        detail=str(body.get("detail") or ""),
        errors=tuple(
            FieldError(str(row.get("path", "")), str(row.get("message", "")))
            for row in (rows if isinstance(rows, list) else [])
            if isinstance(row, dict)
        ),
        facts={k: v for k, v in body.items() if k not in _KNOWN_MEMBERS},
    )


def format_errors(errors: Sequence[FieldError]) -> str:
    """All faults in one sentence part: `args.amount: must be a string; ...`."""
    return "; ".join(
        f"{error.path}: {error.message}" if error.path else error.message
        for error in errors
    )
