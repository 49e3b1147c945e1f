"""Unguessable ids with a prefix for their kind: `p-`, `r-`, `g-`, `x-`, `u-`, `a-`,
`b-`, `q-`."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

# Crockford's base 32 in lower case: without i, l, o and u, so it can be read aloud.
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH = 20


def new(prefix: str) -> str:
    """A new id: `<prefix>-` and 100 random bits."""
    return f"{prefix}-{_format_number(secrets.randbits(5 * LENGTH))}"


def derive_id(prefix: str, key: bytes, *parts: str | int) -> str:
    """An id that is always the same for the same prefix, key and parts. It is an HMAC
    under `key`, so nobody without the key can predict it."""
    message = "\0".join(map(str, parts)).encode()
    number = int.from_bytes(hmac.digest(key, message, hashlib.sha256)[:13], "big")
    return f"{prefix}-{_format_number(number)}"


def _format_number(number: int) -> str:
    return "".join([ALPHABET[number >> 5 * place & 31] for place in range(LENGTH)])


def is_id(text: str, prefix: str) -> bool:
    """Whether untrusted text is exactly one id with this prefix, and nothing else."""
    return re.fullmatch(f"{prefix}-[{ALPHABET}]{{{LENGTH}}}", text) is not None
