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
class EncodedBody(DomainError):
    """Content-Encoding is not supported. Nothing was stored. Send the body as plain
    JSON."""

    code = "content_encoding"
    status = 415


class InvalidJson(DomainError):
    """The body is not strict JSON. Nothing was stored. Send it again as valid JSON."""

    code = "invalid_json"
    status = 400


class IdempotencyKeyMissing(DomainError):
    """The header Idempotency-Key is missing. Nothing was proposed.
    Send one key per proposal, and the same key when you retry."""

    code = "key_missing"
    status = 400


# 401: the caller is not authenticated, or must authenticate again.
class InvalidAgentKey(DomainError):
    """This key is missing, wrong, expired or revoked. Nothing was done.
    Ask the agent's owner for a new key."""

    code = "bad_key"
    status = 401


class ReauthenticationRequired(DomainError):
    """Confirm your identity to decide this. Nothing has been decided yet."""

    code = "reauth"
    status = 401


# 403: the caller is known and not allowed to do this.
class ToolNotAllowed(DomainError):
    """This agent may not use this tool. Nothing was proposed.
    The agent's owner can ask an administrator to allow it."""

    code = "tool_not_allowed"
    status = 403


class AgentStopped(DomainError):
    """This run, its agent or its tool has been stopped. Nothing was done.
    A person must resume it."""

    code = "agent_stopped"
    status = 403


class NotPermitted(DomainError):
    """You are not permitted to do this. Nothing was recorded.
    Someone else must do it."""

    code = "not_yours"
    status = 403


class NotAPerson(DomainError):
    """Only people may do this, never an agent key. Nothing was recorded."""

    code = "not_a_person"
    status = 403


class SignedOut(DomainError):
    """You were signed out. Nothing was recorded. Sign in and send it again."""

    code = "session"
    status = 403


# 404: it does not exist or the caller may not see it; the answer never tells which.
class NotFound(DomainError):
    """Not found, or you do not have access. Check the address."""

    code = "not_found"
    status = 404


# 409: the state changed, so the action no longer applies.
class InProgress(DomainError):
    """Another call with this key is in progress. Nothing was done twice.
    Try again shortly."""

    code = "in_progress"
    status = 409


class GrantSpent(DomainError):
    """This grant has already been used. Nothing ran a second time.
    Report the outcome of the execution you have."""

    code = "grant_spent"
    status = 409


class StaleFence(DomainError):
    """Another attempt took over this execution. Your outcome was not recorded.
    Read its current state."""

    code = "stale_fence"
    status = 409


class StaleVersion(DomainError):
    """The request changed while you were reading. Nothing was decided.
    Review the new version."""

    code = "stale"
    status = 409


class HeldByAnother(DomainError):
    """Someone else has claimed this request. Your decision was not recorded.
    Your note is kept below."""

    code = "held"
    status = 409


class HoldLapsed(DomainError):
    """Your claim ended and someone else claimed the request.
    Your decision was not recorded."""

    code = "lease_lapsed"
    status = 409


class AlreadyDecided(DomainError):
    """This has already been decided. Your decision was not recorded."""

    code = "decided"
    status = 409


class AlreadyEscalated(DomainError):
    """This was escalated while you were reading. Your decision was not recorded.
    A supervisor must decide it now."""

    code = "escalated"
    status = 409


class PreconditionFailed(DomainError):
    """The data that this would change has changed. Nothing was done.
    Refresh the comparison and decide again."""

    code = "precondition"
    status = 409


class ToolChanged(DomainError):
    """The tool has changed since this was proposed. Nothing was done.
    Check the current version of the tool and propose the action again."""

    code = "tool_changed"
    status = 409


class AlreadyRunning(DomainError):
    """The action has started, so its approval can no longer be undone.
    Nothing was stopped.
    You can stop the run or propose a reversal."""

    code = "running"
    status = 409


class BatchChanged(DomainError):
    """Items of this batch changed or expired since you opened it. None was decided.
    Review the changes, then confirm again."""

    code = "batch_changed"
    status = 409


class AlreadySentBack(DomainError):
    """This is already with the agent for revision. Nothing was sent.
    Wait for the revision, or decide."""

    code = "returned"
    status = 409


class QuestionUnanswered(DomainError):
    """The agent has not answered your last question yet. Nothing was sent.
    Wait for the answer, decide, or send the request back for revision."""

    code = "unanswered"
    status = 409


class NoOpenQuestion(DomainError):
    """Nobody waits for this answer: there is no such question, or it is answered.
    Nothing was sent. Read the messages again."""

    code = "no_question"
    status = 409


class RoundsUsed(DomainError):
    """All rounds of this request are used. Nothing was sent."""

    code = "rounds"
    status = 409


class Conflict(DomainError):
    """Someone else changed this at the same moment. Nothing was done. Try again."""

    code = "conflict"
    status = 409


class IllegalTransition(DomainError):
    """The current state does not allow this. Nothing was changed.
    Reload to see the current state."""

    code = "conflict"
    status = 409


# 410: too late.
class GrantExpired(DomainError):
    """This grant has expired. Nothing was executed. Propose the action again."""

    code = "grant_expired"
    status = 410


class RequestExpired(DomainError):
    """This expired before your decision arrived. Nothing was executed.
    The agent can propose it again."""

    code = "expired"
    status = 410


class RequestWithdrawn(DomainError):
    """The agent withdrew this request. Your decision was not recorded.
    There is nothing to decide."""

    code = "withdrawn"
    status = 410


# 413 and 422: the input was read and refused.
class TooLarge(DomainError):
    """The body is too large. Nothing was stored. Split or shorten it."""

    code = "too_large"
    status = 413


class PolicyViolation(DomainError):
    """The policy does not allow this. Nothing was recorded.
    Your other changes are kept."""

    code = "policy"
    status = 422


class ReasonMissing(DomainError):
    """Choose a reason. Nothing was recorded."""

    code = "reason"
    status = 422


class TextMissing(ReasonMissing):
    """Enter a text first. Nothing was recorded."""


class TooFast(DomainError):
    """You opened this a moment ago. Nothing was recorded.
    Check what changes, then confirm again."""

    code = "too_fast"
    status = 422


class EffectUnreadable(DomainError):
    """The effect of this request cannot be read, so it cannot be approved. Nothing was
    recorded. Reject the request, and ask the agent to propose the action again."""

    code = "unreadable"
    status = 422


class AttentionCheckFailed(DomainError):
    """Attention check failed: that is not what this request does.
    Nothing was recorded. Check the request again."""

    code = "check"
    status = 422


class DigestMissing(DomainError):
    """This page is incomplete. Nothing was recorded. Reload it."""

    code = "digest_missing"
    status = 422


class VerifierRefused(DomainError):
    """A verifier refused this. Your decision was not recorded and your text is kept."""

    code = "verifier"
    status = 422


class InvalidArgs(DomainError):
    """The arguments do not match the tool's schema. Nothing was proposed.
    See `errors` for details."""

    code = "invalid_args"
    status = 422


class IdempotencyKeyReused(DomainError):
    """This key was used with another body. Nothing was proposed. Send a new key."""

    code = "key_reused"
    status = 422


class RationaleMissing(DomainError):
    """This tool requires a rationale. Nothing was proposed.
    Add a rationale and propose again."""

    code = "rationale"
    status = 422


class TooLittleTime(DomainError):
    """Too little time is left for people to decide. Nothing was proposed.
    Propose it earlier or with a longer `expires_in`."""

    code = "too_little_time"
    status = 422


class InvalidInput(DomainError):
    """Some fields are unknown or invalid. Nothing was stored.
    See `errors` for details."""

    code = "invalid"
    status = 422


# 429: the caller is too fast. Raise with the fact `retry_after`, in seconds.
class ReviewerRateLimited(DomainError):
    """You have decided many requests in a short time. This decision was not recorded.
    Wait a minute and try again."""

    code = "throttle"
    status = 429


class AgentRateLimited(DomainError):
    """This agent sends too many calls. Nothing was proposed.
    Wait for the time that Retry-After gives."""

    code = "too_many"
    status = 429


# 500: a fault of the gate. The caller gets a reference; an alarm tells supervisors.
class InvalidOutcome(DomainError):
    """The outcome does not match the published schema. Nothing was changed.
    An alarm was raised. Try again later."""

    code = "server"
    status = 500

    def __init__(self, *, proposal: str, places: list[str]) -> None:
        super().__init__()
        self.proposal = proposal
        self.places = places  # paths of the fields that do not fit, never their values


# 503: temporarily unavailable. Raise with `retry_after`, in seconds.
class DatabaseRestored(DomainError):
    """The database was restored from a backup. Nothing was done. Nothing runs and
    nothing can be decided until two people confirm the restore. Try again then."""

    code = "restored"
    status = 503
