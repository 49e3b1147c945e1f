"""Which records a person may read, and whose names in them.

Votes of others on what is not settled are hidden from everybody who may still decide;
an agent's owner never learns who decided (ux.md 2.1).
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, OuterRef, Q, QuerySet

from journal.models import LogRecord
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN
from reviews.models import ApprovalRequest, Decision, Proposal
from reviews.permissions import Permission

# What says how someone voted.
VOTES = ("decision.",)


def records(person: Person) -> QuerySet[LogRecord]:
    """All for supervisors, administrators and auditors; else one's own decisions and
    one's own agents' runs. Votes of others on what is not settled are left out for
    everybody who may still decide."""
    found = LogRecord.objects.select_related("position")
    if not permissions.allowed(person, Permission.SEE_LOG):
        found = found.filter(_own(person))
    if permissions.roles_of(person) & permissions.NEVER_DECIDE:
        return found
    return found.exclude(others_votes(person))


def _own(person: Person) -> Q:
    decided = Decision.objects.filter(reviewer=person, request=OuterRef("request"))
    mine = Proposal.objects.filter(
        pk=OuterRef("proposal"), barred__contains=[person.public_id]
    )
    return Q(actor_id=person.public_id) | Exists(decided) | Exists(mine)


def others_votes(person: Person) -> Q:
    unsettled = ApprovalRequest.objects.filter(pk=OuterRef("request"), status__in=OPEN)
    votes = Q()
    for prefix in VOTES:
        votes |= Q(kind__startswith=prefix)
    # What a voter did beside it, such as taking it up, tells when they voted.
    voted = Decision.objects.filter(
        request=OuterRef("request"), reviewer__public_id=OuterRef("actor_id")
    )
    votes |= Exists(voted) & ~Q(kind__startswith="request.")
    return votes & Exists(unsettled) & ~Q(actor_id=person.public_id)


def nameless(person: Person) -> Q:
    """Records in which others' names are hidden from this person: a search by name
    must not find them, or it would tell."""
    if permissions.roles_of(person) & permissions.NEVER_DECIDE:
        return Q(pk__in=())
    hidden = ApprovalRequest.objects.filter(pk=OuterRef("request")).filter(
        Q(proposal__barred__contains=[person.public_id]) | Q(status__in=OPEN)
    )
    return Exists(hidden) & ~Q(actor_id=person.public_id)


def records_about(person: Person, request: ApprovalRequest) -> QuerySet[LogRecord]:
    """The history of one request, oldest first, as this person may read it."""
    found = LogRecord.objects.select_related("position").filter(
        proposal=request.proposal_id
    )
    if not permissions.roles_of(person) & permissions.NEVER_DECIDE:
        found = found.exclude(others_votes(person))
    return found.order_by("pk")


def hides_names(person: Person, request: ApprovalRequest) -> bool:
    """Whether this person reads the request's history without others' names."""
    if permissions.roles_of(person) & permissions.NEVER_DECIDE:
        return False
    owned = person.public_id in request.proposal.barred
    return owned or request.status in OPEN


def masked(person: Person, rows: Iterable[LogRecord]) -> set[str]:
    """Requests on which other people's names are not shown to this person."""
    wanted = {row.request for row in rows if row.request}
    if permissions.roles_of(person) & permissions.NEVER_DECIDE:
        return set()
    found = ApprovalRequest.objects.filter(pk__in=wanted)
    owned = Q(proposal__barred__contains=[person.public_id])
    return set(found.filter(owned | Q(status__in=OPEN)).values_list("pk", flat=True))


def names_of(public_ids: Iterable[str]) -> dict[str, str]:
    """Names by public id; the log itself never holds them."""
    found = Person.objects.filter(public_id__in=set(public_ids))
    return {person.public_id: str(person) for person in found}
