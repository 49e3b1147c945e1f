"""The votes behind a grant, counted again from the Decision rows.

Checks that every vote the version asks for exists [I18], that the voters may still give
them, and that they are enough under the present policy [I11].
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from policies.choices import Role
from policies.evaluation import Evaluation, RequiredStep
from policies.models import Person, Queue
from reviews import permissions, quorum
from reviews.choices import Scope, Verdict
from reviews.models import ApprovalRequest, Decision, RequestVersion, Revision, Stop
from reviews.people.identities import normalise_mailbox
from reviews.quorum import StepData


@dataclass(frozen=True, slots=True)
class ApproverVote:
    """An approval that counted.

    `place` is the role that its step asks for. `seen` is the approved action hash; ""
    for an editor's vote and for an approval carried over from an earlier version.
    """

    person: Person
    place: str
    seen: str
    proved: bool = True  # with a step-up
    at: datetime | None = None

    @property
    def role(self) -> Role | None:
        """The role in which they would vote now; None when they may not decide."""
        return permissions.find_deciding_role(self.person)


@dataclass(frozen=True, slots=True)
class Ballot:
    """A request with what its votes are counted from: its versions by number, and its
    counting decisions, oldest version first."""

    request: ApprovalRequest
    versions: Mapping[int, RequestVersion]
    cast: Sequence[Decision]


def load_ballot(request: ApprovalRequest) -> Ballot:
    """Load the ballot of one request, in two queries."""
    return load_ballots([request])[0]


def load_ballots(requests: Iterable[ApprovalRequest]) -> list[Ballot]:
    """Load the ballots of these requests, in two queries for any number of them."""
    rows = {request.pk: request for request in requests}
    versions: dict[str, dict[int, RequestVersion]] = defaultdict(dict)
    sealed = RequestVersion.objects.filter(request__in=rows).select_related("revision")
    for version in sealed.only(
        "request", "number", "steps", "carried", "revision__action_hash"
    ):
        versions[version.request_id][version.number] = version
    cast: dict[str, list[Decision]] = defaultdict(list)
    counted = Decision.objects.filter(request__in=rows, counts=True)
    for row in counted.select_related("reviewer").order_by("version"):
        cast[row.request_id].append(row)
    return [Ballot(request, versions[pk], cast[pk]) for pk, request in rows.items()]


def list_votes(ballot: Ballot) -> list[ApproverVote]:
    """The counting votes on the current version, and those it carries over."""
    request, versions = ballot.request, ballot.versions
    if request.version not in versions:
        return []
    carried = versions[request.version].carried
    found = {
        row.reviewer.public_id: _build_vote(versions, row)
        for row in ballot.cast
        if row.version == request.version or row.reviewer.public_id in carried
    }
    others = set(carried) - set(found)
    rows = Person.objects.filter(public_id__in=others) if others else ()
    return [*found.values(), *(ApproverVote(person, "", "") for person in rows)]


def _build_vote(versions: Mapping[int, RequestVersion], row: Decision) -> ApproverVote:
    steps: Sequence[StepData] = versions[row.version].steps
    seen = row.action_hash if row.verdict == Verdict.APPROVE else ""
    place = steps[row.step or 0]["role"]
    return ApproverVote(
        row.reviewer, place, seen, bool(row.authority["step_up"]), row.at
    )


def without_votes(requests: Iterable[ApprovalRequest]) -> set[str]:
    """Ids of the requests whose votes do not fill every step of their newest version.

    The status does not matter. Two queries for any number of requests. The database
    function `reviews_lacks_votes` computes the same for one request.
    """
    return {
        ballot.request.pk
        for ballot in load_ballots(requests)
        if not has_all_votes(ballot)
    }


def has_all_votes(ballot: Ballot) -> bool:
    """Whether the votes fill every step and every carried vote of the newest
    version."""
    request, versions = ballot.request, ballot.versions
    version = versions.get(request.version)
    if version is None or request.version != max(versions):
        return False
    if version.revision.action_hash != request.action_hash:
        return False
    yes = [vote for vote in ballot.cast if _is_approval(vote, request.action_hash)]
    now = [vote.step for vote in yes if vote.version == request.version]
    before = {vote.reviewer.public_id for vote in yes if vote.version < request.version}
    steps: Sequence[StepData] = version.steps
    return (
        bool(steps or version.carried)
        and quorum.is_complete(steps, [step for step in now if step is not None])
        and before.issuperset(version.carried)
    )


def _is_approval(vote: Decision, action_hash: str) -> bool:
    """Whether a vote is for these bytes: an edit made them, an approval names them."""
    if vote.verdict == Verdict.MODIFY:
        return True
    return vote.verdict == Verdict.APPROVE and vote.action_hash == action_hash


def are_approvers_valid(
    given: Iterable[ApproverVote], request: ApprovalRequest, revision: Revision
) -> bool:
    """Whether every approver may still give their vote. Reads only.

    Each must still have the role of their step, be admitted to the queue, have a
    ceiling above the amount, and not have been stopped since the vote.
    """
    given = list(given)
    stopped = _list_reviewer_stops(given)
    for vote in given:
        person, role = vote.person, vote.role
        valid = (
            role is not None
            and quorum.can_fill_step(role, vote.place or role)
            and request.queue_id in permissions.queues_of(person)
            and not _is_revoked(vote, stopped)
            and not permissions.is_above_ceiling(
                person, revision.amount_minor, revision.currency
            )
        )
        if not valid:  # guard: approver-valid
            return False
    return True


def _list_reviewer_stops(given: Sequence[ApproverVote]) -> list[Stop]:
    theirs = [vote.person.public_id for vote in given]
    return list(Stop.objects.filter(scope=Scope.REVIEWER, key__in=theirs))


def _is_revoked(vote: ApproverVote, stopped: Iterable[Stop]) -> bool:
    """Whether a stop on the reviewer is in force or was set after the vote.

    A lifted stop still revokes earlier votes: the reviewer has to vote again.
    """
    # guard: revoked-vote
    return any(
        row.lifted_at is None or (vote.at is not None and row.at >= vote.at)
        for row in stopped
        if row.key == vote.person.public_id
    )


def has_enough_votes(given: Sequence[ApproverVote], asked: Evaluation) -> bool:
    """Whether these votes satisfy what the policy demands now."""
    return (
        _can_fill_steps(given, asked.steps)
        and (not asked.step_up or all(vote.proved for vote in given))
        and all(_is_admitted(vote.person, asked.queue) for vote in given)
    )


def _can_fill_steps(
    given: Iterable[ApproverVote], steps: Iterable[RequiredStep]
) -> bool:
    needed: Counter[Role] = Counter()
    for step in steps:
        needed[step.role] += step.required
    people = {normalise_mailbox(v.person.email) or v.person.public_id: v for v in given}
    have = Counter(vote.role for vote in people.values())
    spare = have[Role.SUPERVISOR] - needed[Role.SUPERVISOR]
    return spare >= 0 and spare + have[Role.REVIEWER] >= needed[Role.REVIEWER]


def _is_admitted(person: Person, queue: str) -> bool:
    queues = Queue.objects.filter(pk__in=permissions.queues_of(person), name=queue)
    return queues.exists()
