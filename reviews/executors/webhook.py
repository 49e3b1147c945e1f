"""Effects by a signed request to the tool's own service.

Nothing sent, or a 200 that says `failed`, is known; everything else that is not a 200
saying `succeeded` may have happened: time-out, reset, any other status, a body that
cannot be read or is too long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from reviews.outbound import webhooks
from reviews.tool_services.executors import Call, Outcome, said, unknown

# A service may answer more than is kept: the effect's status is read all the same.
ANSWER_LIMIT = 1024 * 1024


def perform(url: str, call: Call, timeout: float) -> Outcome:
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


def look_up(url: str, call: Call) -> Mapping[str, Any]:
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
