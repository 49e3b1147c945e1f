"""The words of policy: tiers, risk levels, roles. Ordered where the gate compares."""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    """The authority the policy demands, least first; rules only ever raise it."""

    AUTO = "auto"
    NOTIFY = "notify"
    APPROVE = "approve"
    ESCALATE = "escalate"
    BLOCK = "block"

    @property
    def rank(self) -> int:
        return list(Tier).index(self)


class Risk(StrEnum):
    """How bad the effect can be, least first."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(Risk).index(self)


class Role(StrEnum):
    """What a person is to the gate; the name of a Django group."""

    REVIEWER = "reviewer"
    SUPERVISOR = "supervisor"
    ADMINISTRATOR = "administrator"
    AUDITOR = "auditor"
    OWNER = "agent owner"


class ExecutionClass(StrEnum):
    """What may be done after a crash between claim and record (gate.md section 7)."""

    KEYED = "keyed"  # the provider honours our idempotency key: retry freely
    QUERYABLE = "queryable"  # look up by our reference, then decide
    OPAQUE = "opaque"  # one try; ambiguity is a person's question
