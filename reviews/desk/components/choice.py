"""The verdicts on a page: the words for each, and which of them a person who may decide
a request can give, by the checks of the operation itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.models import Person
from policies.staffing import Shortage
from reviews import permissions
from reviews.choices import Verdict
from reviews.governance import voters
from reviews.governance.voters import CountedVotes, Voter
from reviews.models import ApprovalRequest, RequestVersion
from reviews.requests.versions import build_escalated_steps


@dataclass(frozen=True, slots=True)
class VerdictWording:
    """What the pages call one verdict. The facts that the gate knows about it are its
    `VerdictSpec`."""

    verb: str
    button: str  # opens the panel; "…" where the panel asks for something
    key: str  # the keyboard shortcut of the button
    heading: str  # of the panel
    commit: str  # the button of the panel
    note_hint: str  # beside the note: who reads it, and when it is needed
    vote: str  # a given vote, as a supervisor sees it after an escalation
    # What it does to the ticked requests of a batch; `{many}` is how many they are.
    batch_effect: str = ""


VERDICT_WORDINGS: Mapping[Verdict, VerdictWording] = {
    Verdict.APPROVE: VerdictWording(
        verb="Approve",
        button="Approve",
        key="A",
        heading="Approve",
        commit="Approve and run",
        note_hint="optional, visible to auditors",
        vote="Approved",
        batch_effect="You are approving exactly the {many} selected, as shown.",
    ),
    Verdict.MODIFY: VerdictWording(
        verb="Modify",
        button="Modify…",
        key="M",
        heading="Modify, then approve",
        commit="Approve with my changes",
        note_hint="optional, visible to the agent",
        vote="Approved with changes",
    ),
    Verdict.REJECT: VerdictWording(
        verb="Reject",
        button="Reject…",
        key="X",
        heading="Reject",
        commit="Reject",
        note_hint="visible to the agent; required for Other",
        vote="Rejected",
        batch_effect=(
            "None of them will be executed. The agent receives your reason for each,"
            " not your name."
        ),
    ),
    Verdict.ESCALATE: VerdictWording(
        verb="Escalate",
        button="Escalate…",
        key="U",
        heading="Escalate",
        commit="Escalate",
        note_hint="visible to the supervisor; required for Other",
        vote="Escalated",
        batch_effect=(
            "A supervisor must also decide each one separately. You can then no longer"
            " decide them yourself."
        ),
    ),
}

SINGULAR = {"supervisors": "supervisor", "people": "person"}
AVAILABLE_WORDS = {0: "none is", 1: "only 1 is"}


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
        f"You cannot escalate this: {describe_shortage(found)}." if found else "",
    )


def describe_shortage(lacking: Shortage) -> str:
    """The shortage as text: `3 other supervisors are needed, and only 1 is
    available`."""
    who = SINGULAR[lacking.who] if lacking.needed == 1 else lacking.who
    there = AVAILABLE_WORDS.get(lacking.there, f"only {lacking.there} are")
    verb = "is" if lacking.needed == 1 else "are"
    return f"{lacking.needed} other {who} {verb} needed, and {there} available"


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
