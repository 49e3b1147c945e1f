"""The three built-in verifiers: simple rules over the final arguments.

A policy names one as `reviews.verifier_rules.<function>` with its options. They check
again what the policy decided, on the bytes that will run. Each returns a Refusal, or
None when it has no objection. `sealed` is the action in its canonical form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from .tool_services.verifiers import Stage, VerifierRefusal

# One address, bare or as `Name <address>`. Comments, quotes and lists are refused: mail
# parsers disagree on them, and a second address could hide in the difference.
_ADDRESS_PATTERN = re.compile(
    r"(?:[^<>@,;:()\"\\]*<)?([^\s<>@,;:()\"\\]+@[A-Za-z0-9.-]+)>?"
)


def maximum_amount(
    sealed: Mapping[str, Any],
    *,
    stage: Stage,
    maximum: str,
    currency: str,
    amount: str = "amount",
    currency_from: str = "currency",
) -> VerifierRefusal | None:
    """Refuse an amount above `maximum` (decimal text), or in another currency."""
    asked = _parse_amount(sealed["args"].get(amount))
    if asked is None:
        return VerifierRefusal(
            "amount_unreadable", f"{amount} is not a decimal amount."
        )
    if sealed["args"].get(currency_from) != currency:
        return VerifierRefusal(
            "other_currency", f"Only {currency} can be compared here."
        )
    if asked > Decimal(maximum):
        return VerifierRefusal("over_maximum", f"At most {maximum} {currency}.")
    return None


def recipient_domains(
    sealed: Mapping[str, Any],
    *,
    stage: Stage,
    allow: Sequence[str],
    fields: Sequence[str] = ("to", "cc", "bcc"),
) -> VerifierRefusal | None:
    """Refuse an address in `fields` whose domain is not exactly one of `allow`."""
    domains = {domain.lower() for domain in allow}
    for entry in _collect_addresses(sealed["args"], fields):
        match = _ADDRESS_PATTERN.fullmatch(entry.strip())
        if not match or match[1].rpartition("@")[2].lower() not in domains:
            return VerifierRefusal(
                "recipient_domain", "A recipient is outside the allow-list."
            )
    return None


def required_fields(
    sealed: Mapping[str, Any], *, stage: Stage, fields: Sequence[str]
) -> VerifierRefusal | None:
    """Refuse when one of `fields` is missing or empty."""
    for name in fields:
        if _is_empty(sealed["args"].get(name)):
            return VerifierRefusal("field_missing", f"{name} is missing or empty.")
    return None


def _parse_amount(value: Any) -> Decimal | None:
    """Accept decimal text only: no float, exponent, sign or infinity."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
        return Decimal(value)
    return None


def _collect_addresses(args: Mapping[str, Any], fields: Sequence[str]) -> Iterator[str]:
    for name in fields:
        value = args.get(name)
        for entry in value if isinstance(value, list) else [value]:
            if not _is_empty(entry):
                yield str(entry)


def _is_empty(value: Any) -> bool:
    return value is None or value in ([], {}) or not str(value).strip()
