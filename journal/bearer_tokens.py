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


class NewToken(NamedTuple):
    """A new token: `text` is shown once; `prefix` and `digest` are stored."""

    text: str
    prefix: str
    digest: str


def create_token(mark: str) -> NewToken:
    """A new random token. `mark` tells people and secret scanners its kind."""
    prefix, secret = (
        _create_random_text(PREFIX_LETTERS),
        _create_random_text(SECRET_LETTERS),
    )
    return NewToken(f"{mark}_{prefix}_{secret}", prefix, hash_secret(secret))


def read_token(mark: str, text: str) -> NewToken:
    """A token that was created before. Raises ValueError for any other text."""
    prefix, secret = parse_token(mark, text)
    if (len(prefix), len(secret)) != (PREFIX_LETTERS, SECRET_LETTERS):
        raise ValueError(f"must be a key as Counterseal makes them: {mark}_...")
    return NewToken(text, prefix, hash_secret(secret))


def parse_token(mark: str, text: str) -> tuple[str, str]:
    """The prefix and the secret of a token; two empty strings if its mark differs."""
    own_mark, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    return (prefix, secret) if own_mark == mark else ("", "")


def is_matching_secret(stored: str, secret: str) -> bool:
    """Whether `stored` is the hash of `secret`, compared in constant time."""
    return hmac.compare_digest(stored, hash_secret(secret))


def hash_secret(secret: str) -> str:
    """`sha256:<hex>` of the secret, as it is stored."""
    return "sha256:" + hashlib.sha256(secret.encode()).hexdigest()


def _create_random_text(letters: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(letters))
