"""Every refusal of the product: one class for each error code of the API and the pages.

The first paragraph of a class's docstring is the text that people and agents read when
the code that raises it gives no other: what happened, what did not happen, and what
they can do.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any, ClassVar, NotRequired, TypedDict


class FieldError(TypedDict):
    """One problem in the input. `path` is like `args.amount`; `line` is the line number
    in a document that a person wrote, counted from 1."""

    path: str
    message: str
    line: NotRequired[int]


_NOTHING_DONE = re.compile(r" Nothing was (?:recorded|changed|allowed|proposed)\.$")


class DomainError(Exception):
    """This was refused. Nothing was changed."""

    code: ClassVar[str] = "refused"
    status: ClassVar[int] = 422

    def __init__(
        self, detail: str = "", *, errors: Iterable[FieldError] = (), **facts: Any
    ) -> None:
        """`detail` replaces the default text. `facts` are extra members of the API's
        answer, such as `retry_after` in seconds."""
        self.detail = detail or self.default_detail()
        self.errors = list(errors)
        self.facts = facts
        super().__init__(self.detail)

    def __init_subclass__(cls, *, code: str = "", status: int = 0) -> None:
        """Give the class a code and an HTTP status, by default those of its base."""
        super().__init_subclass__()
        for name, value in {"code": code, "status": status}.items():
            if value:
                setattr(cls, name, value)

    @property
    def cause(self) -> str:
        """The detail without its last sentence that nothing was recorded, for a page on
        which nobody has tried anything yet."""
        return _NOTHING_DONE.sub("", self.detail)

    @classmethod
    def default_detail(cls) -> str:
        """The first paragraph of the class's docstring, on one line."""
        first = inspect.cleandoc(cls.__doc__ or "").split("\n\n", 1)[0]
        return " ".join(first.split())


def build_field_error(path: str, message: str) -> FieldError:
    """One entry for the `errors` of a DomainError."""
    return {"path": path, "message": message}


# 400 and 415: the request cannot be read.
class EncodedBody(DomainError, code="content_encoding", status=415):
    """Content-Encoding is not supported. Nothing was stored. Send the body as plain
    JSON."""


class InvalidJson(DomainError, code="invalid_json", status=400):
    """The body is not strict JSON. Nothing was stored. Send it again as valid JSON."""


class IdempotencyKeyMissing(DomainError, code="key_missing", status=400):
    """The header Idempotency-Key is missing. Nothing was proposed.
    Send one key per proposal, and the same key when you retry."""


# 401: the caller is not authenticated, or must authenticate again.
class InvalidAgentKey(DomainError, code="bad_key", status=401):
    """This key is missing, wrong, expired or revoked. Nothing was done.
    Ask the agent's owner for a new key."""


class ReauthenticationRequired(DomainError, code="reauth", status=401):
    """Confirm your identity to decide this. Nothing has been decided yet."""


# 403: the caller is known and not allowed to do this.
class ToolNotAllowed(DomainError, code="tool_not_allowed", status=403):
    """This agent may not use this tool. Nothing was proposed.
    The agent's owner can ask an administrator to allow it."""


class AgentStopped(DomainError, code="agent_stopped", status=403):
    """This run, its agent or its tool has been stopped. Nothing was done.
    A person must resume it."""


class NotPermitted(DomainError, code="not_yours", status=403):
    """You are not permitted to do this. Nothing was recorded.
    Someone else must do it."""


class NotAPerson(DomainError, code="not_a_person", status=403):
    """Only people may do this, never an agent key. Nothing was recorded."""


class SignedOut(DomainError, code="session", status=403):
    """You were signed out. Nothing was recorded. Sign in and send it again."""


# 404: it does not exist or the caller may not see it; the answer never tells which.
class NotFound(DomainError, code="not_found", status=404):
    """Not found, or you do not have access. Check the address."""


# 409: the state changed, so the action no longer applies.
class InProgress(DomainError, code="in_progress", status=409):
    """Another call with this key is in progress. Nothing was done twice.
    Try again shortly."""


class GrantSpent(DomainError, code="grant_spent", status=409):
    """This grant has already been used. Nothing ran a second time.
    Report the outcome of the execution you have."""


class StaleFence(DomainError, code="stale_fence", status=409):
    """Another attempt took over this execution. Your outcome was not recorded.
    Read its current state."""


class StaleVersion(DomainError, code="stale", status=409):
    """The request changed while you were reading. Nothing was decided.
    Review the new version."""


class HeldByAnother(DomainError, code="held", status=409):
    """Someone else has claimed this request. Your decision was not recorded.
    Your note is kept below."""


class HoldLapsed(DomainError, code="lease_lapsed", status=409):
    """Your claim ended and someone else claimed the request.
    Your decision was not recorded."""


class AlreadyDecided(DomainError, code="decided", status=409):
    """This has already been decided. Your decision was not recorded."""


class AlreadyEscalated(DomainError, code="escalated", status=409):
    """This was escalated while you were reading. Your decision was not recorded.
    A supervisor must decide it now."""


class PreconditionFailed(DomainError, code="precondition", status=409):
    """The data that this would change has changed. Nothing was done.
    Refresh the comparison and decide again."""


class ToolChanged(DomainError, code="tool_changed", status=409):
    """The tool has changed since this was proposed. Nothing was done.
    Check the current version of the tool and propose the action again."""


class AlreadyRunning(DomainError, code="running", status=409):
    """The action has started, so its approval can no longer be undone.
    Nothing was stopped.
    You can stop the run or propose a reversal."""


class BatchChanged(DomainError, code="batch_changed", status=409):
    """Items of this batch changed or expired since you opened it. None was decided.
    Review the changes, then confirm again."""


class AlreadySentBack(DomainError, code="returned", status=409):
    """This is already with the agent for revision. Nothing was sent.
    Wait for the revision, or decide."""


class QuestionUnanswered(DomainError, code="unanswered", status=409):
    """The agent has not answered your last question yet. Nothing was sent.
    Wait for the answer, decide, or send the request back for revision."""


class NoOpenQuestion(DomainError, code="no_question", status=409):
    """Nobody waits for this answer: there is no such question, or it is answered.
    Nothing was sent. Read the messages again."""


class RoundsUsed(DomainError, code="rounds", status=409):
    """All rounds of this request are used. Nothing was sent."""


class Conflict(DomainError, code="conflict", status=409):
    """Someone else changed this at the same moment. Nothing was done. Try again."""


class IllegalTransition(DomainError, code="conflict", status=409):
    """The current state does not allow this. Nothing was changed.
    Reload to see the current state."""


# 410: too late.
class GrantExpired(DomainError, code="grant_expired", status=410):
    """This grant has expired. Nothing was executed. Propose the action again."""


class RequestExpired(DomainError, code="expired", status=410):
    """This expired before your decision arrived. Nothing was executed.
    The agent can propose it again."""


class RequestWithdrawn(DomainError, code="withdrawn", status=410):
    """The agent withdrew this request. Your decision was not recorded.
    There is nothing to decide."""


# 413 and 422: the input was read and refused.
class TooLarge(DomainError, code="too_large", status=413):
    """The body is too large. Nothing was stored. Split or shorten it."""


class PolicyViolation(DomainError, code="policy", status=422):
    """The policy does not allow this. Nothing was recorded.
    Your other changes are kept."""


class ReasonMissing(DomainError, code="reason", status=422):
    """Choose a reason. Nothing was recorded."""


class TextMissing(ReasonMissing):
    """Enter a text first. Nothing was recorded."""


class TooFast(DomainError, code="too_fast", status=422):
    """You opened this a moment ago. Nothing was recorded.
    Check what changes, then confirm again."""


class EffectUnreadable(DomainError, code="unreadable", status=422):
    """The effect of this request cannot be read, so it cannot be approved. Nothing was
    recorded. Reject the request, and ask the agent to propose the action again."""


class AttentionCheckFailed(DomainError, code="check", status=422):
    """Attention check failed: that is not what this request does.
    Nothing was recorded. Check the request again."""


class DigestMissing(DomainError, code="digest_missing", status=422):
    """This page is incomplete. Nothing was recorded. Reload it."""


class VerifierRefused(DomainError, code="verifier", status=422):
    """A verifier refused this. Your decision was not recorded and your text is kept."""


class InvalidArgs(DomainError, code="invalid_args", status=422):
    """The arguments do not match the tool's schema. Nothing was proposed.
    See `errors` for details."""


class IdempotencyKeyReused(DomainError, code="key_reused", status=422):
    """This key was used with another body. Nothing was proposed. Send a new key."""


class RationaleMissing(DomainError, code="rationale", status=422):
    """This tool requires a rationale. Nothing was proposed.
    Add a rationale and propose again."""


class TooLittleTime(DomainError, code="too_little_time", status=422):
    """Too little time is left for people to decide. Nothing was proposed.
    Propose it earlier or with a longer `expires_in`."""


class InvalidInput(DomainError, code="invalid", status=422):
    """Some fields are unknown or invalid. Nothing was stored.
    See `errors` for details."""


# 429: the caller is too fast. Raise with the fact `retry_after`, in seconds.
class ReviewerRateLimited(DomainError, code="throttle", status=429):
    """You have decided many requests in a short time. This decision was not recorded.
    Wait a minute and try again."""


class AgentRateLimited(DomainError, code="too_many", status=429):
    """This agent sends too many calls. Nothing was proposed.
    Wait for the time that Retry-After gives."""


# 500: a fault of the gate. The caller gets a reference; an alarm tells supervisors.
class InvalidOutcome(DomainError, code="server", status=500):
    """The outcome does not match the published schema. Nothing was changed.
    An alarm was raised. Try again later."""

    def __init__(self, *, proposal: str, places: list[str]) -> None:
        super().__init__()
        self.proposal = proposal
        self.places = places  # paths of the fields that do not fit, never their values


# 503: temporarily unavailable. Raise with `retry_after`, in seconds.
class Unavailable(DomainError, code="unavailable", status=503):
    """Counterseal cannot reach what it needs at the moment. What you sent may not have
    been recorded. Send the same call again shortly, with the same key."""


class DatabaseRestored(DomainError, code="restored", status=503):
    """The database was restored from a backup. Nothing was done. Nothing runs and
    nothing can be decided until two people confirm the restore. Try again then."""
