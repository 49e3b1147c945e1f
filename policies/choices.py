"""The choices of a policy: tiers, risk levels, roles and execution classes. Tiers and
risk levels are ordered by `rank`."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property


class Tier(StrEnum):
    """The authority that the policy demands, least first. Rules can only raise it."""

    AUTO = "auto"
    NOTIFY = "notify"
    APPROVE = "approve"
    ESCALATE = "escalate"
    BLOCK = "block"

    @cached_property
    def rank(self) -> int:
        return list(Tier).index(self)


# How pages name the authority that each tier demands.
APPROVAL_LABELS = {
    Tier.AUTO: "No approval",
    Tier.NOTIFY: "Notify only",
    Tier.APPROVE: "Approval",
    Tier.ESCALATE: "Supervisor approval",
    Tier.BLOCK: "Blocked",
}


class Risk(StrEnum):
    """How bad the effect can be, least first."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @cached_property
    def rank(self) -> int:
        return list(Risk).index(self)


class Role(StrEnum):
    """A person's role; its value is the name of a Django group."""

    REVIEWER = "reviewer"
    SUPERVISOR = "supervisor"
    ADMINISTRATOR = "administrator"
    AUDITOR = "auditor"
    OWNER = "agent owner"


class ExecutionClass(StrEnum):
    """What a tool's service promises about repetition, and so what the gate may do
    after a crash between claim and record."""

    KEYED = "keyed"  # the service honours our idempotency key: retry freely
    QUERYABLE = "queryable"  # look the effect up by our reference, then decide
    OPAQUE = "opaque"  # one attempt; a person settles an unknown outcome


class StepUpMethod(StrEnum):
    """How a person confirms who they are, as the decision's record names it."""

    PASSWORD = "password"  # noqa: S105 - its name
    TOTP = "totp"
    PASSKEY = "passkey"
    PROVIDER = "provider"  # a fresh sign-in there


STEP_UP_LABELS = {
    StepUpMethod.PASSWORD: "your password",
    StepUpMethod.TOTP: "a code of an authenticator app",
    StepUpMethod.PASSKEY: "a passkey",
    StepUpMethod.PROVIDER: "a fresh sign-in at your identity provider",
}


# What a person has who can use the method.
METHOD_NOUNS = {
    StepUpMethod.PASSWORD: "a password",
    StepUpMethod.TOTP: "an authenticator app",
    StepUpMethod.PASSKEY: "a passkey",
    StepUpMethod.PROVIDER: "an account at the identity provider",
}


def name_methods(methods: Iterable[StepUpMethod]) -> str:
    """What people need who can use one of them: `a passkey or an authenticator
    app`."""
    return " or ".join(METHOD_NOUNS[method] for method in methods)


def describe_methods(methods: Iterable[StepUpMethod]) -> str:
    """Which methods a policy takes, as a sentence."""
    words = " or ".join(STEP_UP_LABELS[method] for method in methods)
    return f"The policy takes {words} at this risk."
