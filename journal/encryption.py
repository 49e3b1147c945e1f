"""AES-256-GCM for what may be stored but not read: blobs, results, and their keys.

A sealed value is version (1 byte) + nonce (12 random bytes) + ciphertext and tag. `aad`
names what the value belongs to, so that a row's value cannot be put into another row.
"""

from __future__ import annotations

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

KEY_BYTES = 32
VERSION = b"\x01"
NONCE_BYTES = 12
_HEADER_BYTES = len(VERSION) + NONCE_BYTES
_TAG_BYTES = 16


class Unreadable(Exception):
    """A sealed value was changed, cut, moved to another place, or has another key."""


def new_key() -> bytes:
    """A fresh key of 32 random bytes; destroying it erases all it ever sealed."""
    return secrets.token_bytes(KEY_BYTES)


def seal(key: bytes, data: bytes, aad: bytes) -> bytes:
    """`data` under `key`, readable only with the same `aad`."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return VERSION + nonce + _cipher(key).encrypt(nonce, data, VERSION + aad)


def open(key: bytes, sealed: bytes | memoryview, aad: bytes) -> bytes:
    """What `seal` was given. Raises `Unreadable` and never returns part of it."""
    sealed = bytes(sealed)  # the database driver may hand over a memoryview
    if len(sealed) < _HEADER_BYTES + _TAG_BYTES:
        raise Unreadable("The sealed value is too short.")
    if sealed[:1] != VERSION:
        raise Unreadable(f"The sealed value has the unknown version {sealed[0]}.")
    nonce, rest = sealed[1:_HEADER_BYTES], sealed[_HEADER_BYTES:]
    try:
        return _cipher(key).decrypt(nonce, rest, VERSION + aad)
    except InvalidTag:
        raise Unreadable("The sealed value does not fit its key and place.") from None


def wrap(key: bytes, owner: str) -> bytes:
    """A key sealed under `settings.HOLDPOINT.data_key`, for the row of `owner`."""
    return seal(settings.HOLDPOINT.data_key, key, _wrapping(owner))


def unwrap(wrapped: bytes, owner: str) -> bytes:
    """The key that `wrap` sealed. Raises `Unreadable`."""
    return open(settings.HOLDPOINT.data_key, wrapped, _wrapping(owner))


def _wrapping(owner: str) -> bytes:
    return b"key of " + owner.encode()


def _cipher(key: bytes) -> AESGCM:
    if len(key) != KEY_BYTES:
        raise ValueError(f"A key has {KEY_BYTES} bytes, not {len(key)}.")
    return AESGCM(key)
