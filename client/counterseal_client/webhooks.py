"""Verify a webhook of Counterseal: Standard Webhooks, with the standard library alone.

    from counterseal_client import webhooks

    event = webhooks.verify(request.headers, request.body, secret)

Pass the body as the bytes that arrived. A body that was parsed and serialized again has
another signature.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import CountersealError

PREFIX = "whsec_"
TOLERANCE = 5 * 60.0
"""Seconds that two clocks may differ. An older event is refused as a replay."""


class NotVerified(CountersealError):
    """This is not a current webhook of Counterseal. Do not act on it."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `id` is the same for every delivery attempt: store it with your work.
    `outcome` is the id to acknowledge, empty while there is nothing to act on."""

    id: str
    type: str
    timestamp: str
    outcome: str
    proposal: str
    thread: str
    status: str
    data: dict[str, Any]


def verify(
    headers: Mapping[str, str], body: bytes, secret: str, *, now: float | None = None
) -> Event:
    """Return the event of a body with a valid signature and time. Raises NotVerified.

    `headers` may have names of any case. `now`, in seconds since 1970, is for tests.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        message, at = given["webhook-id"], given["webhook-timestamp"]
        signatures = given["webhook-signature"]
    except KeyError as missing:
        raise NotVerified(f"the header {missing} is missing") from None
    _check_time(at, time.time() if now is None else now)
    expected = _signature(_key(secret), message, at, body)
    if not any(_same(expected, one) for one in signatures.split(" ")):
        raise NotVerified("no signature matches")
    return _event(message, body)


def _check_time(at: str, now: float) -> None:
    if not (at.isascii() and at.isdecimal()) or len(at) > 12:
        raise NotVerified("the timestamp is invalid")
    if abs(now - int(at)) > TOLERANCE:
        raise NotVerified("the event is too old or from the future")


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise NotVerified("the secret must be whsec_ and base64")
    return key


def _signature(key: bytes, message: str, at: str, body: bytes) -> bytes:
    signed = b".".join((message.encode(), at.encode(), body))
    return hmac.digest(key, signed, hashlib.sha256)


def _same(expected: bytes, given: str) -> bool:
    """Only signatures of version `v1` can be checked."""
    version, _, text = given.partition(",")
    if version != "v1":
        return False
    try:
        return hmac.compare_digest(expected, base64.b64decode(text, validate=True))
    except ValueError:
        return False


def _event(message: str, body: bytes) -> Event:
    try:
        said = json.loads(body)
        data = said["data"]
        return Event(
            id=message,
            type=said["type"],
            timestamp=said["timestamp"],
            outcome=data["outcome"] or "",
            proposal=data["proposal"],
            thread=data["thread"],
            status=data["status"],
            data=data,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise NotVerified(
            "the body is signed, but is not an event of Counterseal"
        ) from error
