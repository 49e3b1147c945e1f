"""For a tool's service: verify a grant by itself, without asking the gate.

Needs `pip install "counterseal-client[grants]"`. Fetch `/.well-known/jwks.json` of the
gate once, keep it for some minutes, and fetch it anew when `verify` says `unknown_key`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import jwt
import rfc8785
from jwt.types import Options

from .errors import CountersealError

__all__ = ["InvalidGrant", "VerifiedGrant", "action_hash", "verify"]

ALGORITHM = "EdDSA"
TYPE = "counterseal-grant+jwt"
LEEWAY = 30.0
"""Seconds that two clocks may differ."""

_TEXTS = (
    *("iss", "aud", "jti", "proposal", "action_hash", "tool", "agent", "thread"),
    *("idempotency_key", "execution"),
)
_NUMBERS = ("iat", "nbf", "exp", "revision", "tool_version", "policy_version")
# Audience, issuer and times are compared below, each with a word of its own.
_OPTIONS: Options = {
    "require": [*_TEXTS, *_NUMBERS, "target"],
    "verify_aud": False,
    "verify_iss": False,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}


class InvalidGrant(CountersealError):
    """The token is not a valid grant for this action. Do nothing.

    `code` is one of `malformed`, `unknown_key`, `forged`, `wrong_issuer`,
    `wrong_audience`, `not_yet`, `expired`, `not_redeemed`, `other_tool`,
    `other_action`. `answer` is the response for Counterseal. It concerns this call
    only: an earlier call under the same key may have succeeded.
    """

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        super().__init__(f"{code}: {detail}")

    @property
    def answer(self) -> dict[str, Any]:
        return {"status": "failed", "error": {"code": f"grant_{self.code}"}}


@dataclass(frozen=True, slots=True)
class VerifiedGrant:
    """Permission for one exact action, once. Store `id` until `remember_until`, when
    the grant and its leeway have expired, and answer a repeated grant with the first
    result.

    `fence` grows with every attempt at the same execution; `idempotency_key` stays.
    """

    id: str
    proposal: str
    revision: int
    action_hash: str
    tool: str
    tool_version: int
    policy_version: int
    agent: str
    thread: str
    target: Mapping[str, str]
    idempotency_key: str
    execution: str
    fence: int
    expires_at: datetime
    remember_until: datetime
    claims: Mapping[str, Any] = field(repr=False, compare=False)


def verify(
    token: str,
    jwks: Mapping[str, Any],
    *,
    audience: str,
    tool: str,
    issuer: str = "",
    args: Mapping[str, Any] | None = None,
    preconditions: Mapping[str, Any] | None = None,
    leeway: float = LEEWAY,
    now: datetime | None = None,
    redeemed: bool = True,
) -> VerifiedGrant:
    """Verify a token for this service at this time, and return its grant.

    `audience` is the service's name in the policy (`audience` of the tool, else the
    origin of its URL). `tool` is the tool that this entry point performs, so that a
    grant for another tool of the same service is refused. `issuer` is Counterseal's own
    URL. Pass the arguments that you are about to use: their hash, together with the
    preconditions, must be the granted one. A grant that the agent has not redeemed was
    not checked since its approval, and is refused unless `redeemed` is False. Raises
    InvalidGrant.
    """
    claims = _signed(token, jwks)
    _check_place(claims, audience, issuer, tool)
    _check_time(claims, leeway, time.time() if now is None else now.timestamp())
    if redeemed and not claims.get("fence"):
        raise InvalidGrant("not_redeemed", "the agent must redeem it first")
    if args is not None:
        asked = action_hash(claims, args, preconditions or {})
        if asked != claims["action_hash"]:
            raise InvalidGrant("other_action", "the grant is for other arguments")
    return _grant(claims, leeway)


def action_hash(
    claims: Mapping[str, Any],
    args: Mapping[str, Any],
    preconditions: Mapping[str, Any],
) -> str:
    """The hash of an action (RFC 8785), for who proposed it by these claims. Raises
    InvalidGrant when the parts are not JSON."""
    named = ("tool", "tool_version", "agent", "thread")
    action = {name: claims[name] for name in named}
    action |= {"args": dict(args), "preconditions": dict(preconditions)}
    try:
        return "sha256:" + hashlib.sha256(rfc8785.dumps(action)).hexdigest()
    except (ValueError, RecursionError) as error:
        raise InvalidGrant("other_action", "the arguments are not JSON") from error


def _signed(token: str, jwks: Mapping[str, Any]) -> dict[str, Any]:
    try:
        header = jwt.get_unverified_header(token)
        if header.get("typ") != TYPE or header.get("alg") != ALGORITHM:
            raise InvalidGrant("malformed", "this is not the token of a grant")
        key = _key(jwks, header.get("kid"))
        claims = jwt.decode(token, key, algorithms=[ALGORITHM], options=_OPTIONS)
    except jwt.InvalidSignatureError:
        raise InvalidGrant("forged", "the signature is not Counterseal's") from None
    except (jwt.PyJWTError, ValueError) as error:
        raise InvalidGrant("malformed", type(error).__name__) from None
    return _typed(claims)


def _key(jwks: Mapping[str, Any], kid: Any) -> jwt.PyJWK:
    """The key of that name. Only Ed25519 ever is one: a set with others in it opens no
    way to another algorithm."""
    for jwk in jwks.get("keys", ()):
        if kid and jwk.get("kid") == kid and jwk.get("crv") == "Ed25519":
            return jwt.PyJWK(jwk, ALGORITHM)
    raise InvalidGrant("unknown_key", "fetch Counterseal's keys again")


def _typed(claims: dict[str, Any]) -> dict[str, Any]:
    texts = all(isinstance(claims[name], str) for name in _TEXTS)
    numbers = all(type(claims[name]) is int for name in _NUMBERS)
    fence = type(claims.get("fence", 0)) is int
    if not (texts and numbers and fence and isinstance(claims["target"], dict)):
        raise InvalidGrant("malformed", "a claim has the wrong type")
    return claims


def _check_place(
    claims: Mapping[str, Any], audience: str, issuer: str, tool: str
) -> None:
    if claims["aud"] != audience:
        raise InvalidGrant("wrong_audience", "the grant is for another service")
    if issuer and claims["iss"] != issuer:
        raise InvalidGrant("wrong_issuer", "the grant is from another issuer")
    if claims["tool"] != tool:
        raise InvalidGrant("other_tool", "the grant is for another tool")


def _check_time(claims: Mapping[str, Any], leeway: float, now: float) -> None:
    if now < claims["nbf"] - leeway:
        raise InvalidGrant("not_yet", "the grant is not valid yet")
    if now >= claims["exp"] + leeway:
        raise InvalidGrant("expired", "the grant has expired")


def _grant(claims: Mapping[str, Any], leeway: float) -> VerifiedGrant:
    same = {
        name: claims[name]
        for name in VerifiedGrant.__dataclass_fields__
        if name in claims
    }
    return VerifiedGrant(
        **{"fence": 0, **same},
        id=claims["jti"],
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
        remember_until=datetime.fromtimestamp(claims["exp"] + leeway, UTC),
        claims=claims,
    )
