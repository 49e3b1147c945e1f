"""The calls of the gate: effects and readers, each signed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST

from world import services

from . import effects, readers, settings

Answer = dict[str, Any]
View = Callable[[HttpRequest, str], HttpResponse]


class Malformed(Exception):
    """The signed body is malformed; the text says how."""


def signed(hook: Callable[[str, Answer], Answer]) -> View:
    """A POST view whose hook sees only bodies that the gate signed for that tool."""

    @require_POST
    def view(request: HttpRequest, tool: str) -> HttpResponse:
        if not services.is_signed(
            settings.WEBHOOK_SECRET, request.body, request.headers
        ):
            detail = "This call is not signed by the gate."
            return _build_problem(401, "bad_signature", detail)
        try:
            payload = json.loads(request.body)
            _check_payload(payload, tool)
            return JsonResponse(hook(tool, payload))
        except (Malformed, json.JSONDecodeError) as error:
            return _build_problem(400, "malformed", str(error))
        except services.KeyReused:
            detail = "This key came before with another call. Nothing was done."
            return _build_problem(422, "key_reused", detail)

    return view


@signed
def effect(tool: str, payload: Answer) -> Answer:
    """Perform the effect, once per key."""
    key = payload.get("idempotency_key")
    if not isinstance(key, str) or not key:
        raise Malformed("idempotency_key must be a text.")
    return effects.perform(settings.DATABASE, tool, payload["args"], key)


@signed
def read(tool: str, payload: Answer) -> Answer:
    """The state that the effect would change."""
    return readers.read(settings.DATABASE, tool, payload["args"])


def _check_payload(payload: Any, tool: str) -> None:
    if not isinstance(payload, dict) or payload.get("tool") != tool:
        raise Malformed("tool is not the one of the address.")
    if tool not in effects.EFFECTS:
        raise Malformed("The store has no such tool.")
    if not isinstance(payload.get("args"), dict):
        raise Malformed("args must be an object.")


def _build_problem(status: int, code: str, detail: str) -> JsonResponse:
    body = {"status": status, "code": code, "detail": detail}
    return JsonResponse(body, status=status, content_type="application/problem+json")
