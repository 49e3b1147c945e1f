"""Binding tokens: the gate's signed statement of what it denied, which the caller
brings back with its access request.

The token carries the profile's `binding_hash`, so the gate keeps no state between the
denial and the request.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from agents import representation
from agents.schemas.authzen import DenialIn
from journal import ids
from journal.errors import build_field_error
from reviews import redaction
from reviews.grants import tokens

from .entities import AccessTuple
from .errors import ExpiredDenial, InvalidDenialBinding

BINDING_TYPE = "counterseal-binding+jwt"
LIFETIME = timedelta(minutes=10)


def create_evaluation_id() -> str:
    """A new id of an evaluation, which may also name a run. One in 50,000 ids has the
    shape of an IBAN or a phone number, which no name of a run may have."""
    while redaction.list_kinds(evaluation_id := ids.new("e")):
        pass
    return evaluation_id


def build_access_request(
    access: AccessTuple, agent: str, evaluation_id: str, now: datetime
) -> dict[str, Any]:
    """Build `context.access_request` of a requestable denial."""
    expires_at = now + LIFETIME
    here = settings.COUNTERSEAL.base_url
    expiry = representation.format_timestamp(expires_at)
    claims = {
        "iss": here,
        "aud": here,
        "jti": evaluation_id,
        "iat": int(now.timestamp()),
        "exp": int(expires_at.timestamp()),
        "evaluation_id": evaluation_id,
        "denial_expires_at": expiry,
        "client_id": agent,
        "binding_context_members": sorted(access.context),
        "binding_hash": access.compute_hash(),
    }
    return {
        "endpoint": f"{here}/access/v1/requests",
        "expires_at": expiry,
        "binding_token": tokens.sign_claims(claims, typ=BINDING_TYPE),
    }


def check_denial(
    denial: DenialIn, access: AccessTuple, agent: str, now: datetime
) -> str:
    """Check that a denial was issued to this agent for exactly this tuple, and return
    the id of its evaluation. Raises InvalidDenialBinding or ExpiredDenial."""
    claims = _verify_binding_token(denial)
    expected = {
        "denial.binding_token": (claims["client_id"], agent),
        "denial.expires_at": (claims["denial_expires_at"], denial.expires_at),
        "denial.evaluation_id": (
            claims["evaluation_id"],
            denial.evaluation_id or claims["evaluation_id"],
        ),
        "context": (claims["binding_context_members"], sorted(access.context)),
        "denial": (claims["binding_hash"], access.compute_hash()),
    }
    for path, (issued, sent) in expected.items():
        if issued != sent:  # guard: denial-binding
            raise _refuse(path, "is not what the gate denied under this binding_token")
    if claims["exp"] <= now.timestamp():
        raise ExpiredDenial
    evaluation_id: str = claims["evaluation_id"]
    return evaluation_id


def _verify_binding_token(denial: DenialIn) -> dict[str, Any]:
    if denial.binding_token is None:
        rule = "is required: the gate keeps no evaluations to look up by their id"
        raise _refuse("denial.binding_token", rule)
    try:
        claims = tokens.verify_token(denial.binding_token, typ=BINDING_TYPE)
    except tokens.ForgedToken:
        raise _refuse("denial.binding_token", "is not signed by this gate") from None
    here = settings.COUNTERSEAL.base_url
    if (claims["iss"], claims["aud"]) != (here, here):
        raise _refuse("denial.binding_token", "is for another gate")
    return claims


def _refuse(path: str, rule: str) -> InvalidDenialBinding:
    return InvalidDenialBinding(errors=[build_field_error(path, rule)])
