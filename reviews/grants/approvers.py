"""The votes behind a grant, counted again from the Decision rows.

Checks that every vote the version asks for exists, that the voters may still give them,
and that they are enough under the present policy (docs/invariants.md I11, I18).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from journal import encryption
from journal.encryption import is_sealed, seal_content
from journal.prepared_queries import ModelColumns, Parameter, PreparedQuery
from journal.statements import Row, Statement
from policies.choices import Role
from policies.evaluation import Evaluation, RequiredStep
from policies.models import Person, Queue
from reviews import permissions, quorum
from reviews.choices import Verdict
from reviews.models import ApprovalRequest, Decision, RequestVersion, Revision
from reviews.people.identities import normalise_mailbox
from reviews.permissions import Decider
from reviews.quorum import StepData

from .grants import GrantConditions, join_conditions


@dataclass(frozen=True, slots=True)
class ApproverVote:
    """An approval that counted. `place` is the role that its step asks for; "" for one
    carried over from an earlier version."""

    decider: Decider  # as they are now
    place: str
    proof: str = ""  # the method of its step-up; "" without one
    at: datetime | None = None

    @property
    def person(self) -> Person:
        return self.decider.person

    @property
    def role(self) -> Role | None:
        """The role in which they would vote now; None when they may not decide."""
        return permissions.find_deciding_role(self.person)


@dataclass(frozen=True, slots=True)
class BallotVersion:
    """The columns of a request's version that counting its votes needs, and whom it
    shuts out."""

    steps: Sequence[StepData]
    carried: Sequence[str]
    action_hash: str
    tier: str
    edited_by: Sequence[str]
    escalated_by: Sequence[str]


class LoggedVote(NamedTuple):
    """A vote as the log recorded it; `action_hash` is that of the version's bytes."""

    reviewer: str
    request: str
    version: int
    action_hash: str
    verdict: str
    counts: bool


def build_ballot_version(version: RequestVersion) -> BallotVersion:
    return BallotVersion(
        version.steps,
        version.carried,
        version.revision.action_hash,
        version.tier,
        version.edited_by,
        version.escalated_by,
    )


@dataclass(frozen=True, slots=True)
class Ballot:
    """A request with what its votes are counted from: its versions by number, its
    counting decisions, oldest version first, and the votes in the log."""

    request: ApprovalRequest
    versions: Mapping[int, BallotVersion]
    cast: Sequence[Decision]
    logged: Collection[LoggedVote]

    @property
    def votes(self) -> list[Decision]:
        """The counting decisions on the newest version, and those it carries over."""
        version = self.versions.get(self.request.version)
        return [
            vote
            for vote in self.cast
            if version is not None
            and (
                vote.version == self.request.version
                or vote.reviewer.public_id in version.carried
            )
        ]


# The votes that the log recorded: JSON lists with the members of `LoggedVote`.
_LOGGED_COLUMN = """
json_agg(json_build_array(
    record.actor_id, record.request, leaf.said -> 'version',
    leaf.said -> 'action_hash', leaf.said -> 'verdict', leaf.said #> '{data,counts}'))
"""
_LOGGED_TABLES = """
journal_logrecord AS record
CROSS JOIN LATERAL (SELECT convert_from(record.leaf, 'UTF8')::json AS said) AS leaf
"""
_REQUEST = ModelColumns(ApprovalRequest, "request")
_QUEUE = ModelColumns(Queue, "queue")
_VOTE = ModelColumns(Decision, "vote")
# The ballot of a proposal and the deciders who voted: a row for each counting vote, or
# one row.
BALLOT_COLUMNS = f"""
{_REQUEST.text}, {_QUEUE.text},
(SELECT json_agg(json_build_array(version.number, version.steps, version.carried,
                                  revision.action_hash, version.tier,
                                  version.edited_by, version.escalated_by))
 FROM reviews_requestversion AS version
 JOIN reviews_revision AS revision ON revision.id = version.revision_id
 WHERE version.request_id = request.id),
(SELECT {_LOGGED_COLUMN} FROM {_LOGGED_TABLES}
 WHERE record.proposal = %(proposal)s AND record.kind = 'decision.recorded'),
{_VOTE.text}, {permissions.DECIDER_COLUMNS}
"""  # noqa: S608 constants
BALLOT_TABLES = """
(SELECT 1) AS always
LEFT JOIN (reviews_approvalrequest AS request
           JOIN policies_queue AS queue ON queue.id = request.queue_id)
     ON request.proposal_id = %(proposal)s
LEFT JOIN (reviews_decision AS vote
           JOIN policies_person AS who ON who.id = vote.reviewer_id)
     ON vote.request_id = request.id AND vote.counts
ORDER BY vote.version
"""
_BALLOT = Statement(f"SELECT {BALLOT_COLUMNS} FROM {BALLOT_TABLES}")  # noqa: S608
_VERSIONS = PreparedQuery(
    lambda: RequestVersion.objects.filter(
        request_id__any=Parameter("requests")
    ).values_list(
        *("request", "number", "steps", "carried", "revision__action_hash", "tier"),
        *("edited_by", "escalated_by"),
    )
)
_LOGGED = Statement(f"""
SELECT record.request, {_LOGGED_COLUMN} FROM {_LOGGED_TABLES}
WHERE record.proposal = ANY(%(proposals)s::text[])
    AND record.kind = 'decision.recorded'
GROUP BY record.request
""")  # noqa: S608 constants
_CAST = PreparedQuery(
    lambda: (
        Decision.objects.filter(request_id__any=Parameter("requests"), counts=True)
        .select_related("reviewer")
        .order_by("version")
    )
)
Deciders = Mapping[int, Decider]


def load_ballot_of_proposal(proposal_id: str) -> tuple[Ballot | None, Deciders]:
    """Load the ballot of a proposal's request, with the request and its queue, and the
    people who voted as they are now. One query. The ballot is None when the policy
    alone decided the proposal."""
    return build_ballot(_BALLOT.fetch_all(proposal=proposal_id))


def build_ballot(rows: Sequence[Row]) -> tuple[Ballot | None, Deciders]:
    """Build the ballot and its deciders from rows of `BALLOT_COLUMNS`."""
    of_queue = _REQUEST.count + _QUEUE.count
    request = _REQUEST.build_row(rows[0][: _REQUEST.count])
    queue = _QUEUE.build_row(rows[0][_REQUEST.count : of_queue])
    if request is None or queue is None:
        return None, {}
    request.queue = queue
    of_vote = of_queue + 2 + _VOTE.count
    deciders = permissions.collect_deciders(row[of_vote:] for row in rows)
    cast = [
        vote
        for row in rows
        if (vote := _VOTE.build_row(row[of_queue + 2 : of_vote])) is not None
    ]
    for vote in cast:
        vote.reviewer = deciders[vote.reviewer_id].person
    versions = {
        number: BallotVersion(*columns) for number, *columns in rows[0][of_queue] or ()
    }
    logged = _build_logged(rows[0][of_queue + 1])
    return Ballot(request, versions, cast, logged), deciders


def _build_logged(rows: Iterable[Sequence[Any]] | None) -> frozenset[LoggedVote]:
    return frozenset(LoggedVote(*row) for row in rows or ())


def load_ballots(requests: Iterable[ApprovalRequest]) -> list[Ballot]:
    """Load the ballots of these requests, in three queries for any number of them."""
    rows = {request.pk: request for request in requests}
    versions: dict[str, dict[int, BallotVersion]] = defaultdict(dict)
    for pk, number, *columns in _VERSIONS.fetch_all(requests=list(rows)):
        versions[pk][number] = BallotVersion(*columns)
    cast: dict[str, list[Decision]] = defaultdict(list)
    for row in _CAST.fetch_all(requests=list(rows)):
        cast[row.request_id].append(row)
    proposals = [request.proposal_id for request in rows.values()]
    logged = _LOGGED.fetch_all(proposals=proposals) if cast else ()
    records: dict[str, Any] = dict(logged)
    return [
        Ballot(request, versions[pk], cast[pk], _build_logged(records.get(pk)))
        for pk, request in rows.items()
    ]


def list_votes(ballot: Ballot, deciders: Deciders | None = None) -> list[ApproverVote]:
    """The counting votes on the current version, and those it carries over. One query
    loads the people, unless all of them are in `deciders`; another one finds the
    carried people."""
    request, versions = ballot.request, ballot.versions
    if request.version not in versions:
        return []
    carried = versions[request.version].carried
    rows = {row.reviewer_id: row for row in ballot.votes}
    named = {row.reviewer.public_id for row in rows.values()}
    others = _list_people(set(carried) - named)
    deciders = deciders or {}
    if not deciders.keys() >= {*rows, *others}:
        deciders = permissions.load_deciders([*rows, *others])
    return [
        *(_build_vote(versions, row, deciders[pk]) for pk, row in rows.items()),
        *(ApproverVote(deciders[pk], "") for pk in others),
    ]


def _list_people(public_ids: Collection[str]) -> list[int]:
    if not public_ids:
        return []
    people = Person.objects.filter(public_id__in=public_ids)
    return list(people.values_list("pk", flat=True))


def _build_vote(
    versions: Mapping[int, BallotVersion], row: Decision, decider: Decider
) -> ApproverVote:
    steps = versions[row.version].steps
    place = steps[row.step or 0]["role"]
    return ApproverVote(decider, place, row.authority["step_up"], row.at)


def without_votes(requests: Iterable[ApprovalRequest]) -> set[str]:
    """Ids of the requests whose recorded votes do not fill every step of their newest
    version.

    The status does not matter. Three queries for any number of requests. The database
    function `reviews_lacks_votes` computes the same for one request, but it cannot
    verify seals.
    """
    return {
        ballot.request.pk
        for ballot in load_ballots(requests)
        if has_unrecorded_vote(ballot) or not has_all_votes(ballot)
    }


def seal_vote(vote: Decision, reviewer: str, version: BallotVersion) -> str:
    """The seal of a vote by the person with this public id. It covers what the version
    asks for as well, and whom it shuts out, so that no other version can take the
    vote's place.

    Not covered: the queue and the proof, which the vote's own authority names; the
    version's deadline, reason and rules, by which no vote is counted; the request's
    copies of these columns, which change only with its version and are compared with
    it; and who is barred, which only grows and is read again before the effect."""
    return seal_content(_build_vote_content(vote, reviewer, version))


def _build_vote_content(
    vote: Decision, reviewer: str, version: BallotVersion
) -> dict[str, Any]:
    return {
        "request": vote.request_id,
        "version": vote.version,
        "asked": [
            version.action_hash,
            version.tier,
            list(version.steps),
            list(version.carried),
        ],
        "reviewer": reviewer,
        "verdict": vote.verdict,
        "counts": vote.counts,
        "step": vote.step,
        "seen": vote.action_hash,
        "authority": vote.authority,
        "conditions": vote.conditions,
        "at": vote.at.astimezone(UTC).isoformat(),
        **_list_excluded(version),
    }


def _list_excluded(version: BallotVersion) -> dict[str, list[str]]:
    excluded = {"edited_by": version.edited_by, "escalated_by": version.escalated_by}
    # guard: vote-seals-excluded
    return {name: list(people) for name, people in excluded.items()}


def has_unrecorded_vote(ballot: Ballot) -> bool:
    """Whether a vote that counts was not cast through Counterseal: it lacks its own
    record in the log, or its seal."""
    return not all(_is_recorded(vote, ballot) for vote in ballot.votes)


def is_sealed_by(vote: Decision, ballot: Ballot, key: bytes) -> bool:
    """Whether the seal of this vote needs this data key."""
    version, reviewer = ballot.versions.get(vote.version), vote.reviewer.public_id
    return version is not None and encryption.is_sealed_by(
        _build_vote_content(vote, reviewer, version), vote.seal, key
    )


def _is_recorded(vote: Decision, ballot: Ballot) -> bool:
    version, reviewer = ballot.versions.get(vote.version), vote.reviewer.public_id
    if version is None:
        return False
    record = LoggedVote(
        reviewer,
        vote.request_id,
        vote.version,
        version.action_hash,
        vote.verdict,
        vote.counts,
    )
    # guard: vote-logged
    if record not in ballot.logged:
        return False
    # guard: vote-sealed
    return is_sealed(_build_vote_content(vote, reviewer, version), vote.seal)


def join_vote_conditions(ballot: Ballot) -> GrantConditions:
    return join_conditions(
        [GrantConditions.from_json(vote.conditions) for vote in ballot.votes]
    )


def load_conditions(
    requests: Iterable[ApprovalRequest],
) -> dict[str, GrantConditions]:
    """The conditions of each request's approvals, by request id. Three queries for any
    number of requests."""
    return {
        ballot.request.pk: join_vote_conditions(ballot)
        for ballot in load_ballots(requests)
    }


def has_all_votes(ballot: Ballot) -> bool:
    """Whether the votes fill every step and every carried vote of the newest
    version."""
    request, versions = ballot.request, ballot.versions
    version = versions.get(request.version)
    if version is None or request.version != max(versions):
        return False
    if version.action_hash != request.action_hash:
        return False
    yes = [vote for vote in ballot.cast if _is_approval(vote, request.action_hash)]
    now = [vote.step for vote in yes if vote.version == request.version]
    before = {vote.reviewer.public_id for vote in yes if vote.version < request.version}
    steps = version.steps
    return (
        bool(steps)  # so that a vote on this version seals what it asks for
        and quorum.is_complete(steps, [step for step in now if step is not None])
        and before.issuperset(version.carried)
    )


def names_other_bytes(ballot: Ballot, action_hash: str) -> bool:
    """Whether an approval that counts names other bytes than these. An editor's vote
    names those that were edited."""
    return any(
        vote.verdict == Verdict.APPROVE and vote.action_hash != action_hash
        for vote in ballot.votes
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
    ceiling above the amount, not have been stopped since the vote, and not have become
    the agent's owner.
    """
    for vote in given:
        person, role = vote.person, vote.role
        valid = (
            role is not None
            and quorum.can_fill_step(role, vote.place or role)
            and request.queue_id in permissions.queues_of(person)
            and not _is_revoked(vote)
            and not _list_voices(person, request.queue_id) & {*request.barred}
            and not permissions.is_above_ceiling(
                person, revision.amount_minor, revision.currency
            )
        )
        if not valid:  # guard: approver-valid
            return False
    return True


def _list_voices(person: Person, queue: int) -> frozenset[str]:
    """The public ids of the person and of those for whom they stand in."""
    return permissions.list_represented(person, queue) | {person.public_id}


def _is_revoked(vote: ApproverVote) -> bool:
    """Whether a stop on the reviewer is in force or was set after the vote. A lifted
    stop still revokes earlier votes: the reviewer has to vote again."""
    # guard: revoked-vote
    return any(
        in_force or (vote.at is not None and at >= vote.at)
        for at, in_force in vote.decider.stops
    )


def has_enough_votes(
    given: Sequence[ApproverVote], asked: Evaluation, *, queue: str
) -> bool:
    """Whether these votes satisfy what the policy demands now, given by people of the
    queue with this name."""
    return (
        can_fill_steps(given, asked.steps)
        and (not asked.step_up or all(vote.proof for vote in given))
        and all(_is_admitted(vote.person, queue) for vote in given)
    )


def can_fill_steps(
    given: Iterable[ApproverVote], steps: Iterable[RequiredStep]
) -> bool:
    """Whether the people who voted can fill these steps in their present roles."""
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
