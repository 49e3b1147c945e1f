"""Bearer secrets: `<mark>_<prefix>_<secret>`, stored as a prefix to find the row by and
a hash of the rest. With 160 random bits a plain SHA-256 is enough (ASVS 5.0, 6.5.2)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import NamedTuple

from .ids import ALPHABET

PREFIX_LETTERS, SECRET_LETTERS = 8, 32


class Minted(NamedTuple):
    """A new secret: `text` is shown once, the other two are stored."""

    text: str
    prefix: str
    digest: str


def mint(mark: str) -> Minted:
    """A fresh one; the mark says to people and scanners what it is."""
    prefix, secret = _random(PREFIX_LETTERS), _random(SECRET_LETTERS)
    return Minted(f"{mark}_{prefix}_{secret}", prefix, digest(secret))


def split(mark: str, text: str) -> tuple[str, str]:
    """Prefix and secret; two empty texts for what has another mark."""
    found, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    return (prefix, secret) if found == mark else ("", "")


def matches(stored: str, secret: str) -> bool:
    """Compares in a time that tells nothing of where they differ."""
    return hmac.compare_digest(stored, digest(secret))


def digest(secret: str) -> str:
    return "sha256:" + hashlib.sha256(secret.encode()).hexdigest()


def _random(letters: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(letters))
