"""Unguessable, prefixed ids: `p-`, `r-`, `g-`, `x-`, `u-`, `a-`, `b-`."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

# Crockford's alphabet in lower case: no i, l, o, u, so that people can read it out.
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH = 20


def new(prefix: str) -> str:
    """`<prefix>-` and 100 random bits."""
    return f"{prefix}-" + "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def derived(prefix: str, key: bytes, *parts: str | int) -> str:
    """The same form, and the same id for the same parts: a function of `key` and of
    what it names, so that nobody else can tell it beforehand."""
    told = "\0".join(map(str, parts)).encode()
    number = int.from_bytes(hmac.digest(key, told, hashlib.sha256)[:13], "big")
    return f"{prefix}-" + "".join(
        ALPHABET[number >> 5 * place & 31] for place in range(LENGTH)
    )


def is_one(text: str, prefix: str) -> bool:
    """Whether a text that somebody gave has this shape: it can say nothing else."""
    return re.fullmatch(f"{prefix}-[{ALPHABET}]{{{LENGTH}}}", text) is not None
