"""Enumerations, labels and facts of the gate: statuses, verdicts, scopes, reason
codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import TextChoices


class RequestStatus(StrEnum):
    """The states of an approval request; docs/states.md has their transitions."""

    PENDING = "pending"
    RECALLABLE = "recallable"  # quorum reached, recall window open
    AUTHORIZED = "authorized"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """The facts of one status of a request. Its edges stand in `transitions`."""

    api_word: str  # the status of its proposal for the agent
    label: str  # for people: "Replaced"
    by: str = ""  # after the label where there is room: "by a later proposal"
    icon: str = "wait"
    open: bool = False  # it can still be decided, or its approval recalled
    voted: bool = False  # people's verdicts led to it
    retracted: bool = False  # by its agent, a stop or a later proposal
    ending: str = ""  # of a call that never ran: "was rejected"


REQUEST_SPECS: Mapping[str, RequestSpec] = {
    RequestStatus.PENDING: RequestSpec("pending", "Pending", open=True),
    RequestStatus.RECALLABLE: RequestSpec("pending", "Approved", open=True, voted=True),
    RequestStatus.AUTHORIZED: RequestSpec("granted", "Approved", voted=True),
    RequestStatus.REJECTED: RequestSpec(
        "rejected", "Rejected", icon="no", voted=True, ending="was rejected"
    ),
    RequestStatus.EXPIRED: RequestSpec(
        "expired", "Expired", icon="void", ending="expired"
    ),
    RequestStatus.WITHDRAWN: RequestSpec(
        "withdrawn", "Withdrawn", icon="stop", retracted=True, ending="was withdrawn"
    ),
    RequestStatus.SUPERSEDED: RequestSpec(
        "superseded",
        "Replaced",
        by="by a later proposal",
        icon="void",
        retracted=True,
        ending="was replaced",
    ),
}
OPEN = tuple(s for s in RequestStatus if REQUEST_SPECS[s].open)
SETTLED = tuple(s for s in RequestStatus if s not in OPEN)
UNGRANTED = tuple(s for s in SETTLED if s is not RequestStatus.AUTHORIZED)
DECIDED = tuple(s for s in SETTLED if REQUEST_SPECS[s].voted)
RETRACTED = tuple(s for s in SETTLED if REQUEST_SPECS[s].retracted)
ANSWERED = tuple(s for s in SETTLED if s not in RETRACTED)  # decided, or expired


class GrantStatus(StrEnum):
    LIVE = "live"
    SPENT = "spent"
    EXPIRED = "expired"
    REVOKED = "revoked"


class ExecutionStatus(StrEnum):
    QUEUED = "queued"
    CLAIMED = "claimed"
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # known to have had no effect
    UNKNOWN = "unknown"  # nobody knows whether it had an effect
    REFUSED = "refused"  # a check before execution failed


@dataclass(frozen=True, slots=True)
class ExecutionSpec:
    """The facts of one status of an execution. Its edges stand in `transitions`."""

    api_word: str  # the status of its proposal for the agent
    label: str  # for people: "Completed"
    key: str  # of the state in markup and styles
    state: str  # in the strip and in rows; `{clock}` is when it began or ended
    recorded: str  # what was on record when a late report arrived
    performed: str = "is about to be performed"  # after "the same action"
    result: str = ""  # beside the time of its end
    icon: str = "wait"
    quarters: int | None = None  # of the icon of a state under way
    in_flight: bool = False  # it waits for an attempt, or one is under way
    effect: bool | None = None  # whether the effect happened; None while nobody knows


EXECUTION_SPECS: Mapping[str, ExecutionSpec] = {
    ExecutionStatus.QUEUED: ExecutionSpec(
        api_word="granted",
        label="Queued",
        key="queued",
        state="Authorized, starting",
        recorded="it was waiting to run",
        quarters=1,
        in_flight=True,
    ),
    ExecutionStatus.CLAIMED: ExecutionSpec(
        api_word="executing",
        label="Running",
        key="running",
        state="Running since{clock}",
        recorded="it was under way",
        icon="run",
        in_flight=True,
    ),
    ExecutionStatus.SUCCEEDED: ExecutionSpec(
        api_word="executed",
        label="Completed",
        key="executed",
        state="Completed{clock}",
        recorded="it was recorded that it happened",
        performed="was performed",
        result="Executed",
        icon="ok",
        effect=True,
    ),
    ExecutionStatus.FAILED: ExecutionSpec(
        api_word="failed",
        label="Failed",
        key="failed",
        state="Failed{clock}. Nothing was changed.",
        recorded="it was recorded that it did not happen",
        performed="failed",
        result="Failed, nothing was changed",
        icon="no",
        effect=False,
    ),
    ExecutionStatus.UNKNOWN: ExecutionSpec(
        api_word="unknown",
        label="Result unknown",
        key="unknown",
        state="Result unknown",
        recorded="its result was unknown",
        performed="may have been performed",
        icon="ask",
    ),
    ExecutionStatus.REFUSED: ExecutionSpec(
        api_word="refused",
        label="Refused",
        key="refused",
        state="Refused{clock}. Nothing was executed.",
        recorded="it had been refused",
        performed="was not performed",
        result="Refused, nothing was executed",
        icon="void",
        effect=False,
    ),
}
IN_FLIGHT = tuple(s for s in ExecutionStatus if EXECUTION_SPECS[s].in_flight)
ENDED = tuple(s for s in ExecutionStatus if s not in IN_FLIGHT)
# Final, but for the retry of a failed execution that a person may ask for.
FINISHED = tuple(s for s in ENDED if EXECUTION_SPECS[s].effect is not None)
UNFINISHED = tuple(s for s in ExecutionStatus if s not in FINISHED)
WITHOUT_EFFECT = tuple(s for s in FINISHED if not EXECUTION_SPECS[s].effect)


def list_in_sql(statuses: Iterable[RequestStatus | ExecutionStatus]) -> str:
    """These statuses for SQL, as in `status IN (...)`: a constant text, not input."""
    return ", ".join(f"'{status}'" for status in statuses)


DECIDED_SQL = list_in_sql(DECIDED)
IN_FLIGHT_SQL = list_in_sql(IN_FLIGHT)
ANSWERED_SQL = list_in_sql(ANSWERED)
# The form value for an incident that covers all queues.
EVERY_QUEUE_VALUE = "every"
# Execution codes for an unknown outcome that a person or a look-up settled. Reserved:
# a tool may not report them.
SETTLED_BY_PERSON = "settled_by_person"
SETTLED_BY_LOOK_UP = "settled_by_look_up"
# The source of a proposal that a person made to undo an effect. Reserved: an agent may
# not use it.
REVERSAL_SOURCE = "reversal"


class Verdict(StrEnum):
    """The answers a reviewer can give; `VERDICT_SPECS` holds the facts of each."""

    APPROVE = "approve"
    REJECT = "reject"
    MODIFY = "modify"
    ESCALATE = "escalate"


class Scope(TextChoices):
    """What a Stop row switches off. A reviewer's stop is shown with the person's name
    in place of the label."""

    THREAD = "thread", "Run"  # key "<agent>/<thread>"
    AGENT = "agent", "Agent"
    TOOL = "tool", "Tool"
    REVIEWER = "reviewer", "Reviewer"  # key: the person's public id
    EVERYTHING = "everything", "Everything"  # key ""


SCOPE_NOUNS: dict[Scope, str] = {scope: scope.label for scope in Scope}


class StopMode(StrEnum):
    """A pause keeps what is waiting; a stop refuses and withdraws it."""

    PAUSED = "paused"
    STOPPED = "stopped"


class BatchStatus(StrEnum):
    """The states of a batch: `forming` still takes members, `open` does not."""

    FORMING = "forming"
    OPEN = "open"
    DECIDED = "decided"
    DISSOLVED = "dissolved"


class ExportStatus(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class DatasetStatus(StrEnum):
    """The states of a dataset, which needs the consent of a second administrator."""

    ASKED = "asked"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"  # by the administrator who asked
    LAPSED = "lapsed"  # nobody answered in time


class AlarmKind(StrEnum):
    """What an alarm reports: something that contradicts a promise of the system."""

    NEVER_EXECUTED = "never_executed"  # approved, but it did not run
    NOT_TAKEN_UP = "not_taken_up"  # approved, but nobody has begun it yet
    WITHOUT_GRANT = "without_grant"  # it ran without its own grant
    OTHER_BYTES = "other_bytes"  # what ran differs from what was granted
    TWICE = "twice"  # it ran more than once
    WITHOUT_VOTES = "without_votes"  # approved, but the votes are missing
    LATE_REPORT = "late_report"  # a report arrived too late to count
    DELIVERY_DEAD = "delivery_dead"  # the agent cannot be notified of an outcome
    INVALID_OUTCOME = "invalid_outcome"  # an outcome that does not fit its schema
    RESTORED = "restored"  # the database was restored from a backup
    PROMOTED = "promoted"  # a standby took over, and nothing was lost
    UNDECIDABLE = "undecidable"  # too few people can decide it
    STANDSTILL = "standstill"  # effects are not executed, or sweeps do not run
    UNREADABLE = "unreadable"  # the broker held messages that are not ours
    LOG_STALLED = "log_stalled"  # an open transaction holds back the log's positions
    THRESHOLD = "threshold"  # a rate crossed a threshold of the policy


class AlarmStatus(StrEnum):
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"  # somebody is looking into it
    CLOSED = "closed"


class ClosedHow(StrEnum):
    PERSON = "person"
    ITSELF = "itself"


class RepairStatus(StrEnum):
    PROPOSED = "proposed"
    APPLIED = "applied"
    REFUSED = "refused"
    LAPSED = "lapsed"


class QuestionStatus(StrEnum):
    """The states of a question of an agent to people."""

    OPEN = "open"
    ANSWERED = "answered"
    DECLINED = "declined"  # a person will not answer it
    EXPIRED = "expired"  # nobody answered in time
    WITHDRAWN = "withdrawn"  # by its agent, the end of its run, or a stop


class RepairSubject(StrEnum):
    """What can be repaired. The key of the last two is `<agent>/<thread>`."""

    EXECUTION = "execution"
    THREAD = "thread"
    CHECKPOINT = "checkpoint"


class RepairChange(StrEnum):
    SAY_UNKNOWN = "say_unknown"  # claimed, but nobody is working on it
    NEVER_RUN = "never_run"  # queued, but past its execution window
    FINISH = "finish"  # end the run of a dead agent as failed
    CHECKPOINT = "checkpoint"  # a new version of the state to resume from


class NoteKind(StrEnum):
    NOTE = "note"
    GUIDANCE = "guidance"  # a supervisor's, given with a return
    ARBITRATION = "arbitration"  # the lesson of a disagreement; reopens nothing
    MOVE = "move"  # why a supervisor moved the request to another queue


class MessageKind(StrEnum):
    """The kinds of messages between people and an agent about a request."""

    QUESTION = "question"
    ANSWER = "answer"
    GUIDANCE = "guidance"  # a person's, who sent the request back for revision


class LostHow(StrEnum):
    """How another person ended somebody's hold."""

    BROKEN = "broken"
    HANDED_OVER = "handed_over"
    UNANSWERED = "unanswered"  # its offer to the other person, until its time ran out


class ReasonCode(TextChoices):
    """Why a reviewer gave this verdict; the agent receives the code as data. The labels
    are those on panels."""

    WRONG_TARGET = "wrong_target", "Wrong target"
    WRONG_AMOUNT = "wrong_amount", "Wrong amount or scope"
    NOT_NEEDED = "not_needed", "Not needed"
    UNSAFE = "unsafe", "Unsafe"
    POLICY = "policy", "Against policy"
    UNCLEAR = "unclear", "Rationale unclear"
    DUPLICATE = "duplicate", "Duplicate"
    SKIP = "skip", "Skip this step and continue"
    VERIFIED = "verified", "Checked and correct"  # for an approval that needs a reason
    OTHER = "other", "Other (please specify)"


REASON_LABELS: dict[str, str] = dict(ReasonCode.choices)
# Labels of a code that somebody chose: in outcomes, in the log and in figures.
GIVEN_REASON_LABELS = {**REASON_LABELS, ReasonCode.OTHER: "Other"}


@dataclass(frozen=True, slots=True)
class VerdictSpec:
    """The facts of one verdict. What it does stands in `decisions.verdicts`, and its
    words on the pages in `desk.components.choice`."""

    noun: str  # "Your approval has no effect."
    past: str  # in lists and in the log: "modified"
    past_in_full: str  # in a sentence to a person: "changed and approved"
    # The codes offered, in the order of the number keys.
    reasons: tuple[ReasonCode, ...]
    commits: bool = False  # may let the effect happen
    needs_reason: bool = False  # whatever the policy says
    batchable: bool = True  # may be given on a whole batch

    @property
    def label(self) -> str:
        """The given verdict as a label: `Modified`."""
        return self.past.capitalize()


# In the order of the buttons.
VERDICT_SPECS: Mapping[Verdict, VerdictSpec] = {
    Verdict.APPROVE: VerdictSpec(
        noun="approval",
        past="approved",
        past_in_full="approved",
        commits=True,
        reasons=(ReasonCode.VERIFIED, ReasonCode.OTHER),
    ),
    Verdict.MODIFY: VerdictSpec(
        noun="change",
        past="modified",
        past_in_full="changed and approved",
        commits=True,
        batchable=False,
        reasons=(
            ReasonCode.WRONG_AMOUNT,
            ReasonCode.WRONG_TARGET,
            ReasonCode.UNSAFE,
            ReasonCode.POLICY,
            ReasonCode.OTHER,
        ),
    ),
    Verdict.REJECT: VerdictSpec(
        noun="rejection",
        past="rejected",
        past_in_full="rejected",
        needs_reason=True,
        reasons=(
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
    ),
    Verdict.ESCALATE: VerdictSpec(
        noun="escalation",
        past="escalated",
        past_in_full="escalated",
        needs_reason=True,
        reasons=(
            ReasonCode.UNSAFE,
            ReasonCode.POLICY,
            ReasonCode.WRONG_AMOUNT,
            ReasonCode.UNCLEAR,
            ReasonCode.OTHER,
        ),
    ),
}


class StopReason(TextChoices):
    """Why something is stopped: a short list to choose from in a hurry."""

    HARM = "harm", "Causing harm"
    WRONG = "wrong", "Incorrect actions"
    RUNAWAY = "runaway", "Runaway volume"
    COMPROMISED = "compromised", "Possibly compromised"
    MAINTENANCE = "maintenance", "Maintenance"
    OTHER = "other", "Other (please specify)"


STOP_REASON_LABELS: dict[str, str] = dict(StopReason.choices)


class DefectKind(StrEnum):
    """What is wrong with a canary: the library of `assurance.defects`."""

    RECIPIENT_DOMAIN = "recipient_domain"
    EXTRA_BCC = "extra_bcc"
    AMOUNT_TENFOLD = "amount_tenfold"
    OTHER_CURRENCY = "other_currency"
    OTHER_ACCOUNT = "other_account"
    WIDENED_PATH = "widened_path"
    FORCED_COMMAND = "forced_command"
    MISSING_WHERE = "missing_where"
    WIDENED_ROLE = "widened_role"
    UNLIMITED_ACCESS = "unlimited_access"
    WRONG_ENVIRONMENT = "wrong_environment"
    PUBLIC_AUDIENCE = "public_audience"
    OTHER_HOST = "other_host"
    OTHER_TARGET = "other_target"
    LOOKALIKE_LETTER = "lookalike_letter"
    REVERSED_TEXT = "reversed_text"
    HIDDEN_TAIL = "hidden_tail"
    LEAKED_LOGIN = "leaked_login"
    RATIONALE_MISMATCH = "rationale_mismatch"
    CLAIMED_APPROVAL = "claimed_approval"


class CanaryEnding(StrEnum):
    """How a canary ended. Only a decided one counts."""

    DECIDED = "decided"
    # Its reviewer wrote to the agent, handed it on, or allowed such calls in advance.
    ASKED = "asked"
    EXPIRED = "expired"
    STOPPED = "stopped"  # its run or agent was stopped meanwhile


class RealismFlag(StrEnum):
    """What a reviewer says about a revealed canary."""

    OBVIOUS = "obvious"  # they could tell that it was none of an agent's
    UNCLEAR = "unclear"  # what was planted is not clearly a defect


class AuthorityKind(StrEnum):
    """What one administrator asks for a person, and another one confirms."""

    INVITE = "invite"
    WIDEN = "widen"  # another role, more queues, a higher ceiling, another address
    REACTIVATE = "reactivate"
    RESET = "reset"  # a link to choose a new password
    FACTOR = "factor"  # without the second factor, which is lost


class ChangeStatus(StrEnum):
    """The states of a change that needs a second administrator: of the library of
    defects, or of what a person may do."""

    PROPOSED = "proposed"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"  # by the administrator who proposed it
    LAPSED = "lapsed"  # nobody answered in time


class SampleCause(StrEnum):
    """Why a decision is reviewed a second time."""

    SAMPLE = "sample"  # the share that the policy asks for
    FAST = "fast"  # it was made before the minimum reading time
    TARGET = "target"  # its payee or record is in no earlier decided request
