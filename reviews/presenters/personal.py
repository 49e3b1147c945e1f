"""Whether a field's name says that it is about a person, or a secret. Pure."""

from __future__ import annotations

import re

_PERSONAL = re.compile(
    r"e_?mail|phone|mobile|first_?name|last_?name|full_?name|surname|birth|dob\b|gender"
    r"|address|street|zip|postcode|postal|iban|card_?(number|no)|account_?number|ssn"
    r"|social_?security|passport|national_?id|tax_?id|salary|health|diagnos|religion"
    r"|ethnic|location|ip_?addr",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"passw|secret|token|api_?key|access_?key|private_?key|credential|session|cookie"
    r"|authorization|signature|(^|[_.-])(auth|otp|pin|pwd|jwt)($|[_.-])",
    re.IGNORECASE,
)


def is_personal(name: str) -> bool:
    """A field about a person."""
    return _PERSONAL.search(name) is not None


def is_secret(name: str) -> bool:
    """A field that lets somebody in."""
    return _SECRET.search(name) is not None
