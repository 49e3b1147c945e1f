"""Which requests and proposals a person may see or decide, and who may settle an
unknown outcome."""

from __future__ import annotations

from collections.abc import Collection

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from assurance import second_reviews
from journal.clock import ClockTimestamp
from journal.errors import NotPermitted
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN, RequestStatus, Scope
from reviews.models import (
    ApprovalRequest,
    Decision,
    Execution,
    Proposal,
    RequestVersion,
    Revision,
    SecondReview,
    Stop,
)
from reviews.permissions import DeciderFacts
from reviews.roles import Permission


def select_visible_requests(person: Person) -> QuerySet[ApprovalRequest]:
    """Requests in the person's queues and of their own agents, or all by role.

    The person's own canaries are among them, and nobody else's; what the person may
    review a second time is not, since it says how the first reviewer decided. Every
    page, the API for people and the live updates use this one rule, so that nobody can
    tell a canary from a request by asking at two places.
    """
    requests = ApprovalRequest.with_canaries.filter(
        canary_for__in=["", person.public_id]
    )
    blind = select_unanswered_reviews(person)
    requests = requests.exclude(pk__in=blind.values("decision__request"))
    if permissions.has_permission(person, Permission.SEE_ALL):
        return requests
    return requests.filter(
        Q(queue__in=permissions.queues_of(person))
        | Q(barred__contains=[person.public_id])
    )


def find_visible_request(person: Person, request_id: str) -> ApprovalRequest | None:
    """The request with its proposal and queue; None when there is none that this person
    may see, by the same rule as `select_visible_requests`: a test compares the two."""
    try:
        request = ApprovalRequest.with_canaries.get_with_proposal(request_id)
    except ObjectDoesNotExist:
        return None
    return request if is_visible_request(person, request) else None


def is_visible_request(person: Person, request: ApprovalRequest) -> bool:
    """Whether this person may see the request, by the same rule as
    `select_visible_requests`: a test compares the two."""
    if request.canary_for not in {"", person.public_id}:
        return False
    return not awaits_second_review(person, request) and (
        permissions.has_permission(person, Permission.SEE_ALL)
        or request.queue_id in permissions.queues_of(person)
        or person.public_id in request.barred
    )


def select_unanswered_reviews(person: Person) -> QuerySet[SecondReview]:
    """The second reviews that this person may answer. Until somebody did, the person
    reads nothing else about their requests: neither page nor list nor log record."""
    return second_reviews.select_open_reviews(person, ClockTimestamp())


def awaits_second_review(person: Person, request: ApprovalRequest) -> bool:
    """Whether this person may review the request a second time, by the same rule."""
    if request.status in OPEN or request.canary:
        return False
    reviews = select_unanswered_reviews(person).filter(decision__request=request)
    return reviews.exists()


def select_visible_proposals(person: Person) -> QuerySet[Proposal]:
    """Proposals by the same rule; one without a request belongs to its tool's queue. Of
    canaries only those that the person may still decide."""
    own = ApprovalRequest.with_canaries.filter(
        canary=True, canary_for=person.public_id, status=RequestStatus.PENDING
    )
    # No join: it would read the request of every proposal.
    proposals = Proposal.with_canaries.filter(
        Q(canary=False) | Q(pk__in=own.values("proposal"))
    )
    blind = select_unanswered_reviews(person)
    proposals = proposals.exclude(pk__in=blind.values("decision__request__proposal"))
    if permissions.has_permission(person, Permission.SEE_ALL):
        return proposals
    queues = permissions.queues_of(person)
    home = Revision.objects.filter(proposal=OuterRef("pk"), tool__queue__in=queues)
    return proposals.filter(
        Q(barred__contains=[person.public_id])
        | Q(request__queue__in=queues)
        | Exists(home)
    )


def select_newest(proposals: QuerySet[Proposal], most: int) -> QuerySet[Proposal]:
    """The newest of these proposals, at most so many. One query finds the time of the
    oldest: a list of so many ids would be joined to the whole table."""
    times = proposals.order_by("-created_at").values_list("created_at", flat=True)
    earlier = list(times[most : most + 1])
    return proposals.filter(created_at__gt=earlier[0]) if earlier else proposals


def select_decidable(person: Person) -> QuerySet[ApprovalRequest]:
    """Pending, unexpired requests that `permissions.check_can_decide` accepts.

    The same rule as a query, for lists; a test compares the two.
    """
    role = permissions.find_deciding_role(person)
    if role is None:
        return ApprovalRequest.objects.none()
    me = person.public_id
    stops = Stop.objects.filter(scope=Scope.REVIEWER, key=me, lifted_at__isnull=True)
    requests = ApprovalRequest.with_canaries.filter(
        ~Exists(stops),
        canary_for__in=["", me],
        status=RequestStatus.PENDING,
        expires_at__gt=ClockTimestamp(),
        queue__in=permissions.queues_of(person),
    ).exclude(Q(barred__contains=[me]) | Q(closed_to__contains=[me]))
    return (
        requests if role is Role.SUPERVISOR else requests.filter(supervisors_only=False)
    )


def select_current_versions() -> QuerySet[RequestVersion]:
    """The current version of each request, with all that a row shows."""
    return RequestVersion.objects.filter(number=F("request__version")).select_related(
        "revision__tool", "revision__policy"
    )


def build_approval_count(request: str = "pk", version: str = "version") -> Coalesce:
    """A subquery: how many approvals count towards the current version. The arguments
    name columns of the outer query."""
    counted = (
        Decision.objects.filter(
            request=OuterRef(request), version=OuterRef(version), counts=True
        )
        .order_by()
        .values("request")
        .annotate(n=Count("pk"))
        .values("n")
    )
    return Coalesce(Subquery(counted), 0)


def list_settlers(execution: Execution) -> list[Person]:
    """The people who may settle this execution's unknown outcome, by the operation's
    own check; in four queries."""
    queue = execution.grant.revision.known_tool.queue_id
    people = permissions.list_people_with_roles(permissions.list_admitted_ids(queue))
    off = _find_stopped_reviewers(people)
    return [person for person in people if _may_settle(person, execution, off)]


def _find_stopped_reviewers(people: Collection[Person]) -> set[str]:
    rows = Stop.objects.filter(scope=Scope.REVIEWER, lifted_at__isnull=True)
    keys = [person.public_id for person in people]
    return set(rows.filter(key__in=keys).values_list("key", flat=True))


def _may_settle(person: Person, execution: Execution, off: Collection[str]) -> bool:
    known = DeciderFacts(stopped=person.public_id in off, votes=permissions.NO_VOTES)
    try:
        permissions.check_can_settle_unknown(person, execution, known)
    except NotPermitted:
        return False
    return True
