"""The thirty checks: six axes of five. docs/frameworks.md lists them with the same ids
and sentences."""

from __future__ import annotations

from dataclasses import dataclass

AXES = {
    "durable": "Durable state",
    "idempotent": "Idempotent retry",
    "typed": "Strict typing",
    "channels": "Pluggable channels",
    "verified": "Pre-resume verification",
    "admin": "Administrative interface",
}

CHECKS = {
    "durable.nothing_held": (
        "The run suspends and its process ends: no process runs while people decide."
    ),
    "durable.agent_killed": (
        "The agent's process is killed while people decide; the call is performed once."
    ),
    "durable.gate_killed": (
        "The process that keeps the request is killed; the request is still there "
        "and can be decided."
    ),
    "durable.other_process": (
        "Another process resumes without a user message, and the model gets the result."
    ),
    "durable.nested": (
        "A call of a nested agent surfaces, and resumes through its parent."
    ),
    "idempotent.proposed_once": (
        "The code before the pause runs twice; people are asked once."
    ),
    "idempotent.double_resume": (
        "Two processes resume an approved call at once: one effect."
    ),
    "idempotent.effect_retried": (
        "The process is killed right after the effect; the run ends with one effect."
    ),
    "idempotent.late_answer": "An answer that comes again after the end has no effect.",
    "idempotent.duplicate_id": (
        "One call id twice in a message is refused before anything runs."
    ),
    "typed.edit_typed": "Edited arguments arrive with the types of the function.",
    "typed.edit_same_tool": "An edit never changes the tool.",
    "typed.bad_edit": (
        "An edit that breaks the schema is refused, and the call can still be decided."
    ),
    "typed.malformed_answer": (
        "A malformed answer is refused, and the call can still be decided."
    ),
    "typed.bad_call": (
        "A call that breaks the schema is refused before people are asked."
    ),
    "channels.page": "A person decides on a web page, signed in.",
    "channels.people_api": (
        "A person's program decides over HTTP, with a personal token."
    ),
    "channels.terminal": "A person decides at a terminal, under their own name.",
    "channels.mail": "People get an email that links to the request.",
    "channels.webhook": "The agent gets a signed webhook about the decision.",
    "verified.approved_bytes": (
        "The stored call is changed after the approval; other bytes than the "
        "approved ones never run."
    ),
    "verified.unauthorized_answer": "An approval that no person gave has no effect.",
    "verified.expiry": (
        "A request that nobody decides expires: no effect, and it is recorded as "
        "expired."
    ),
    "verified.rejection_holds": (
        "A rejection reaches the model with its reason, and holds against hostile "
        "code beside the adapter."
    ),
    "verified.parallel_identity": (
        "Of two parallel calls, exactly the approved one runs."
    ),
    "admin.queue": "A page lists what waits for this person.",
    "admin.detail": "A page shows the exact arguments of the call.",
    "admin.decision": (
        "A decision is stored with the role of the person who made it, its reason "
        "and its time, and the agent can read it."
    ),
    "admin.log": "A log shows each step of the call to an auditor.",
    "admin.stop": "A person stops the run: nothing of it runs any more.",
}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found. `outcome`: "held", "failed", "absent" (there is nothing to
    check, which scores no point) or "not run" (this gate cannot be asked to)."""

    check: str
    outcome: str
    detail: str = ""

    @property
    def axis(self) -> str:
        """The axis that the check belongs to."""
        return self.check.partition(".")[0]


class CheckFailed(AssertionError):
    """The check does not hold. The text says what happened instead."""


class CheckNotRun(Exception):
    """The kit lacks what the check needs. The text says what."""


def expect(condition: bool, otherwise: str) -> None:
    """Raise CheckFailed with what happened instead, unless the condition holds."""
    if not condition:
        raise CheckFailed(otherwise)
