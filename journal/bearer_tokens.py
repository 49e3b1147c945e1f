"""Bearer tokens of the form `<mark>_<prefix>_<secret>`.

The database stores the prefix, to find the row, and a hash of the secret. A secret has
160 random bits, so a plain SHA-256 is enough (ASVS 5.0, 6.5.2).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import NamedTuple

from .ids import ALPHABET

PREFIX_LETTERS, SECRET_LETTERS = 8, 32


class Minted(NamedTuple):
    """A new token: `text` is shown once; `prefix` and `digest` are stored."""

    text: str
    prefix: str
    digest: str


def mint(mark: str) -> Minted:
    """A new random token. `mark` tells people and secret scanners its kind."""
    prefix, secret = _random(PREFIX_LETTERS), _random(SECRET_LETTERS)
    return Minted(f"{mark}_{prefix}_{secret}", prefix, digest(secret))


def split(mark: str, text: str) -> tuple[str, str]:
    """The prefix and the secret of a token; two empty strings if its mark differs."""
    found, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    return (prefix, secret) if found == mark else ("", "")


def matches(stored: str, secret: str) -> bool:
    """Whether `stored` is the hash of `secret`, compared in constant time."""
    return hmac.compare_digest(stored, digest(secret))


def digest(secret: str) -> str:
    """`sha256:<hex>` of the secret, as it is stored."""
    return "sha256:" + hashlib.sha256(secret.encode()).hexdigest()


def _random(letters: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(letters))
