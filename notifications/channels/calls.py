"""Calls to the service behind a channel: one POST, and what its failures mean for the
next attempt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from django.conf import settings

from journal import clock
from reviews.outbound import webhooks
from reviews.outbound.webhooks import HttpReply

from .contract import DeliveryError


def call_service(
    title: str,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    foreign: bool = False,
) -> HttpReply:
    """POST to the service of the channel with this title; return its answer, unless it
    says to try again. `foreign` is as in `reviews.outbound.webhooks.post_body`.

    Raises DeliveryError for an address that is not allowed, without a complete answer,
    and for the statuses 429 and 5xx, with the time that Retry-After names. Caller holds
    no transaction.
    """
    try:
        reply = webhooks.post_body(
            url,
            body,
            headers,
            timeout=settings.COUNTERSEAL.http_timeout,
            foreign=foreign,
        )
    except webhooks.NotAllowed:
        text = f"{title}: this address is not allowed; nothing was sent"
        raise DeliveryError(text, final=True) from None
    except webhooks.NotSent:
        raise DeliveryError(f"{title}: no connection; nothing was sent") from None
    except webhooks.NoUsableAnswer:
        raise DeliveryError(f"{title}: sent, but no complete answer") from None
    rate_limited = reply.status == HTTPStatus.TOO_MANY_REQUESTS
    if rate_limited or reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        problem = "too many messages" if rate_limited else f"status {reply.status}"
        rest = parse_retry_after(reply.retry_after, clock.now())
        raise DeliveryError(f"{title}: {problem}", retry_after=rest)
    return reply


def parse_retry_after(text: str, now: datetime) -> timedelta | None:
    """Parse a Retry-After header, seconds or a date (RFC 9110 10.2.3); None without
    one."""
    text = text.strip()
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return timedelta(seconds=int(text))
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # overflow: a year out of range
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(until - now, timedelta())


def parse_object(reply: HttpReply) -> dict[str, Any]:
    """The JSON object in an answer; empty where there is none."""
    try:
        content = json.loads(reply.body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def is_success(reply: HttpReply) -> bool:
    """Whether the service answered 2xx."""
    return 200 <= reply.status < 300
