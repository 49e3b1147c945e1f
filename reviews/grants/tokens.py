"""Grant tokens: signed by Ed25519 keys, and bound to every value of the grant's row.

The row is the authority; a token is built from it whenever one is needed. A token
without a fence can only be redeemed. A claim, after all its checks, gives out a token
with the fence that a tool's service requires.

One key signs. The next and the retired keys are published and accepted as well, so that
tokens stay valid across a key rotation. These keys never sign the audit log.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from jwt.utils import base64url_encode

from journal import canonical
from journal.errors import GrantExpired, NotFound
from policies import tools
from reviews.models import Grant

ALGORITHM = "EdDSA"
# Explicit typing (RFC 8725, 3.11): no other kind of token passes as a grant.
GRANT_TYPE = "counterseal-grant+jwt"
# Audience and times are compared with the row in `load_grant_by_token`, not here.
_SIGNATURE_ONLY: Any = {
    f"verify_{name}": False for name in ("aud", "exp", "nbf", "iat", "iss", "sub")
}


class ForgedToken(Exception):
    """The text is not a token of the expected type, signed by one of our keys."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key pair. `kid` is the thumbprint of its public key (RFC 7638)."""

    kid: str
    private: Ed25519PrivateKey
    public: Ed25519PublicKey
    jwk: Mapping[str, str]


def list_key_seeds() -> Iterator[bytes]:
    """Yield the 32-byte seed of every key, the signing key first."""
    here = settings.COUNTERSEAL
    yield here.grant_key
    yield from here.grant_keys_next
    yield from here.grant_keys_retired


def sign_claims(claims: Mapping[str, Any], *, typ: str = GRANT_TYPE) -> str:
    """Sign claims as a compact JWS of type `typ`. Deterministic for the same key and
    claims."""
    key = _build_key(settings.COUNTERSEAL.grant_key)
    headers = {"kid": key.kid, "typ": typ}
    return jwt.encode(dict(claims), key.private, ALGORITHM, headers=headers)


def verify_token(token: str, *, typ: str = GRANT_TYPE) -> dict[str, Any]:
    """Verify a token's signature and that it is of type `typ`, and return its claims.
    Times and audience are not checked. Raises ForgedToken."""
    try:
        header = jwt.get_unverified_header(token)
        key = _list_accepted_keys().get(header.get("kid", ""))
        if key is None or header.get("typ") != typ:
            raise ForgedToken
        return jwt.decode(token, key.public, [ALGORITHM], _SIGNATURE_ONLY)
    except (jwt.PyJWTError, ValueError) as error:
        raise ForgedToken from error


def build_jwk_set() -> dict[str, Any]:
    """The public keys as a JWK set (RFC 7517, RFC 8037)."""
    return {"keys": [dict(key.jwk) for key in _list_accepted_keys().values()]}


def _list_accepted_keys() -> dict[str, SigningKey]:
    keys = map(_build_key, list_key_seeds())
    return {key.kid: key for key in keys}


@lru_cache(maxsize=16)
def _build_key(seed: bytes) -> SigningKey:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key()
    raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": base64url_encode(raw).decode()}
    thumbprint = hashlib.sha256(canonical.encode(jwk)).digest()
    kid = base64url_encode(thumbprint).decode()
    about = {"kid": kid, "use": "sig", "alg": ALGORITHM}
    return SigningKey(kid, private, public, {**jwk, **about})


def build_claims(grant: Grant, *, fence: int = 0) -> dict[str, Any]:
    """The claims of a grant's token; `fence` is the claim that gives it out, if any.
    Times are whole seconds, rounded down."""
    revision, execution = grant.revision, grant.execution
    tool = revision.known_tool
    issued = int(grant.issued_at.timestamp())
    begins = max(grant.issued_at, grant.not_before or grant.issued_at)
    claims = {
        "iss": settings.COUNTERSEAL.base_url,
        "aud": tools.load_definition(tool).destination,
        "jti": grant.pk,
        "iat": issued,
        "nbf": math.ceil(begins.timestamp()) if grant.not_before else issued,
        "exp": int(grant.expires_at.timestamp()),
        "proposal": grant.proposal_id,
        "revision": revision.number,
        "action_hash": grant.action_hash,
        "tool": tool.name,
        "tool_version": tool.version,
        "policy_version": revision.policy_number,
        "agent": grant.proposal.agent,
        "thread": grant.proposal.thread,
        # The keys that the tool's reader found the effect applies to.
        "target": revision.reading.get("keys") or {},
        "idempotency_key": execution.idempotency_key,
        "execution": execution.pk,
    }
    return {**claims, "fence": fence} if fence else claims


def build_token(grant: Grant, *, fence: int = 0) -> str:
    return sign_claims(build_claims(grant, fence=fence))


def load_token(grant_id: str) -> str:
    """The token with which the agent redeems a stored grant. Raises NotFound."""
    return build_token(_load_grant(grant_id))


def load_grant_by_token(value: str, *, agent: str) -> Grant:
    """The grant that this agent redeems with a token. Raises NotFound, or GrantExpired
    when the grant's window was moved after the token was built."""
    grant = _load_by_token(value)
    if grant.proposal.agent != agent:
        raise NotFound
    return grant


def _load_by_token(value: str) -> Grant:
    try:
        claims = verify_token(value)
    except ForgedToken:
        raise NotFound from None
    grant = _load_grant(claims.get("jti"))
    known = build_claims(grant)
    differ = {name for name in {*claims, *known} if claims.get(name) != known.get(name)}
    if differ == {"exp"}:
        raise GrantExpired(
            "The execution window was moved. Read the proposal and use its new token."
        )
    if differ:  # guard: token-row
        raise NotFound
    return grant


def _load_grant(grant_id: Any) -> Grant:
    rows = Grant.objects.select_related("proposal", "revision__tool", "execution")
    grant = rows.filter(pk=grant_id).first()
    if grant is None:
        raise NotFound
    return grant
