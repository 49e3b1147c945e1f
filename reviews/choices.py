"""The words of the gate: statuses, verdicts, scopes and reason codes."""

from __future__ import annotations

from enum import StrEnum


class RequestStatus(StrEnum):
    """Where an approval request stands (gate.md section 3)."""

    PENDING = "pending"
    RECALLABLE = "recallable"  # quorum reached, recall window open
    AUTHORIZED = "authorized"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"


OPEN = (RequestStatus.PENDING, RequestStatus.RECALLABLE)
SETTLED = tuple(status for status in RequestStatus if status not in OPEN)
UNGRANTED = frozenset(SETTLED) - {RequestStatus.AUTHORIZED}  # ended without a yes


class GrantStatus(StrEnum):
    """Where a one-use permission stands."""

    LIVE = "live"
    SPENT = "spent"
    EXPIRED = "expired"
    REVOKED = "revoked"


class ExecutionStatus(StrEnum):
    """Where the attempt at an authorised effect stands."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # known: no effect
    UNKNOWN = "unknown"  # cannot be known
    REFUSED = "refused"  # a re-check said no


FINISHED = (
    ExecutionStatus.SUCCEEDED,
    ExecutionStatus.FAILED,
    ExecutionStatus.REFUSED,
)
# What the form calls an incident over all queues.
EVERY_QUEUE = "every"
# The code of an execution whose outcome a person gave, or a look-up once nobody knew
# it; no tool may say so.
BY_PERSON = "settled_by_person"
BY_LOOK_UP = "settled_by_look_up"


# The source of a proposal that a person made to undo an effect; no agent may say so.
REVERSAL = "reversal"


class Verdict(StrEnum):
    """What a reviewer says."""

    APPROVE = "approve"
    REJECT = "reject"
    MODIFY = "modify"
    ESCALATE = "escalate"


class Scope(StrEnum):
    """What a Stop row switches off."""

    THREAD = "thread"  # key "<agent>/<thread>"
    AGENT = "agent"
    TOOL = "tool"
    REVIEWER = "reviewer"  # key: the person's public id
    EVERYTHING = "everything"  # key ""


# What a switch is over, as people read it; whose decisions one is over has a name.
SCOPE_NOUNS = {
    Scope.THREAD: "Run",
    Scope.AGENT: "Agent",
    Scope.TOOL: "Tool",
    Scope.EVERYTHING: "Everything",
}


class StopMode(StrEnum):
    """Paused keeps what waits; stopped refuses and withdraws it."""

    PAUSED = "paused"
    STOPPED = "stopped"


class BatchStatus(StrEnum):
    """Where a batch stands: `forming` still takes members, `open` does not."""

    FORMING = "forming"
    OPEN = "open"
    DECIDED = "decided"
    DISSOLVED = "dissolved"


class ExportStatus(StrEnum):
    """Where an export of the log stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class AlarmKind(StrEnum):
    """What went against a promise, and stands until somebody dealt with it."""

    NEVER_EXECUTED = "never_executed"  # approved, and it did not run
    WITHOUT_GRANT = "without_grant"  # it ran without a permission of its own
    OTHER_BYTES = "other_bytes"  # what ran is not what was granted
    TWICE = "twice"  # it ran more than once
    WITHOUT_VOTES = "without_votes"  # approved, and its votes are not there
    LATE_REPORT = "late_report"  # what was said of it came too late to count
    DELIVERY_DEAD = "delivery_dead"  # the agent cannot be told of an outcome
    INVALID_OUTCOME = "invalid_outcome"  # an outcome that does not fit its schema
    RESTORED = "restored"  # the database is older than the world
    UNDECIDABLE = "undecidable"  # it waits for people who are not there
    STANDSTILL = "standstill"  # effects are not performed, or sweeps do not run
    UNREADABLE = "unreadable"  # the broker held messages that are none of ours


# May have done harm: a person closes them and says why.
GRAVE = frozenset(
    {
        AlarmKind.WITHOUT_GRANT,
        AlarmKind.OTHER_BYTES,
        AlarmKind.TWICE,
        AlarmKind.WITHOUT_VOTES,
    }
)


class AlarmStatus(StrEnum):
    """Where an alarm stands."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"  # somebody looks at it
    CLOSED = "closed"


class ClosedHow(StrEnum):
    """Who closed an alarm: somebody with a note, or the fact that it holds no more."""

    PERSON = "person"
    ITSELF = "itself"


class RepairStatus(StrEnum):
    """Where a change by hand stands: two people, or none."""

    PROPOSED = "proposed"
    APPLIED = "applied"
    REFUSED = "refused"
    LAPSED = "lapsed"


class RepairSubject(StrEnum):
    """What can be mended by hand. The key of the last two is `<agent>/<thread>`."""

    EXECUTION = "execution"
    THREAD = "thread"
    CHECKPOINT = "checkpoint"


class RepairChange(StrEnum):
    """Every change that can be made by hand; there are no others."""

    SAY_UNKNOWN = "say_unknown"  # claimed, and nobody goes on with it
    NEVER_RUN = "never_run"  # queued, and past its window
    FINISH = "finish"  # the run of a dead agent, as failed
    CHECKPOINT = "checkpoint"  # a new version of where it goes on


class NoteKind(StrEnum):
    """Why somebody wrote on a request's record."""

    NOTE = "note"
    GUIDANCE = "guidance"  # a supervisor's, with a return
    ARBITRATION = "arbitration"  # what a disagreement taught; reopens nothing


class LostHow(StrEnum):
    """How another ended somebody's hold."""

    BROKEN = "broken"
    HANDED_OVER = "handed_over"


class ReasonCode(StrEnum):
    """Why a reviewer decided so; the agent receives the code as data."""

    WRONG_TARGET = "wrong_target"
    WRONG_AMOUNT = "wrong_amount"
    NOT_NEEDED = "not_needed"
    UNSAFE = "unsafe"
    POLICY = "policy"
    UNCLEAR = "unclear"
    DUPLICATE = "duplicate"
    SKIP = "skip"  # do not do this, carry on without it
    VERIFIED = "verified"  # for an approval that needs a reason
    OTHER = "other"


# How a person reads the codes: on panels, in outcomes and in the log.
REASONS: dict[str, str] = {
    ReasonCode.WRONG_TARGET: "Wrong target",
    ReasonCode.WRONG_AMOUNT: "Wrong amount or scope",
    ReasonCode.NOT_NEEDED: "Not needed",
    ReasonCode.UNSAFE: "Unsafe",
    ReasonCode.POLICY: "Against policy",
    ReasonCode.UNCLEAR: "Rationale unclear",
    ReasonCode.DUPLICATE: "Duplicate",
    ReasonCode.SKIP: "Skip this step, carry on",
    ReasonCode.VERIFIED: "Checked, it is right",
    ReasonCode.OTHER: "Other, say which",
}
# What fits each verdict, in the order of the number keys.
OFFERED: dict[Verdict, tuple[ReasonCode, ...]] = {
    Verdict.APPROVE: (ReasonCode.VERIFIED, ReasonCode.OTHER),
    Verdict.MODIFY: (
        ReasonCode.WRONG_AMOUNT,
        ReasonCode.WRONG_TARGET,
        ReasonCode.UNSAFE,
        ReasonCode.POLICY,
        ReasonCode.OTHER,
    ),
    Verdict.REJECT: (
        ReasonCode.WRONG_TARGET,
        ReasonCode.WRONG_AMOUNT,
        ReasonCode.NOT_NEEDED,
        ReasonCode.UNSAFE,
        ReasonCode.POLICY,
        ReasonCode.UNCLEAR,
        ReasonCode.DUPLICATE,
        ReasonCode.SKIP,
        ReasonCode.OTHER,
    ),
    Verdict.ESCALATE: (
        ReasonCode.UNSAFE,
        ReasonCode.POLICY,
        ReasonCode.WRONG_AMOUNT,
        ReasonCode.UNCLEAR,
        ReasonCode.OTHER,
    ),
}


class RevealReason(StrEnum):
    """Why a person has to see a value that the schema marks sensitive."""

    DECIDE = "decide"
    COMPLAINT = "complaint"
    AUDIT = "audit"
    OTHER = "other"


REVEALS: dict[str, str] = {
    RevealReason.DECIDE: "I cannot decide without it",
    RevealReason.COMPLAINT: "A complaint or an incident",
    RevealReason.AUDIT: "An audit",
    RevealReason.OTHER: "Other, say which",
}


class StopReason(StrEnum):
    """Why something is switched off: what a hand in a hurry reaches for."""

    HARM = "harm"
    WRONG = "wrong"
    RUNAWAY = "runaway"
    COMPROMISED = "compromised"
    MAINTENANCE = "maintenance"
    OTHER = "other"


STOP_REASONS: dict[str, str] = {
    StopReason.HARM: "It does harm",
    StopReason.WRONG: "It does the wrong thing",
    StopReason.RUNAWAY: "Too much, too fast",
    StopReason.COMPROMISED: "It may be compromised",
    StopReason.MAINTENANCE: "Maintenance",
    StopReason.OTHER: "Other, say which",
}
