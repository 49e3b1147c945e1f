"""The keys that sign grants: Ed25519, one that signs, some that will and some that did.

All are published and accepted, so that a token lives through a change of keys. None of
them ever signs the log.
"""

from __future__ import annotations

import hashlib
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
