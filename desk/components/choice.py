"""The verdicts on a page: the words for each, which of them a person who may decide a
request can give, by the checks of the operation itself, and whether the page asks an
attention check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.crypto import salted_hmac

from policies import active, tools
from policies.choices import Risk
from policies.models import Person
from policies.staffing import Shortage
from reviews import permissions
from reviews.attention_checks import questions, written_questions
from reviews.attention_checks.questions import AttentionQuestion
from reviews.attention_checks.written_questions import WrittenQuestion
from reviews.choices import Verdict
from reviews.governance import voters
from reviews.governance.voters import CountedVotes, Voter
from reviews.models import ApprovalRequest, Decision, RequestVersion
from reviews.requests.versions import build_escalated_steps, needs_written_answer

from .regions import Regions

# A person who is new to the page gets no sampled question for some decisions, five on
# average. The installation's key draws how many, so that nobody knows when it ends.
MOST_FIRST_DECISIONS = 10


@dataclass(frozen=True, slots=True)
class VerdictWording:
    """What the pages call one verdict. The facts that the gate knows about it are its
    `VerdictSpec`."""

    verb: str
    button: str  # opens the panel; "…" where the panel asks for something
    key: str  # the keyboard shortcut of the button
    heading: str  # of the panel
    commit: str  # the button of the panel
    note_readers: str  # who reads the note: `visible to auditors`
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
        note_readers="visible to auditors",
        vote="Approved",
        batch_effect="You are approving exactly the {many} selected, as shown.",
    ),
    Verdict.MODIFY: VerdictWording(
        verb="Modify",
        button="Modify…",
        key="M",
        heading="Modify, then approve",
        commit="Approve with my changes",
        note_readers="visible to the agent",
        vote="Approved with changes",
    ),
    Verdict.REJECT: VerdictWording(
        verb="Reject",
        button="Reject…",
        key="X",
        heading="Reject",
        commit="Reject",
        note_readers="visible to the agent",
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
        note_readers="visible to the supervisor",
        vote="Escalated",
        batch_effect=(
            "A supervisor must also decide each one separately. You can then no longer"
            " decide them yourself."
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class VerdictChoice:
    """Why approving or escalating is not possible; an empty text means that it is."""

    why_not_approve: str = ""
    why_not_escalate: str = ""

    @property
    def verdicts(self) -> list[Verdict]:
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
    shortage = find_shortage(person, request, version, votes, people)
    return VerdictChoice(
        permissions.describe_why_uncounted(
            person, version, [step for step, _ in votes]
        ),
        describe_shortage(shortage) if shortage else "",
    )


def describe_shortage(lacking: Shortage, what: str = "this") -> str:
    """Why it cannot be escalated, as a sentence about `what`."""
    if not lacking.there:
        return f"Nobody above you can decide {what}."
    return f"You cannot escalate {what}: too few other {lacking.who} can decide."


def find_shortage(
    person: Person,
    request: ApprovalRequest,
    version: RequestVersion,
    votes: CountedVotes,
    people: Sequence[Voter],
) -> Shortage | None:
    """The people who would be missing after an escalation; None if there are enough."""
    return voters.find_shortage_without(
        build_escalated_steps(version, [step for step, _ in votes]),
        people,
        request,
        version,
        votes,
        without=person.public_id,
    )


def find_attention_question(
    regions: Regions, opened: datetime
) -> AttentionQuestion | None:
    """The question that the page asks this person before an approval or an edit of this
    version; None where the policy asks none, or wants a written answer instead.

    `opened` is when the person opened the page: decisions they make elsewhere in the
    meantime add no question.
    """
    sealed, person = regions.sealed, regions.person
    # The policy of the version, so that the question is the same at every try.
    desk = active.load_document(sealed.policy).desk
    often = desk.micro_check.get(Risk(sealed.risk), 0)
    chance = compute_check_seed(person, sealed)
    if not questions.is_check_due(chance, often):
        return None
    shown = regions.shown
    if shown is None or (often > 1 and _is_new_reviewer(person, opened)):
        return None
    if find_written_question(regions) is not None:
        return None  # one task a decision
    schema = tools.load_definition(sealed.revision.known_tool).arguments
    return questions.build_question(shown, chance, schema)


def find_written_question(regions: Regions) -> WrittenQuestion | None:
    """The question about a risk indicator that an approval or an edit of this version
    must answer in writing; None where it need not."""
    sealed, shown = regions.sealed, regions.shown
    question = written_questions.build_written_question(shown) if shown else None
    indicators = [question.indicator.value] if question else []
    return question if needs_written_answer(sealed, indicators) else None


def compute_check_seed(person: Person, sealed: RequestVersion) -> bytes:
    text = f"{sealed.request_id}:{sealed.number}:{person.public_id}"
    return salted_hmac("reviews.micro_checks", text, algorithm="sha256").digest()


def _is_new_reviewer(person: Person, opened: datetime) -> bool:
    first = draw_first_decisions(person.public_id)
    decisions = Decision.objects.filter(reviewer=person, at__lte=opened)
    return decisions[:first].count() < first


def draw_first_decisions(public_id: str) -> int:
    """How many decisions of this person come without a sampled question: each number
    up to the most is as likely as another."""
    digest = salted_hmac("reviews.first_decisions", public_id, algorithm="sha256")
    return int.from_bytes(digest.digest()[:8]) % (MOST_FIRST_DECISIONS + 1)
