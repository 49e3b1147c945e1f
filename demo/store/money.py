"""Money at the store's door: decimal strings outside, integer minor units inside."""

from __future__ import annotations

import re

CURRENCY = "USD"
AMOUNT = re.compile(r"(0|[1-9]\d{0,8})(?:\.(\d{1,2}))?", re.ASCII)


def minor(text: object) -> int | None:
    """ "899.00" as 89900; None for anything that is not such a string."""
    match = AMOUNT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    return int(match[1]) * 100 + int((match[2] or "").ljust(2, "0"))


def text(minor_units: int) -> str:
    """89900 as "899.00"."""
    return f"{minor_units // 100}.{minor_units % 100:02d}"
