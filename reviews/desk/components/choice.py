"""Which verdicts a person who may decide a request can give, by the checks of the
operation itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.models import Person
from policies.staffing import Shortage
from reviews import permissions
from reviews.choices import Verdict
from reviews.governance import voters
from reviews.governance.voters import CountedVotes, Voter
from reviews.models import ApprovalRequest, RequestVersion
from reviews.requests.versions import build_escalated_steps

SINGULAR = {"supervisors": "supervisor", "people": "person"}
PRESENT_WORDS = {0: "none is", 1: "only 1 is"}


@dataclass(frozen=True, slots=True)
class VerdictChoice:
    """Why approving or escalating is not possible; an empty text means that it is."""

    why_not_approve: str = ""
    why_not_escalate: str = ""

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts that would be accepted."""
        shut = {
            Verdict.APPROVE: self.why_not_approve,
            Verdict.ESCALATE: self.why_not_escalate,
        }
        return [verdict for verdict in Verdict if not shut.get(verdict)]


def build_verdict_choice(
    person: Person,
    request: ApprovalRequest,
    version: RequestVersion,
    votes: CountedVotes,
    people: Sequence[Voter],
) -> VerdictChoice:
    """Build the choice of a person who may decide; `people` are the voters of the
    request's queue, `votes` those that count so far."""
    found = find_shortage(person, request, version, votes, people)
    return VerdictChoice(
        permissions.describe_why_uncounted(
            person, version, [step for step, _ in votes]
        ),
        f"It cannot be escalated: {describe_shortage(found)}." if found else "",
    )


def describe_shortage(lacking: Shortage) -> str:
    """The shortage as text: `3 other supervisors would be needed, and only 1 is
    there`."""
    who = SINGULAR[lacking.who] if lacking.needed == 1 else lacking.who
    there = PRESENT_WORDS.get(lacking.there, f"only {lacking.there} are")
    return f"{lacking.needed} other {who} would be needed, and {there} there"


def find_shortage(
    person: Person,
    request: ApprovalRequest,
    version: RequestVersion,
    votes: CountedVotes,
    people: Sequence[Voter],
) -> Shortage | None:
    """The people who would be missing if this person escalated the request; None when
    there would be enough."""
    return voters.find_shortage_without(
        build_escalated_steps(version, [step for step, _ in votes]),
        people,
        request,
        version,
        votes,
        without=person.public_id,
    )
