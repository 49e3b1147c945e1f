"""Checking a letter from the gate: Standard Webhooks, with the standard library alone.

    from holdpoint_client import webhooks

    event = webhooks.verify(request.headers, request.body, secret)

Give the body as the bytes that came: what was parsed and written again is another text.
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

from .errors import HoldpointError

PREFIX = "whsec_"
TOLERANCE = 5 * 60.0
"""Seconds that two clocks may be apart; an older letter is a replay."""


class NotVerified(HoldpointError):
    """This is no letter of the gate's, or not one of now. Do not act on it."""


@dataclass(frozen=True, slots=True)
class Event:
    """One letter. `id` is the same at every try: keep it with what you did about it.
    `outcome` is what to acknowledge, empty where there is nothing to act upon."""

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
    """The event in a body whose signature and time are right. Raises NotVerified.

    `now` is in seconds since 1970 and for tests; `headers` may have names of any case.
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
        raise NotVerified("no signature fits")
    return _event(message, body)


def _check_time(at: str, now: float) -> None:
    if not (at.isascii() and at.isdecimal()) or len(at) > 12:
        raise NotVerified("the timestamp is no time")
    if abs(now - int(at)) > TOLERANCE:
        raise NotVerified("the letter is too old or from the future")


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
    """Only the version `v1` is a signature that we can check."""
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
        raise NotVerified("the letter is signed, and no event of ours") from error
