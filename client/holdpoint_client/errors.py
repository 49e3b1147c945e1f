"""What can go wrong on the way to the gate: one exception per kind of refusal."""

from __future__ import annotations

from typing import Any

import httpx2

from .models import FieldError


class HoldpointError(Exception):
    """Anything this client raises on purpose."""


class Unreachable(HoldpointError):
    """No usable answer came, after every retry.

    A proposal may have been stored all the same: ask again with the same
    idempotency key, and the gate answers with what it stored.
    """


class ApiError(HoldpointError):
    """The gate refused, as problem details (RFC 9457).

    `code` is the word to branch on, `detail` the sentence for people, `errors` the
    places of the input that were wrong, `retry_after` the seconds the gate asks for.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: tuple[FieldError, ...] = (),
        retry_after: float | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.retry_after = retry_after
        super().__init__(f"{status} {code}: {detail}")

    @classmethod
    def of(cls, response: httpx2.Response) -> ApiError:
        """Read a refusal; a body that is not problem details still gives an error."""
        problem = _problem(response)
        return cls(
            response.status_code,
            str(problem.get("code") or "server"),
            str(problem.get("detail") or response.reason_phrase),
            errors=_field_errors(problem.get("errors")),
            retry_after=_seconds(response.headers.get("retry-after")),
        )


def _problem(response: httpx2.Response) -> dict[str, Any]:
    """The members of the problem, or none: a proxy may answer with a page."""
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _field_errors(errors: Any) -> tuple[FieldError, ...]:
    if not isinstance(errors, list):
        return ()
    return tuple(FieldError.parse(e) for e in errors if isinstance(e, dict))


def _seconds(header: str | None) -> float | None:
    """Retry-After in seconds; the gate never sends the form with a date."""
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None
