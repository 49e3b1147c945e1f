"""The people whose vote on a request could still count, and whether they are enough.

Used to report requests that nobody can decide any more (docs/invariants.md I12).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet

from journal.prepared_queries import Parameter, PreparedQuery
from policies import solo, staffing
from policies.choices import Role
from policies.documents import StepSpec
from policies.models import Admission, Person
from policies.staffing import Shortage, Staff
from reviews import permissions, quorum
from reviews.choices import RequestStatus, Scope
from reviews.models import ApprovalRequest, Decision, RequestVersion, Stop
from reviews.people.identities import normalise_mailbox
from reviews.quorum import StepData

CountedVotes = Sequence[tuple[int, str]]  # (step index, voter's public id)


@dataclass(frozen=True, slots=True)
class Voter:
    """A person who decides in a queue, and the role in which they would vote."""

    person: Person
    role: Role
    mailbox: str  # identifies the person across accounts: one vote each

    @property
    def id(self) -> str:
        return self.person.public_id


def list_voters(queue_id: int) -> list[Voter]:
    """Everybody who may decide in this queue now, sorted by name; one query."""
    separate = [role.value for role in staffing.separate_roles()]
    people: list[Any] = _VOTERS.fetch_all(queue=queue_id, separate=separate)
    return [
        Voter(
            person,
            Role.SUPERVISOR if person.supervises else Role.REVIEWER,
            normalise_mailbox(person.email) or person.public_id,
        )
        for person in people
    ]


def _select_voters() -> QuerySet[Person]:
    held = Person.groups.through.objects.filter(person_id=OuterRef("pk"))
    decide = [Role.REVIEWER, Role.SUPERVISOR]
    stopped = Stop.objects.filter(
        scope=Scope.REVIEWER, key=OuterRef("public_id"), lifted_at__isnull=True
    )
    admitted = Admission.objects.filter(
        person=OuterRef("pk"), queue_id=Parameter("queue")
    )
    rows = Person.objects.filter(
        Exists(admitted),
        Exists(held.filter(group__name__in=decide)),
        ~Exists(held.filter(group__name__any=Parameter("separate"))),
        ~Exists(stopped),
        is_active=True,
    ).annotate(supervises=Exists(held.filter(group__name=Role.SUPERVISOR)))
    return rows.order_by("first_name", "last_name", "username")


_VOTERS = PreparedQuery(_select_voters)
_COUNTED_VOTES = PreparedQuery(
    lambda: (
        Decision.objects.filter(
            request__any=Parameter("requests"),
            version=F("request__version"),
            counts=True,
        )
        .order_by("pk")
        .values_list("request_id", "step", "reviewer__public_id")
    )
)


def build_undone_condition() -> Exists:
    """Whether a recall took back the vote of a decision, as a subquery of decisions. A
    recall seals the version after the one whose votes it takes back."""
    return Exists(
        RequestVersion.objects.filter(
            request=OuterRef("request"),
            number=OuterRef("version") + 1,
            cause="recalled",
        )
    )


def list_counted_votes(
    request_ids: Collection[str],
) -> dict[str, list[tuple[int, str]]]:
    """The counting votes on the current version of each request, in one query."""
    votes: dict[str, list[tuple[int, str]]] = {pk: [] for pk in request_ids}
    for request, step, reviewer in _COUNTED_VOTES.fetch_all(requests=list(votes)):
        if step is not None:  # for mypy: a constraint pairs `counts` and `step`
            votes[request].append((step, reviewer))
    return votes


def list_remaining_voters(
    people: Iterable[Voter],
    request: ApprovalRequest,
    version: RequestVersion,
    votes: CountedVotes,
) -> list[Voter]:
    """The people whose approval of this version would count."""
    given = [step for step, _ in votes]
    out = _collect_excluded_ids(request, version) | {voter for _, voter in votes}
    return [
        voter
        for voter in _list_eligible_for(version, people, out)
        if quorum.find_step_to_fill(version.steps, given, voter.role) is not None
    ]


def find_shortage(
    people: Iterable[Voter],
    request: ApprovalRequest,
    version: RequestVersion,
    votes: CountedVotes,
) -> Shortage | None:
    """Which people the open steps of this version lack; None when enough are left."""
    out = _collect_excluded_ids(request, version) | {voter for _, voter in votes}
    could = _list_eligible_for(version, people, out)
    return _compute_shortage(version.steps, [step for step, _ in votes], could)


def find_shortage_without(
    steps: Sequence[StepData],
    people: Iterable[Voter],
    request: ApprovalRequest,
    version: RequestVersion,
    votes: CountedVotes,
    *,
    without: str,
) -> Shortage | None:
    """Which people these steps would lack without the person `without` (a public id;
    in solo mode they count all the same). People who filled a completed step are left
    out as well. None when enough are left."""
    missing = quorum.missing(version.steps, [step for step, _ in votes])
    complete = {voter for step, voter in votes if not missing[step]}
    out = _collect_excluded_ids(request, version) | complete
    if not solo.is_solo():
        out.add(without)
    return _compute_shortage(steps, (), _list_eligible_for(version, people, out))


def list_undecidable_requests(
    request_id: str = "",
) -> Iterator[tuple[str, int, Shortage]]:
    """Yield each pending request that too few people can decide. Yields its id, its
    version and the people it lacks. `request_id` limits the check to one request. Takes
    a few queries in all, and one for each queue."""
    rows = ApprovalRequest.objects.filter(status=RequestStatus.PENDING)
    if request_id:
        rows = rows.filter(pk=request_id)
    # Without a join to the versions: the planner might start with all versions ever.
    waiting = list(
        rows.order_by("pk").values_list("pk", "version", "queue", "barred", "closed_to")
    )
    asked = _load_asked_steps([pk for pk, *_ in waiting])
    votes = list_counted_votes([pk for pk, *_ in waiting])
    people: dict[int, list[Voter]] = {}
    for pk, number, queue, barred, closed_to in waiting:
        if queue not in people:
            people[queue] = list_voters(queue)
        steps, amount, currency = asked[pk, number]
        could = list_eligible_voters(
            people[queue], {*barred, *closed_to}, amount, currency
        )
        lacking = _compute_shortage(steps, [step for step, _ in votes[pk]], could)
        if lacking:
            yield pk, number, lacking


def _load_asked_steps(
    request_ids: Collection[str],
) -> dict[tuple[str, int], tuple[Sequence[StepData], int | None, str]]:
    columns = ("steps", "revision__amount_minor", "revision__currency")
    versions = RequestVersion.objects.filter(request__in=request_ids)
    rows = versions.values_list("request", "number", *columns)
    return {
        (pk, number): (steps, amount, currency)
        for pk, number, steps, amount, currency in rows
    }


def _collect_excluded_ids(
    request: ApprovalRequest, version: RequestVersion
) -> set[str]:
    proposal = request.proposal
    barred = {*proposal.barred, *proposal.kept_out}
    return barred | {*version.carried, *version.escalated_by, *version.edited_by}


def _list_eligible_for(
    version: RequestVersion, people: Iterable[Voter], out: Collection[str]
) -> list[Voter]:
    revision = version.revision
    return list_eligible_voters(people, out, revision.amount_minor, revision.currency)


def list_eligible_voters(
    people: Iterable[Voter],
    out: Collection[str],
    amount_minor: int | None,
    currency: str,
) -> list[Voter]:
    """One voter per person who is not in `out` and may decide this amount."""
    known = list(people)
    gone = {voter.mailbox for voter in known if voter.id in out}
    able = {
        voter.mailbox: voter
        for voter in known
        if voter.mailbox not in gone
        and not permissions.is_above_ceiling(voter.person, amount_minor, currency)
    }
    return list(able.values())


def _compute_shortage(
    steps: Sequence[StepData], given: Iterable[int], people: Iterable[Voter]
) -> Shortage | None:
    staff = Staff()
    for voter in people:
        supervises = voter.role is Role.SUPERVISOR
        (staff.supervisors if supervises else staff.reviewers).add(voter.person.pk)
    missing = quorum.missing(steps, given)
    return staff.lacks(
        StepSpec(role=Role(step["role"]), required=count)
        for step, count in zip(steps, missing, strict=True)
        if count
    )
