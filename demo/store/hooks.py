"""What the gate calls: effects, look-ups and readers, each signed.

Standard Webhooks: the signature covers id, time and body, and is checked before a
byte of the body is read as JSON. A call that is not signed learns nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from . import calls, config, readers
from .effects import EFFECTS

View = Callable[[HttpRequest, str], HttpResponse]
Hook = Callable[[str, dict[str, Any]], HttpResponse]


class Unsigned(Exception):
    """The call does not carry the gate's signature."""


class Malformed(Exception):
    """The signed body lacks something; the text says what."""


def signed(hook: Hook) -> View:
    """A POST view whose hook sees only bodies that the gate signed for that tool."""

    @require_POST
    def view(request: HttpRequest, tool: str) -> HttpResponse:
        try:
            return hook(tool, _payload(request, tool))
        except Unsigned:
            return _problem(
                401, "bad_signature", "This call is not signed by the gate."
            )
        except Malformed as error:
            return _problem(400, "malformed", str(error))
        except calls.KeyReused:
            detail = "This key came before with another call. Nothing was done."
            return _problem(422, "key_reused", detail)

    return view


@signed
def effect(tool: str, payload: dict[str, Any]) -> HttpResponse:
    """Perform the effect, once per key."""
    call = calls.Call(tool, _args(payload), _key(payload))
    return JsonResponse(calls.perform(config.load().database, call))


@signed
def look_up(tool: str, payload: dict[str, Any]) -> HttpResponse:
    """What became of a key."""
    return JsonResponse(calls.look_up(config.load().database, tool, _key(payload)))


@signed
def read(tool: str, payload: dict[str, Any]) -> HttpResponse:
    """What stands now where the effect would land."""
    return JsonResponse(readers.read(config.load().database, tool, _args(payload)))


def _payload(request: HttpRequest, tool: str) -> dict[str, Any]:
    """The body, verified, for a tool that exists and is the one it names."""
    payload = _verified(request)
    if not isinstance(payload, dict) or payload.get("tool") != tool:
        raise Malformed("tool is not the one of the address.")
    if tool not in EFFECTS:
        raise Malformed("The store has no such tool.")
    signed_key = payload.get("idempotency_key")
    if request.headers.get("Idempotency-Key", signed_key) != signed_key:
        raise Malformed("Idempotency-Key is not the one of the signed body.")
    return payload


def _verified(request: HttpRequest) -> Any:
    secret = config.load().secret
    try:
        Webhook(secret).verify(request.body, dict(request.headers), json_parse=False)
        return json.loads(request.body)
    except (WebhookVerificationError, ValueError) as error:
        # ValueError: the library's own for headers that cannot be taken apart.
        raise Unsigned from error


def _args(payload: dict[str, Any]) -> dict[str, Any]:
    args = payload.get("args")
    if not isinstance(args, dict):
        raise Malformed("args must be an object.")
    return args


def _key(payload: dict[str, Any]) -> str:
    key = payload.get("idempotency_key")
    if not isinstance(key, str) or not key:
        raise Malformed("idempotency_key must be a text.")
    return key


def _problem(status: int, code: str, detail: str) -> JsonResponse:
    body = {"status": status, "code": code, "detail": detail}
    return JsonResponse(body, status=status, content_type="application/problem+json")
