"""How an authorised effect is performed, and how an unclear one is looked up.

One module a kind. Nothing here decides whether an effect may run, holds a transaction
or tries again. A tool of kind `agent` is redeemed by its agent: nothing to perform.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog
from django.conf import settings

from policies.documents import ToolDefinition
from reviews.outbound import webhooks
from reviews.tool_services.executors import (
    Call,
    KnownFailure,
    Outcome,
    failed,
    said,
    unknown,
)

from . import callable as in_process
from . import webhook

__all__ = ["Call", "KnownFailure", "Outcome", "look_up", "perform", "unknown"]

log = structlog.get_logger(__name__)
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
        return in_process.perform(executor.path, call)
    if executor.kind == "webhook":
        limit = settings.HOLDPOINT.http_timeout if timeout is None else timeout
        return webhook.perform(executor.url, call, limit)
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
        return webhook.look_up(source.url, call)
    return in_process.look_up(source.path or "", call)
