"""A person's verdict at a terminal, by the rules of the page: on exactly the version,
bytes and state that were shown, and nothing that only the page can ask for.

What needs a fresh password, a second factor, an attention check or an edit is decided
on the request's page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ..calls import Flow
from ..errors import ApiError
from ..people import PeopleOperations, RequestDetail

PAGE_CODES = frozenset({"reauth", "session", "check", "too_fast", "digest_missing"})
"""Refusals that only the page can resolve."""
CHANGED_CODES = frozenset({"stale", "precondition"})
"""Refusals of a verdict on something that has changed since it was shown."""
CLOSED_CODES = frozenset(
    {"decided", "expired", "withdrawn", "escalated", "held", "lease_lapsed"}
    | {"not_yours", "running", "not_found"}
)
"""Refusals that no second try of this person resolves."""

REJECTION_CODES = (
    "wrong_target",
    "wrong_amount",
    "not_needed",
    "unsafe",
    "policy",
    "unclear",
    "duplicate",
    "skip",
    "other",
)
"""The reasons of a rejection, as the agent receives them."""


class VerdictOutcome(StrEnum):
    """What became of a verdict."""

    RECORDED = "recorded"
    PAGE_NEEDED = "page needed"
    CHANGED = "changed"  # since it was shown
    CLOSED = "closed"  # or not this person's to decide
    LEFT = "left"  # the person gave none


@dataclass(frozen=True, slots=True)
class PersonVerdict:
    """What a person said: `approve` or `reject`, and why."""

    verdict: str
    reason_code: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class VerdictResult:
    """What became of a verdict, in a sentence; `request` is the request after it."""

    outcome: VerdictOutcome
    text: str
    request: RequestDetail | None = None


@dataclass(frozen=True, slots=True)
class ShownRequest:
    """What of a request a person was shown: a verdict is about exactly this."""

    id: str
    version: int
    action_hash: str
    reading: str

    @classmethod
    def of_detail(cls, request: RequestDetail) -> ShownRequest:
        """What the request shows now."""
        return cls(request.id, request.version, request.action_hash, request.reading)


def build_approval(reason: str = "") -> PersonVerdict:
    """An approval; the reason is for auditors."""
    return PersonVerdict("approve", "verified", reason)


def find_page_reason(request: RequestDetail, verdict: str) -> str:
    """Why this verdict is given on the page and not here; empty if it may be given
    here."""
    if verdict == "reject":
        return ""
    if request.step_up:
        return "This approval needs your password once more."
    if request.attention_check:
        return "Its page asks a question before it takes this approval."
    return ""


def check_verdict(request: RequestDetail, verdict: str) -> VerdictResult | None:
    """Why this person cannot give this verdict here; None if they can."""
    if request.status == "recallable":
        text = "It is approved. Until it starts, you can undo the approval on its page."
        return VerdictResult(VerdictOutcome.PAGE_NEEDED, text)
    if request.status != "pending":
        text = f"There is nothing to decide: the request is {request.status}."
        return VerdictResult(VerdictOutcome.CLOSED, text)
    if verdict not in request.verdicts:
        text = request.why_not or f"You cannot {verdict} this request."
        return VerdictResult(VerdictOutcome.CLOSED, text)
    if text := find_page_reason(request, verdict):
        return VerdictResult(VerdictOutcome.PAGE_NEEDED, text)
    return None


def list_verdicts(request: RequestDetail) -> tuple[str, ...]:
    """The verdicts that this person can give here."""
    given = ("approve", "reject")
    return tuple(
        verdict for verdict in given if check_verdict(request, verdict) is None
    )


def submit_verdict(
    people: PeopleOperations, shown: ShownRequest, said: PersonVerdict
) -> Flow[VerdictResult]:
    """Give the verdict on what was shown.

    Returns what became of it. Raises ApiError for every refusal that is about the
    verdict's words or about this moment, and Unreachable.
    """
    body = {
        "version": shown.version,
        "action_hash": shown.action_hash,
        "reading": shown.reading,
        "verdict": said.verdict,
        "reason_code": said.reason_code,
        "reason": said.reason,
    }
    try:
        request = yield from people.decide(shown.id, body)
    except ApiError as error:
        outcome = find_outcome(error)
        if outcome is None:
            raise
        return VerdictResult(outcome, error.detail)
    return VerdictResult(
        VerdictOutcome.RECORDED, describe_recorded(request, said), request
    )


def find_outcome(error: ApiError) -> VerdictOutcome | None:
    """What a refusal means for the verdict; None for one that is an error."""
    for codes, outcome in (
        (PAGE_CODES, VerdictOutcome.PAGE_NEEDED),
        (CHANGED_CODES, VerdictOutcome.CHANGED),
        (CLOSED_CODES, VerdictOutcome.CLOSED),
    ):
        if error.code in codes:
            return outcome
    return None


def describe_recorded(request: RequestDetail, said: PersonVerdict) -> str:
    """What a recorded verdict did."""
    if said.verdict == "reject":
        return "Rejected. The agent receives the reason, not your name."
    if request.status == "pending":
        return "Your approval is recorded. Others must approve, too."
    if request.status == "recallable":
        return "Approved. For a short time you can undo it on its page."
    return "Approved."


Ask = Callable[[str], str]
Show = Callable[[str], object]


def ask_verdict(request: RequestDetail, ask: Ask, show: Show) -> PersonVerdict | None:
    """Ask the person for a verdict until they give one that is possible here; None if
    they leave the request open."""
    allowed = list_verdicts(request)
    words = [*allowed, *(["skip"] if "reject" in allowed else []), "later"]
    question = f"{', '.join(words[:-1])} or {words[-1]}? ".capitalize()
    while True:
        try:
            word = _complete_word(ask(question).strip().lower(), words)
            if word == "later":
                return None
            if word == "approve":
                return build_approval()
            if word == "skip":
                return PersonVerdict("reject", "skip")
            if word == "reject":
                return PersonVerdict("reject", "other", _ask_reason(ask, show))
        except EOFError:
            return None
        show(f"Type one of: {', '.join(words)}.")


def _ask_reason(ask: Ask, show: Show) -> str:
    while True:
        reason = ask("Reason for the agent: ").strip()
        if reason:
            return reason
        show("A rejection needs a reason: the agent reads it.")


def _complete_word(given: str, words: list[str]) -> str:
    """The word that begins so; empty if none does, or several do."""
    found = [word for word in words if given and word.startswith(given)]
    return found[0] if len(found) == 1 else ""
