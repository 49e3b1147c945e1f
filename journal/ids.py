"""Unguessable, prefixed ids: `p-`, `r-`, `g-`, `x-`, `u-`, `a-`, `b-`."""

from __future__ import annotations

import secrets

# Crockford's alphabet in lower case: no i, l, o, u, so that people can read it out.
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new(prefix: str) -> str:
    """`<prefix>-` and 100 random bits."""
    return f"{prefix}-" + "".join(secrets.choice(ALPHABET) for _ in range(20))
