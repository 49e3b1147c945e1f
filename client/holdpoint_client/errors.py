"""The exceptions of the client."""

from __future__ import annotations

from typing import Any

import httpx2

from .models import FieldError


class HoldpointError(Exception):
    """Base of the exceptions that this client raises."""


class Unreachable(HoldpointError):
    """No usable response arrived after all retries.

    Holdpoint may have stored the proposal: propose it again with the same idempotency
    key to get the stored response.
    """


class ApiError(HoldpointError):
    """Holdpoint refused the call, with problem details (RFC 9457).

    `code` is for programs, `detail` for people, `errors` lists the invalid fields,
    `retry_after` is the number of seconds to wait.
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
        """Build the error of a response, even if its body is not problem details."""
        problem = _problem(response)
        return cls(
            response.status_code,
            str(problem.get("code") or "server"),
            str(problem.get("detail") or response.reason_phrase),
            errors=_field_errors(problem.get("errors")),
            retry_after=_seconds(response.headers.get("retry-after")),
        )


def _problem(response: httpx2.Response) -> dict[str, Any]:
    """The members of the problem; none for a page, which a proxy may return."""
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
    """Retry-After in seconds. Holdpoint never sends a date."""
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None
