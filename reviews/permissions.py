"""Who may do what: roles, admission to queues, and the checks before a decision.

*When* it is legal is in `transitions`, *how many* people it takes in `quorum`, *how
risky* it is in `policies`. Buttons call the same checks that operations enforce.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from journal.errors import AlreadyEscalated, DomainError, NotPermitted
from journal.prepared_queries import ModelColumns, Parameter, PreparedQuery
from journal.statements import Statement
from policies import staffing
from policies.choices import Role
from policies.models import Person
from policies.money import Money, format_money

from . import quorum
from .choices import Scope, StopMode
from .models import (
    ApprovalRequest,
    Decision,
    Execution,
    Preferences,
    RequestVersion,
    Revision,
    Stop,
)
from .people import identities
from .roles import ROLES, Permission

CONCERNED_PREFIX = (
    "You own this agent or requested this action, or the action or its origin contains"
    " your name or a similar one, so someone else must "
)
# Roles, ids of queues, and for whom the person stands in, each as a queue and a person.
Standing = tuple[frozenset[Role], frozenset[int], frozenset[tuple[int, str]]]
# guardian takes several times as long to build such a query. `who` is the person. The
# views of substitutions take most of the time, so they are read for those alone who
# have one that has not been ended.
_ROLES_AND_QUEUES_COLUMNS = """
ARRAY(SELECT role.name::text FROM auth_group AS role
      JOIN policies_person_groups AS held ON held.group_id = role.id
      WHERE held.person_id = who.id),
CASE WHEN EXISTS (SELECT FROM policies_substitution
                  WHERE ended_at IS NULL AND who.id IN (person_id, substitute_id))
     THEN ARRAY(SELECT queue_id FROM policies_admission WHERE person_id = who.id)
     ELSE ARRAY(SELECT queue_id FROM policies_own_admission WHERE person_id = who.id)
END,
CASE WHEN EXISTS (SELECT FROM policies_substitution
                  WHERE ended_at IS NULL AND substitute_id = who.id)
     THEN (SELECT json_agg(json_build_array(held.queue_id, away.public_id))
           FROM policies_substitution_in_force AS held
           JOIN policies_person AS away ON away.id = held.person_id
           WHERE held.substitute_id = who.id)
END
"""
_PREFERENCES = ModelColumns(Preferences, "chosen")
# With the preferences, because a page needs both of its reader.
_ROLES_AND_QUEUES = Statement(f"""
SELECT who.id, {_ROLES_AND_QUEUES_COLUMNS}, {_PREFERENCES.text}
FROM unnest(%(people)s::bigint[]) AS who (id)
LEFT JOIN reviews_preferences AS chosen ON chosen.person_id = who.id
""")  # noqa: S608 constants
_PERSON = ModelColumns(Person, "who")
# A person as a decider: their row, roles, queues, and every stop on their decisions.
DECIDER_COLUMNS = f"""
{_PERSON.text},
{_ROLES_AND_QUEUES_COLUMNS},
(SELECT json_agg(json_build_array(stop.at, stop.lifted_at IS NULL))
 FROM reviews_stop AS stop
 WHERE stop.scope = 'reviewer' AND stop.key = who.public_id)
"""  # noqa: S608 constants
_DECIDERS = Statement(f"""
SELECT {DECIDER_COLUMNS} FROM policies_person AS who
WHERE who.id = ANY(%(people)s::bigint[])
""")  # noqa: S608 constants
_ADMITTED = Statement(
    "SELECT person_id FROM policies_admission WHERE queue_id = %(queue)s"
)


@dataclass(frozen=True, slots=True)
class Decider:
    """A person as read at one moment, with every stop on their decisions: when it was
    set, and whether it is in force."""

    person: Person
    stops: Sequence[tuple[datetime, bool]]

    @property
    def is_stopped(self) -> bool:
        return any(in_force for _, in_force in self.stops)


def build_decider(values: Sequence[Any]) -> Decider | None:
    """Build a decider from the values of `DECIDER_COLUMNS`. None where an outer join
    found nobody."""
    *columns, roles, queues, absent, stops = values
    person = _PERSON.build_row(columns)
    if person is None:
        return None
    person._standing = _build_standing(roles, queues, absent)  # type: ignore[attr-defined]
    return Decider(
        person, [(datetime.fromisoformat(at), holds) for at, holds in stops or ()]
    )


def load_deciders(ids: Collection[int]) -> dict[int, Decider]:
    """These people as deciders, by id. One query."""
    return collect_deciders(_DECIDERS.fetch_all(people=list(ids)))


def collect_deciders(rows: Iterable[Sequence[Any]]) -> dict[int, Decider]:
    """The deciders in rows of `DECIDER_COLUMNS`, by id."""
    deciders = [decider for row in rows if (decider := build_decider(row)) is not None]
    return {decider.person.pk: decider for decider in deciders}


_STOPPED = PreparedQuery(
    lambda: Stop.objects.filter(
        scope=Scope.REVIEWER, key=Parameter("key"), lifted_at__isnull=True
    ).values_list("pk")[:1]
)
_VOTES = PreparedQuery(
    lambda: Decision.objects.filter(request_id__any=Parameter("requests")).values_list(
        "request_id",
        "version",
        "request__version",
        "reviewer__public_id",
        "reviewer__email",
    )
)

_PEOPLE = PreparedQuery(lambda: Person.objects.filter(pk__any=Parameter("people")))


def build_auditor() -> Person:
    """Nobody in particular, with what auditors may read: for commands on the host."""
    person = Person(username="command")
    person._standing = _build_standing([Role.AUDITOR], [])  # type: ignore[attr-defined]
    return person


def roles_of(person: Person) -> frozenset[Role]:
    """The person's roles. One query for this, `queues_of` and the preferences, cached
    on the person."""
    return _load_roles_and_queues(person)[0]


def queues_of(person: Person) -> frozenset[int]:
    """Ids of the queues the person is admitted to, directly, through a role or as a
    substitute; not those that they handed to one.

    Superusers get no queue from that flag. Cached on the person.
    """
    return _load_roles_and_queues(person)[1]


def list_people_with_roles(ids: Collection[int]) -> list[Person]:
    """These people with their current roles, queues and preferences, in two queries."""
    people = _PEOPLE.fetch_all(people=list(ids))
    _attach_roles_and_queues(people)
    return people


def list_represented(person: Person, queue_id: int) -> frozenset[str]:
    """The public ids of those for whom this person stands in in a queue. Cached on the
    person."""
    absent = _load_roles_and_queues(person)[2]
    return frozenset(public_id for queue, public_id in absent if queue == queue_id)


def _load_roles_and_queues(person: Person) -> Standing:
    if not hasattr(person, "_standing"):
        _attach_roles_and_queues([person])
    cached: Standing = person._standing  # type: ignore[attr-defined]
    return cached


def _attach_roles_and_queues(people: Iterable[Person]) -> None:
    """Cache roles, queues and preferences on the people."""
    known = {person.pk: person for person in people}
    relation: Any = Person._meta.get_field("preferences")
    rows = _ROLES_AND_QUEUES.fetch_all(people=list(known))
    for pk, roles, queues, absent, *chosen in rows:
        person = known[pk]
        person._standing = _build_standing(roles, queues, absent)  # type: ignore[attr-defined]
        relation.set_cached_value(person, _PREFERENCES.build_row(chosen))


def _build_standing(
    roles: Collection[str],
    queues: Iterable[int],
    absent: Iterable[tuple[int, str]] | None = None,
) -> Standing:
    return (
        frozenset(role for role in Role if role.value in roles),
        frozenset(queues),
        frozenset((queue, person) for queue, person in absent or ()),
    )


def has_permission(person: Person, permission: Permission) -> bool:
    """Whether any of the person's roles carries the permission."""
    return person.is_active and any(
        permission in ROLES[role] for role in roles_of(person)
    )


def check_permission(person: Person, permission: Permission) -> None:
    """Raises NotPermitted unless one of the person's roles carries the permission."""
    if not has_permission(person, permission):
        raise NotPermitted("Your role does not allow this. Nothing was changed.")


def list_supervisors(queue_id: int | None = None) -> list[Person]:
    """Active supervisors with an address, admitted to this queue (None: to any)."""
    named = Person.objects.filter(
        groups__name=Role.SUPERVISOR, is_active=True, email__gt=""
    )
    people = list_people_with_roles(list(named.values_list("pk", flat=True)))
    return [
        person
        for person in people
        if (queue_id in queues_of(person) if queue_id else queues_of(person))
    ]


def list_deciders(queue_id: int | None, *, roles: Collection[Role]) -> list[Person]:
    """Active people with an address who decide in one of these roles.

    With a queue id only people admitted to that queue; with None everyone who has such
    a role. At most three queries, however many people there are.
    """
    people = list_people_with_roles(
        list_admitted_ids(queue_id) if queue_id else _list_role_holder_ids(roles)
    )
    return [
        person
        for person in people
        if person.email and find_deciding_role(person) in roles
    ]


def list_admitted_ids(queue_id: int) -> list[int]:
    """Ids of all people who are admitted to a queue now."""
    return [pk for (pk,) in _ADMITTED.fetch_all(queue=queue_id)]


def _list_role_holder_ids(roles: Collection[Role]) -> list[int]:
    named = Person.objects.filter(groups__name__in=roles).distinct()
    return list(named.values_list("pk", flat=True))


def find_deciding_role(person: Person) -> Role | None:
    """The role in which the person decides; None when they never decide."""
    if not person.is_active:
        return None
    return staffing.find_deciding_role(roles_of(person))


def never_decides(person: Person) -> bool:
    """Whether the person's roles forbid to decide, so that they may read everything
    that is hidden from those who may."""
    return staffing.never_decides(roles_of(person))


@dataclass(frozen=True, slots=True)
class ReviewerVotes:
    """One person's votes on several requests, cast from any of their accounts."""

    voted: frozenset[str]  # ids of requests whose current version has their vote
    accounts: frozenset[str]  # public ids of their accounts that voted on these


@dataclass(frozen=True, slots=True)
class DeciderFacts:
    """What the checks need to know about one person and several requests, read once."""

    stopped: bool
    votes: ReviewerVotes


NO_VOTES = ReviewerVotes(frozenset(), frozenset())


def load_decider_facts(person: Person, request_ids: Collection[str]) -> DeciderFacts:
    """Load what `check_can_decide` needs for these requests, in two queries."""
    return DeciderFacts(is_reviewer_stopped(person), _load_votes(person, request_ids))


def _load_votes(person: Person, request_ids: Collection[str]) -> ReviewerVotes:
    """One vote per person, however their address is spelled
    (docs/invariants.md I10)."""
    return collect_votes(person, _VOTES.fetch_all(requests=list(request_ids)))


def collect_votes(
    person: Person, rows: Iterable[tuple[str, int, int, str, str]]
) -> ReviewerVotes:
    """The person's votes among all votes on some requests, given as request, version,
    the request's version, and public id and address of who voted."""
    theirs = [
        (request, version == current, public_id)
        for request, version, current, public_id, email in rows
        if public_id == person.public_id
        or identities.is_same_mailbox(email, person.email)
    ]
    return ReviewerVotes(
        frozenset(request for request, is_current, _ in theirs if is_current),
        frozenset({person.public_id, *(public_id for *_, public_id in theirs)}),
    )


def check_admitted_to_queue(
    person: Person, queue_id: int, known: DeciderFacts | None = None
) -> Role:
    """Return the role in which the person decides in this queue.

    `known` saves a query. Raises NotPermitted.
    """
    role = find_deciding_role(person)
    if role is None:
        raise NotPermitted("Your role cannot decide requests. Nothing was recorded.")
    if queue_id not in queues_of(person):
        raise NotPermitted("You are not admitted to this queue. Nothing was recorded.")
    if known.stopped if known else is_reviewer_stopped(person):
        raise NotPermitted("Your decisions are stopped. Nothing was recorded.")
    return role


def check_can_settle_unknown(
    person: Person, execution: Execution, known: DeciderFacts | None = None
) -> None:
    """Check that the person may settle an unknown outcome.

    They must be a supervisor admitted to the tool's queue whose decisions are not
    stopped, and must not be barred from the proposal. Raises NotPermitted.
    """
    check_permission(person, Permission.SETTLE_UNKNOWN)
    if execution.grant.proposal.bars(person.public_id):
        raise NotPermitted(f"{CONCERNED_PREFIX}record what happened.")
    check_admitted_to_queue(person, execution.grant.revision.known_tool.queue_id, known)


def is_reviewer_stopped(person: Person) -> bool:
    """Whether a stop on this reviewer's decisions is in force."""
    return bool(_STOPPED.fetch_all(key=person.public_id))


def check_can_decide(
    person: Person,
    request: ApprovalRequest,
    version: RequestVersion,
    known: DeciderFacts | None = None,
) -> Role:
    """Return the role in which this person may decide this version now.

    The same person never votes twice across all steps and versions in which their vote
    still counts. `known` saves the queries when many requests are checked; an operation
    loads it under its locks. Raises NotPermitted or AlreadyEscalated.
    """
    if request.proposal.bars(person.public_id):  # guard: own-request
        raise NotPermitted(f"{CONCERNED_PREFIX}decide it.")
    if request.canary_for not in {"", person.public_id}:  # guard: own-canary
        raise NotPermitted
    role = check_admitted_to_queue(person, request.queue_id, known)
    absent = list_represented(person, request.queue_id)
    # guard: barred-absent
    if any(map(request.proposal.bars, absent)) or absent & {
        *version.escalated_by,
        *version.edited_by,
        *version.carried,
    }:
        raise NotPermitted(
            "You stand in for somebody who may not decide this. Others must decide it."
        )
    if person.public_id in version.escalated_by:  # guard: own-escalation
        raise AlreadyEscalated(
            "You escalated this. Others must decide it now. Nothing was recorded."
        )
    votes = known.votes if known else _load_votes(person, [request.pk])
    if votes.accounts & set(version.edited_by):  # guard: own-edit
        raise NotPermitted(
            "You changed this, and your change needs another person. Others must decide"
            " it now. Nothing was recorded."
        )
    carried = bool(votes.accounts & set(version.carried))
    if carried or request.pk in votes.voted:  # guard: one-vote
        raise NotPermitted(
            "You have already decided this. Someone else must decide now."
        )
    # guard: supervisor-step
    if not any(quorum.can_fill_step(role, step["role"]) for step in version.steps):
        raise NotPermitted("This needs a supervisor. Nothing was recorded.")
    return role


def describe_why_cannot_decide(
    person: Person,
    request: ApprovalRequest,
    version: RequestVersion,
    known: DeciderFacts | None = None,
) -> str:
    """A sentence that says why the person may not decide; empty when they may."""
    try:
        check_can_decide(person, request, version, known)
    except DomainError as error:
        return error.cause
    return ""


def check_vote_counts(
    person: Person, role: Role, version: RequestVersion, filled: Collection[int]
) -> int:
    """Return the index of the step that this person's approval would fill.

    The caller has checked that the person may decide. `filled` holds the step index of
    every counting vote. Raises NotPermitted when the approval would not count.
    """
    revision = version.revision
    # guard: person-ceiling
    if is_above_ceiling(person, revision.amount_minor, revision.currency):
        raise NotPermitted(describe_ceiling(person, revision))
    place = quorum.find_step_to_fill(version.steps, filled, role)
    if place is None:
        raise NotPermitted(
            "Your step is already complete. Someone else must decide now."
        )
    return place


def describe_why_uncounted(
    person: Person, version: RequestVersion, filled: Collection[int]
) -> str:
    """A sentence that says why their approval would not count; empty when it would."""
    role = find_deciding_role(person)
    try:
        if role is not None:
            check_vote_counts(person, role, version, filled)
    except DomainError as error:
        return error.cause
    return ""


def is_above_ceiling(person: Person, amount_minor: int | None, currency: str) -> bool:
    """Whether an amount (minor units) exceeds what this person may decide.

    An amount in another currency than the person's ceiling counts as above it, and so
    does a whole amount of which no figure is known.
    """
    if amount_minor is None or person.ceiling_minor is None:
        return False
    if Money(amount_minor, currency).is_whole:
        return True
    return currency != person.ceiling_currency or amount_minor > person.ceiling_minor


def describe_ceiling(person: Person, revision: Revision) -> str:
    """A sentence that says why the amount of a revision exceeds this person's
    ceiling."""
    most = format_money(Money(person.ceiling_minor or 0, person.ceiling_currency))
    currency = revision.currency
    if Money(revision.amount_minor or 0, currency).is_whole:
        return (
            f"Your approval limit is {most}, and this asks for the whole amount, of"
            " which Counterseal knows no figure."
        )
    if currency != person.ceiling_currency:
        other = "another currency" if currency else "several currencies"
        return f"Your approval limit is {most}, and this amount is in {other}."
    return f"This amount exceeds your approval limit of {most}."


def check_can_stop(
    person: Person, scope: Scope, mode: StopMode, *, owns: bool = False
) -> None:
    """Check that the person may set this stop; `owns` says they own the agent.

    Raises NotPermitted.
    """
    if owns and scope in {Scope.THREAD, Scope.AGENT} and person.is_active:
        return
    if scope is Scope.REVIEWER:
        check_permission(person, Permission.REVOKE)
    elif scope is Scope.EVERYTHING:
        check_permission(person, Permission.STOP_ALL)
    elif mode == StopMode.PAUSED and scope == Scope.THREAD:
        check_permission(person, Permission.PAUSE)
    else:
        check_permission(person, Permission.STOP)
