"""The page that issues a standing grant from a request, and the list of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from journal import canonical, clock
from journal.errors import DomainError, NotFound
from policies import active
from policies.documents import StandingTerms
from policies.models import Person, StandingGrant
from reviews import permissions
from reviews.effects import describe
from reviews.models import ApprovalRequest
from reviews.presenters.shapes import SentencePart
from reviews.roles import Permission
from reviews.standing_grants import issuance

from ..components import visibility

MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class IssuePage:
    """What a standing grant from this request would allow; without `terms`, `why_not`
    says why it cannot be issued."""

    request: ApprovalRequest
    effect: Sequence[SentencePart]
    terms: StandingTerms | None
    shown: str  # what the form sends back
    until: datetime | None
    why_not: str


def build_issue_page(person: Person, pk: str) -> IssuePage:
    """Raises NotFound for a request that this person may not see."""
    request = visibility.find_visible_request(person, pk)
    if request is None:
        raise NotFound
    now = clock.now()
    terms, why_not = _find_terms(person, request, now)
    return IssuePage(
        request=request,
        effect=describe.load_brief(request.sealed.revision).effect,
        terms=terms,
        shown=_format_shown(request, terms),
        until=now + timedelta(minutes=terms.minutes) if terms else None,
        why_not=why_not,
    )


def _format_shown(request: ApprovalRequest, terms: StandingTerms | None) -> str:
    if terms is None:
        return ""
    return canonical.format_shown(issuance.build_shown_terms(request, terms))


def _find_terms(
    person: Person, request: ApprovalRequest, now: datetime
) -> tuple[StandingTerms | None, str]:
    policy = active.find_active_policy()
    try:
        return issuance.check_may_issue(person, request, policy, now), ""
    except DomainError as error:
        return None, error.cause


@dataclass(frozen=True, slots=True)
class StandingGrantLine:
    """One standing grant. `ended` says how it ended; "" while it is in force."""

    grant: StandingGrant
    ended: str
    revocable: bool


def list_standing_grants(person: Person) -> list[StandingGrantLine]:
    """The newest standing grants that this person may see: those of their queues, and
    all for people who see all."""
    return _build_lines(person, select_visible_standing_grants(person))


def list_run_standing_grants(
    person: Person, agent: str, thread: str
) -> list[StandingGrantLine]:
    """The newest standing grants of one run, as far as this person may see them."""
    own = select_visible_standing_grants(person).filter(agent=agent, thread=thread)
    return _build_lines(person, own)


def _build_lines(
    person: Person, rows: QuerySet[StandingGrant]
) -> list[StandingGrantLine]:
    now = clock.now()
    grants = rows.select_related("issued_by", "revoked_by").order_by("-issued_at")
    return [_build_line(person, row, now) for row in grants[:MOST_SHOWN]]


def select_visible_standing_grants(person: Person) -> QuerySet[StandingGrant]:
    """Those of this person's queues; all for people who see everything."""
    if permissions.has_permission(person, Permission.SEE_ALL):
        return StandingGrant.objects.all()
    return StandingGrant.objects.filter(queue__in=permissions.queues_of(person))


def find_standing_grant(person: Person, pk: str) -> StandingGrant:
    """Raises NotFound for one that this person may not see."""
    row = select_visible_standing_grants(person).filter(pk=pk).first()
    if row is None:
        raise NotFound
    return row


def _build_line(person: Person, row: StandingGrant, now: datetime) -> StandingGrantLine:
    ended = describe_end(row, now)
    revocable = not ended and issuance.may_revoke(person, row)
    return StandingGrantLine(row, ended, revocable)


def describe_end(row: StandingGrant, now: datetime) -> str:
    """How it ended; empty while it is in force."""
    if row.revoked_by is not None:
        return f"Revoked by {row.revoked_by}"
    if row.uses >= row.budget:
        return "All uses taken"
    return "Expired" if row.expires_at <= now else ""
