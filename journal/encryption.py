"""AES-256-GCM encryption of stored blobs, results and data keys, and seals of what a
person decided.

An encrypted value is version (1 byte) + nonce (12 random bytes) + ciphertext and tag.
`aad` is the additional authenticated data: it names the row that the value belongs to,
so that a value moved to another row cannot be decrypted there.

What the installation's DATA_KEY encrypts also has the id of that key after the version,
so that the key can be replaced: DATA_KEYS_RETIRED decrypt what they encrypted.
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
from .errors import DomainError

KEY_BYTES = 32
VERSION, STORED = b"\x01", b"\x02"
KEY_ID_BYTES = 8
NONCE_BYTES = 12
_TAG_BYTES = 16


class DecryptionError(DomainError, code="unreadable", status=503):
    """A stored value cannot be read: it was changed, cut or moved, or it belongs to
    another key. Nothing was changed."""


def create_key() -> bytes:
    """A new random key. Destroying it makes all that it encrypted unreadable."""
    return secrets.token_bytes(KEY_BYTES)


def encrypt_value(key: bytes, data: bytes, aad: bytes) -> bytes:
    """Encrypt `data` under `key`; decryption needs the same `aad`."""
    return _encrypt(key, VERSION, data, aad)


def decrypt_value(key: bytes, sealed: bytes | memoryview, aad: bytes) -> bytes:
    """Decrypt all that `encrypt_value` returned. Raises `DecryptionError`."""
    sealed = bytes(sealed)  # the database driver may return a memoryview
    _check_version(sealed, VERSION)
    return _decrypt(key, VERSION, sealed, aad)


def encrypt_stored(data: bytes, aad: bytes) -> bytes:
    """Encrypt `data` under the installation's DATA_KEY, which the value names."""
    key = settings.COUNTERSEAL.data_key
    return _encrypt(key, STORED + identify_key(key), data, aad)


def decrypt_stored(sealed: bytes | memoryview, aad: bytes) -> bytes:
    """Decrypt all that `encrypt_stored` returned, now or under a former key. Raises
    `DecryptionError`."""
    sealed = bytes(sealed)
    _check_version(sealed, STORED)
    header = sealed[: len(STORED) + KEY_ID_BYTES]
    for key in list_data_keys():
        if header == STORED + identify_key(key):
            return _decrypt(key, header, sealed, aad)
    raise DecryptionError(
        "A stored value belongs to a data key that this process does not have. Nothing"
        " was changed. Add that key to DATA_KEYS_RETIRED."
    )


def encrypt_again(sealed: bytes | memoryview, aad: bytes) -> bytes:
    """Encrypt what `encrypt_stored` returned under a former key once more, under the
    present one. Raises `DecryptionError`."""
    return encrypt_stored(decrypt_stored(sealed, aad), aad)


def list_data_keys() -> list[bytes]:
    """The key that encrypts and seals, then the former ones, which still read."""
    configured = settings.COUNTERSEAL
    return [configured.data_key, *configured.data_keys_retired]


def list_tag_keys() -> list[bytes]:
    """The key of new tags and ids, then the former ones, whose tags still count."""
    configured = settings.COUNTERSEAL
    return [configured.tag_key, *configured.tag_keys_retired]


@lru_cache(maxsize=8)
def identify_key(key: bytes) -> bytes:
    """The public id of a key, from which nobody can tell the key."""
    return hmac.digest(key, b"counterseal id of a key", "sha256")[:KEY_ID_BYTES]


def _encrypt(key: bytes, header: bytes, data: bytes, aad: bytes) -> bytes:
    nonce = secrets.token_bytes(NONCE_BYTES)
    return header + nonce + _build_cipher(key).encrypt(nonce, data, header + aad)


def _check_version(sealed: bytes, version: bytes) -> None:
    if sealed and sealed[:1] != version:
        raise DecryptionError(f"The sealed value has the unknown version {sealed[0]}.")


def _decrypt(key: bytes, header: bytes, sealed: bytes, aad: bytes) -> bytes:
    start = len(header) + NONCE_BYTES
    if len(sealed) < start + _TAG_BYTES:
        raise DecryptionError("The sealed value is too short.")
    try:
        return _build_cipher(key).decrypt(
            sealed[len(header) : start], sealed[start:], header + aad
        )
    except InvalidTag:
        raise DecryptionError(
            "The sealed value does not fit its key and place."
        ) from None


def wrap_key(key: bytes, owner: str) -> bytes:
    """Encrypt `key` under the installation's DATA_KEY, bound to `owner`'s row."""
    return encrypt_stored(key, build_wrapping_aad(owner))


def unwrap_key(wrapped: bytes, owner: str) -> bytes:
    """Decrypt a key that `wrap_key` encrypted. Raises `DecryptionError`."""
    return decrypt_stored(wrapped, build_wrapping_aad(owner))


def build_wrapping_aad(owner: str) -> bytes:
    """What binds a wrapped key to its owner's row."""
    return b"key of " + owner.encode()


def _build_cipher(key: bytes) -> AESGCM:
    if len(key) != KEY_BYTES:
        raise ValueError(f"A key has {KEY_BYTES} bytes, not {len(key)}.")
    return AESGCM(key)


def seal_content(content: Mapping[str, Any]) -> str:
    """Seal the content of a row: a MAC under a key that is not in the database, so who
    can write rows cannot seal them. Deterministic."""
    return _seal(content, settings.COUNTERSEAL.data_key)


def is_sealed(content: Mapping[str, Any], seal: str) -> bool:
    """Whether this is the seal of exactly this content, now or under a former key."""
    return any(is_sealed_by(content, seal, key) for key in list_data_keys())


def is_sealed_by(content: Mapping[str, Any], seal: str, data_key: bytes) -> bool:
    """Whether this is the seal of exactly this content under one key."""
    return hmac.compare_digest(_seal(content, data_key).encode(), seal.encode())


def _seal(content: Mapping[str, Any], data_key: bytes) -> str:
    key = _derive_sealing_key(data_key)
    return f"hmac-sha256:{hmac.digest(key, canonical.encode(content), 'sha256').hex()}"


@lru_cache(maxsize=8)
def _derive_sealing_key(data_key: bytes) -> bytes:
    """A key of its own, because `data_key` encrypts."""
    return hmac.digest(data_key, b"counterseal seal of a decision", "sha256")
