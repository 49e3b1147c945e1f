"""AES-256-GCM encryption of stored blobs, results and data keys, and seals of what a
person decided.

An encrypted value is version (1 byte) + nonce (12 random bytes) + ciphertext and tag.
`aad` is the additional authenticated data: it names the row that the value belongs to,
so that a value moved to another row cannot be decrypted there.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from . import canonical

KEY_BYTES = 32
VERSION = b"\x01"
NONCE_BYTES = 12
_HEADER_BYTES = len(VERSION) + NONCE_BYTES
_TAG_BYTES = 16


class DecryptionError(Exception):
    """An encrypted value was changed, cut or moved, or it belongs to another key."""


def create_key() -> bytes:
    """A new random key. Destroying it makes all that it encrypted unreadable."""
    return secrets.token_bytes(KEY_BYTES)


def encrypt_value(key: bytes, data: bytes, aad: bytes) -> bytes:
    """Encrypt `data` under `key`; decryption needs the same `aad`."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return VERSION + nonce + _build_cipher(key).encrypt(nonce, data, VERSION + aad)


def decrypt_value(key: bytes, sealed: bytes | memoryview, aad: bytes) -> bytes:
    """Decrypt all that `encrypt_value` returned. Raises `DecryptionError`."""
    sealed = bytes(sealed)  # the database driver may return a memoryview
    if len(sealed) < _HEADER_BYTES + _TAG_BYTES:
        raise DecryptionError("The sealed value is too short.")
    if sealed[:1] != VERSION:
        raise DecryptionError(f"The sealed value has the unknown version {sealed[0]}.")
    nonce, rest = sealed[1:_HEADER_BYTES], sealed[_HEADER_BYTES:]
    try:
        return _build_cipher(key).decrypt(nonce, rest, VERSION + aad)
    except InvalidTag:
        raise DecryptionError(
            "The sealed value does not fit its key and place."
        ) from None


def wrap_key(key: bytes, owner: str) -> bytes:
    """Encrypt `key` under `settings.COUNTERSEAL.data_key`, bound to `owner`'s row."""
    return encrypt_value(settings.COUNTERSEAL.data_key, key, _build_wrapping_aad(owner))


def unwrap_key(wrapped: bytes, owner: str) -> bytes:
    """Decrypt a key that `wrap_key` encrypted. Raises `DecryptionError`."""
    return decrypt_value(
        settings.COUNTERSEAL.data_key, wrapped, _build_wrapping_aad(owner)
    )


def _build_wrapping_aad(owner: str) -> bytes:
    return b"key of " + owner.encode()


def _build_cipher(key: bytes) -> AESGCM:
    if len(key) != KEY_BYTES:
        raise ValueError(f"A key has {KEY_BYTES} bytes, not {len(key)}.")
    return AESGCM(key)


def seal_content(content: Mapping[str, Any]) -> str:
    """Seal the content of a row: a MAC under a key that is not in the database, so who
    can write rows cannot seal them. Deterministic."""
    key = _derive_sealing_key(settings.COUNTERSEAL.data_key)
    return f"hmac-sha256:{hmac.digest(key, canonical.encode(content), 'sha256').hex()}"


def is_sealed(content: Mapping[str, Any], seal: str) -> bool:
    """Whether this is the seal of exactly this content."""
    return hmac.compare_digest(seal_content(content).encode(), seal.encode())


@lru_cache(maxsize=4)
def _derive_sealing_key(data_key: bytes) -> bytes:
    """A key of its own, because `data_key` encrypts."""
    return hmac.digest(data_key, b"counterseal seal of a decision", "sha256")
