"""What stands for a grant outside: a signed token, made whenever it is asked for, and
bound to everything that its row says. The row is the authority.

Before it is redeemed a token is good for redeeming, and for nothing else: only what is
given out by a claim, after every check, names the fence that a tool's service asks for.

The keys that sign grants: Ed25519, one that signs, some that will and some that did.

All are published and accepted, so that a token lives through a change of keys. None of
them ever signs the log.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
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
# RFC 8725 3.11: no other token of anybody's can be taken for a grant.
TYPE = "holdpoint-grant+jwt"
# Who a token is for and until when is compared with its row, not with a clock here.
_SIGNATURE_ALONE: Any = {
    f"verify_{name}": False for name in ("aud", "exp", "nbf", "iat", "iss", "sub")
}


class Forged(Exception):
    """None of our keys signed this as a grant."""


@dataclass(frozen=True, slots=True)
class Key:
    """A pair, under the thumbprint of its public half (RFC 7638)."""

    kid: str
    private: Ed25519PrivateKey
    public: Ed25519PublicKey
    jwk: Mapping[str, str]


def seeds() -> Iterator[bytes]:
    """Every key's 32 bytes, the one that signs first."""
    here = settings.HOLDPOINT
    yield here.grant_key
    yield from here.grant_keys_next
    yield from here.grant_keys_retired


def sign(claims: Mapping[str, Any]) -> str:
    """A compact JWS; the same key and claims always give the same one."""
    key = _key(settings.HOLDPOINT.grant_key)
    headers = {"kid": key.kid, "typ": TYPE}
    return jwt.encode(dict(claims), key.private, ALGORITHM, headers=headers)


def read(token: str) -> dict[str, Any]:
    """The claims of a token that one of our keys signed, whenever that was. Raises
    Forged."""
    try:
        header = jwt.get_unverified_header(token)
        key = _accepted().get(header.get("kid", ""))
        if key is None or header.get("typ") != TYPE:
            raise Forged
        return jwt.decode(token, key.public, [ALGORITHM], _SIGNATURE_ALONE)
    except (jwt.PyJWTError, ValueError) as error:
        raise Forged from error


def published() -> dict[str, Any]:
    """The public halves as a JWK set (RFC 7517, RFC 8037)."""
    return {"keys": [dict(key.jwk) for key in _accepted().values()]}


def _accepted() -> dict[str, Key]:
    found = map(_key, seeds())
    return {key.kid: key for key in found}


@lru_cache(maxsize=16)
def _key(seed: bytes) -> Key:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key()
    raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": base64url_encode(raw).decode()}
    thumbprint = hashlib.sha256(canonical.encode(jwk)).digest()
    kid = base64url_encode(thumbprint).decode()
    about = {"kid": kid, "use": "sig", "alg": ALGORITHM}
    return Key(kid, private, public, {**jwk, **about})


def claims(grant: Grant, *, fence: int = 0) -> dict[str, Any]:
    """What a token says: which effect, upon what, for whom, and until when; with the
    fence of the claim it was given out by. Times are whole seconds, never later than
    the row's."""
    revision, execution = grant.revision, grant.execution
    tool = revision.known_tool
    issued = int(grant.issued_at.timestamp())
    found = {
        "iss": settings.HOLDPOINT.base_url,
        "aud": tools.definition(tool).destination,
        "jti": grant.pk,
        "iat": issued,
        "nbf": issued,
        "exp": int(grant.expires_at.timestamp()),
        "proposal": grant.proposal_id,
        "revision": revision.number,
        "action_hash": grant.action_hash,
        "tool": tool.name,
        "tool_version": tool.version,
        "policy_version": revision.policy_number,
        "agent": grant.proposal.agent,
        "thread": grant.proposal.thread,
        # What the tool's own reader said the effect is upon.
        "target": revision.reading.get("keys") or {},
        "idempotency_key": execution.idempotency_key,
        "execution": execution.pk,
    }
    return {**found, "fence": fence} if fence else found


def mint(grant: Grant, *, fence: int = 0) -> str:
    """The token of a grant, by the key that signs now."""
    return sign(claims(grant, fence=fence))


def token(grant_id: str) -> str:
    """What the agent redeems a stored grant with. Raises NotFound."""
    return mint(_load(grant_id))


def find(value: str, *, agent: str) -> Grant:
    """The grant that this agent redeems with a token.

    Raises NotFound, and GrantExpired for a token of a window that was moved since.
    """
    grant = _signed(value) if value.count(".") == 2 else _tagged(value)
    if grant.proposal.agent != agent:
        raise NotFound
    return grant


def _signed(value: str) -> Grant:
    try:
        said = read(value)
    except Forged:
        raise NotFound from None
    grant = _load(said.get("jti"))
    known = claims(grant)
    differ = {name for name in {*said, *known} if said.get(name) != known.get(name)}
    if differ == {"exp"}:
        raise GrantExpired("Its window was moved. Ask for the proposal's new token.")
    if differ:  # guard: token-row
        raise NotFound
    return grant


def _load(grant_id: Any, **more: str) -> Grant:
    rows = Grant.objects.select_related("proposal", "revision__tool", "execution")
    grant = rows.filter(pk=grant_id, **more).first()
    if grant is None:
        raise NotFound
    return grant


# The previous release redeems `<grant id>.<MAC>` and finds a grant by the hash of it.
# While one release takes over from the other, each redeems what that one gave out.
def tag(grant_id: str) -> str:
    mac = hmac.new(settings.HOLDPOINT.grant_key, grant_id.encode(), hashlib.sha256)
    return f"{grant_id}.{base64.urlsafe_b64encode(mac.digest()).decode().rstrip('=')}"


def token_hash(value: str) -> str:
    return "sha256:" + hashlib.sha256(value.encode()).hexdigest()


def _tagged(value: str) -> Grant:
    return _load(value.partition(".")[0], token_hash=token_hash(value))
