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
from reviews.governance.voters import Counted, Voter
from reviews.models import ApprovalRequest, RequestVersion
from reviews.requests.versions import escalated_steps

ONE = {"supervisors": "supervisor", "people": "person"}
THERE = {0: "none is", 1: "only 1 is"}


@dataclass(frozen=True, slots=True)
class Choice:
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


def choice(
    person: Person,
    request: ApprovalRequest,
    version: RequestVersion,
    votes: Counted,
    people: Sequence[Voter],
) -> Choice:
    """Build the choice of a person who may decide; `people` are the voters of the
    request's queue, `votes` those that count so far."""
    found = lacking(person, request, version, votes, people)
    return Choice(
        permissions.why_uncounted(person, version, [step for step, _ in votes]),
        f"It cannot be escalated: {too_few(found)}." if found else "",
    )


def too_few(lacking: Shortage) -> str:
    """The shortage as text: `3 other supervisors would be needed, and only 1 is
    there`."""
    who = ONE[lacking.who] if lacking.needed == 1 else lacking.who
    there = THERE.get(lacking.there, f"only {lacking.there} are")
    return f"{lacking.needed} other {who} would be needed, and {there} there"


def lacking(
    person: Person,
    request: ApprovalRequest,
    version: RequestVersion,
    votes: Counted,
    people: Sequence[Voter],
) -> Shortage | None:
    """The people who would be missing if this person escalated the request; None when
    there would be enough."""
    return voters.lacking_when_asked(
        escalated_steps(version, [step for step, _ in votes]),
        people,
        request,
        version,
        votes,
        without=person.public_id,
    )
