"""Answers of SCIM 2.0 (RFC 7644): resources, lists and errors, in its media type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import JsonResponse

from journal.errors import DomainError, InvalidInput, InvalidJson

SCIM = "/scim/v2/"
MEDIA_TYPE = "application/scim+json"
MESSAGES = "urn:ietf:params:scim:api:messages:2.0"
_API_HINT = " See `errors` for details."


def build_address(*parts: str) -> str:
    """The whole address of a resource below the endpoint."""
    return f"{settings.COUNTERSEAL.base_url}{SCIM}{'/'.join(parts)}"


def build_answer(
    body: Mapping[str, Any], status: int = 200, location: str = ""
) -> JsonResponse:
    """One resource or list."""
    response = JsonResponse(dict(body), status=status, content_type=MEDIA_TYPE)
    if location:
        response["Location"] = location
    return response


def build_list(
    resources: list[dict[str, Any]], *, total: int, start: int = 1
) -> JsonResponse:
    """A ListResponse with one page of what was asked for."""
    return build_answer(
        {
            "schemas": [f"{MESSAGES}:ListResponse"],
            "totalResults": total,
            "startIndex": start,
            "itemsPerPage": len(resources),
            "Resources": resources,
        }
    )


def build_error(status: int, detail: str, scim_type: str = "") -> JsonResponse:
    """An error in SCIM's schema; its status is a text."""
    body = {
        "schemas": [f"{MESSAGES}:Error"],
        "status": str(status),
        **({"scimType": scim_type} if scim_type else {}),
        "detail": detail,
    }
    response = build_answer(body, status)
    if status == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


def build_refusal(error: DomainError) -> JsonResponse:
    """A refusal as an error: the detail names each attribute and its rule."""
    lines = [f"{fault['path']}: {fault['message']}." for fault in error.errors]
    detail = " ".join([*lines, error.detail.replace(_API_HINT, "")])
    unreadable = isinstance(error, InvalidInput | InvalidJson)
    status = 400 if unreadable else error.status
    usual = "invalidValue" if isinstance(error, InvalidInput) else ""
    usual = "invalidSyntax" if isinstance(error, InvalidJson) else usual
    response = build_error(status, detail, error.facts.get("scim_type", usual))
    if "retry_after" in error.facts:
        response["Retry-After"] = str(error.facts["retry_after"])
    return response
