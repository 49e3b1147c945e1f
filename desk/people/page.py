"""The page models of people: the list with what waits for a second administrator, and
one person."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.db.models import Count, QuerySet

from agents.models import Agent
from journal.errors import NotFound
from policies import password_links, second_factors, sign_ins, staffing, substitutes
from policies.choices import Role
from policies.models import (
    FederatedIdentity,
    Person,
    ProvisionedPerson,
    Queue,
    Substitution,
)
from policies.money import format_money
from reviews import permissions
from reviews.administration import authority, group_authority
from reviews.choices import AuthorityKind, ChangeStatus
from reviews.models import AuthorityChange, Decision
from reviews.roles import Permission

from ..components import log_lines
from ..components.log_lines import LogLine
from .forms import ROLE_LABELS

LATELY = timedelta(days=30)
NO_PASSWORD = "No password"  # noqa: S105 - a state
MOST_RECORDS = 20  # of one person, shown on their page
KIND_LABELS = {
    AuthorityKind.INVITE: "Invitation",
    AuthorityKind.WIDEN: "More authority",
    AuthorityKind.REACTIVATE: "Reactivation",
    AuthorityKind.RESET: "New password",
    AuthorityKind.FACTOR: "Removal of the second factor",
}
DECIDERS = (Role.REVIEWER, Role.SUPERVISOR)


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One proposed change. `wishes` are what it asks for, in words; `why_not` says why
    this reader may not answer it, and `own` that they proposed it."""

    row: AuthorityChange
    label: str
    wishes: Sequence[str]
    why_not: str
    own: bool


@dataclass(frozen=True, slots=True)
class RecordLine:
    """What was done to a person, as the log has it, and the reason that was typed."""

    line: LogLine
    reason: str


@dataclass(frozen=True, slots=True)
class PersonLine:
    """One person in the list."""

    person: Person
    roles: Sequence[str]
    queues: Sequence[str]
    everywhere: bool
    ceiling: str
    decided: int
    state: str
    mark: str  # of the state: on, off or wait

    @property
    def icon(self) -> str:
        return {"on": "ok", "wait": "wait"}.get(self.mark, "void")


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """The list, its figures, and what waits for an answer."""

    lines: Sequence[PersonLine]
    waiting: Sequence[ChangeLine]
    may_manage: bool
    active: int
    invited: int
    deciding: int

    @property
    def inactive(self) -> int:
        return len(self.lines) - self.active - self.invited


@dataclass(frozen=True, slots=True)
class PersonPage:
    """One person. `open_change` waits for an answer; `link_until` is when the link to
    choose a password ends, None without one."""

    line: PersonLine
    agents: Sequence[Agent]
    history: Sequence[RecordLine]  # newest first
    open_change: ChangeLine | None
    link_until: datetime | None
    may_manage: bool
    own: bool
    factor: bool  # whether they need a second factor to sign in
    sessions: int  # that have not ended
    provider: str  # the identity provider that signs them in; "" for none
    substitutions: Sequence[Substitution]  # in which they are away or stand in
    groups: str | None  # that the provider keeps here; None where it keeps none
    by_provider: bool  # the provider deactivated them, and may let them in again


def build_people_page(person: Person, now: datetime) -> PeoplePage:
    """Everybody with an account, in a fixed number of queries. Raises NotPermitted for
    anybody but administrators and auditors."""
    permissions.check_permission(person, Permission.SEE_PEOPLE)
    lines = _build_lines(Person.objects.exclude(username="AnonymousUser"), now)
    order = {"wait": 0, "on": 1, "off": 2}
    lines.sort(key=lambda line: (order[line.mark], line.person.username))
    deciding = {Role.REVIEWER, Role.SUPERVISOR}
    return PeoplePage(
        lines=lines,
        waiting=[build_change_line(row, person) for row in authority.list_waiting()],
        may_manage=permissions.has_permission(person, Permission.MANAGE_PEOPLE),
        active=sum(line.mark == "on" for line in lines),
        invited=sum(line.mark == "wait" for line in lines),
        deciding=sum(
            line.mark == "on"
            and staffing.find_deciding_role(permissions.roles_of(line.person))
            in deciding
            for line in lines
        ),
    )


def load_person(public_id: str) -> Person:
    """The person with this public id. Raises NotFound."""
    person = Person.objects.filter(public_id=public_id).first()
    if person is None:
        raise NotFound
    return person


def build_person_page(reader: Person, person: Person, now: datetime) -> PersonPage:
    """One person's page. Raises NotPermitted for anybody but administrators and
    auditors."""
    permissions.check_permission(reader, Permission.SEE_PEOPLE)
    (line,) = _build_lines(Person.objects.filter(pk=person.pk), now)
    rows = person.authority_changes.filter(status=ChangeStatus.PROPOSED)
    waiting = rows.select_related("person", "asked_by").first()
    changed = line.person.password_changed_at
    awaited = password_links.is_awaited(line.person) and changed is not None
    return PersonPage(
        line=line,
        agents=list(Agent.objects.filter(owner=person).order_by("slug")),
        history=_list_history(reader, person),
        open_change=build_change_line(waiting, reader) if waiting else None,
        link_until=changed + password_links.LINK_AGE if awaited and changed else None,
        may_manage=permissions.has_permission(reader, Permission.MANAGE_PEOPLE),
        own=reader.pk == person.pk,
        factor=second_factors.has_second_factor(person),
        sessions=len(sign_ins.list_sign_ins(person)),
        provider=_find_provider(person),
        substitutions=substitutes.list_substitutions(person),
        groups=_list_groups(person),
        by_provider=ProvisionedPerson.objects.filter(
            person=person, deactivated_at__isnull=False
        ).exists(),
    )


def _list_history(reader: Person, person: Person) -> list[RecordLine]:
    about = log_lines.select_about([person]).values("pk")
    records = log_lines.select_records(reader).filter(pk__in=about[:MOST_RECORDS])
    rows = list(records.select_related("payload").order_by("-pk"))
    texts = {row.pk: row.payload.values for row in rows if hasattr(row, "payload")}
    return [
        RecordLine(line, texts.get(line.id, {}).get("reason", ""))
        for line in log_lines.build_log_lines(reader, rows)
    ]


def _list_groups(person: Person) -> str | None:
    names = group_authority.read_provisioned_groups(person)
    return None if names is None else ", ".join(sorted(names)) or "none"


def _find_provider(person: Person) -> str:
    identity = FederatedIdentity.objects.filter(person=person).first()
    return (urlsplit(identity.issuer).hostname or "") if identity else ""


def list_queue_choices() -> list[tuple[str, str]]:
    """Every queue, as name and title, by title."""
    return list(Queue.objects.order_by("title").values_list("name", "title"))


def _build_lines(people: QuerySet[Person], now: datetime) -> list[PersonLine]:
    ids = list(people.values_list("pk", flat=True))
    titles = dict(Queue.objects.values_list("pk", "title"))
    recent = Decision.objects.filter(reviewer__in=ids, at__gt=now - LATELY)
    decided = dict(recent.values_list("reviewer").annotate(n=Count("pk")).order_by())
    invited = set(
        AuthorityChange.objects.filter(
            person__in=ids, kind=AuthorityKind.INVITE, status=ChangeStatus.PROPOSED
        ).values_list("person", flat=True)
    )
    linked = set(
        FederatedIdentity.objects.filter(person__in=ids).values_list(
            "person", flat=True
        )
    )
    provisioned = set(
        ProvisionedPerson.objects.filter(
            person__in=ids, removed_at__isnull=True
        ).values_list("person", flat=True)
    )
    return [
        _build_line(
            person,
            titles,
            decided.get(person.pk, 0),
            invited=person.pk in invited,
            linked=person.pk in linked,
            provisioned=person.pk in provisioned,
        )
        for person in permissions.list_people_with_roles(ids)
    ]


def _list_roles(roles: Collection[Role], invited: bool) -> list[str]:
    """As a person reads them. What an invitation asks for is no role yet."""
    if invited:
        return ["no role yet"]
    return [ROLE_LABELS[role] for role in Role if role in roles] or ["no role"]


def _build_line(
    person: Person,
    titles: Mapping[int, str],
    decided: int,
    *,
    invited: bool,
    linked: bool,
    provisioned: bool,
) -> PersonLine:
    roles = permissions.roles_of(person)
    queues = permissions.queues_of(person)
    decides = staffing.find_deciding_role(roles) is not None
    no_limit = "any amount" if decides else ""
    ceiling = format_money(person.ceiling) if person.ceiling else no_limit
    state, mark = _describe_state(person, invited, linked)
    if provisioned and state == NO_PASSWORD:
        state, mark = "Provisioned", "wait"  # until they sign in through the provider
    return PersonLine(
        person=person,
        roles=_list_roles(roles, invited),
        queues=sorted(titles[pk] for pk in queues),
        everywhere=len(titles) > 1 and len(queues) == len(titles),
        ceiling=ceiling,
        decided=decided,
        state=state,
        mark=mark,
    )


def _describe_state(person: Person, invited: bool, linked: bool) -> tuple[str, str]:
    if invited:
        return "Invited", "wait"
    if not person.is_active:
        return "Deactivated", "off"
    if password_links.is_awaited(person):
        return "Has a link", "wait"
    if not person.has_usable_password():
        return ("Active", "on") if linked else (NO_PASSWORD, "off")
    return "Active", "on"


def build_change_line(row: AuthorityChange, reader: Person) -> ChangeLine:
    """One change, as this reader sees it."""
    return ChangeLine(
        row=row,
        label=KIND_LABELS[AuthorityKind(row.kind)],
        wishes=_describe_wishes(row),
        why_not=authority.describe_why_no_answer(row, reader),
        own=row.asked_by_id == reader.pk,
    )


def _describe_wishes(row: AuthorityChange) -> list[str]:
    wishes = []
    if row.role:
        wishes.append(f"role {ROLE_LABELS[Role(row.role)]}")
    if row.queues:
        wishes.append(f"decides in {', '.join(row.queues)}")
    elif row.kind == AuthorityKind.INVITE and row.role in DECIDERS:
        wishes.append("in no queue, so nothing to decide yet")
    if row.ceiling == authority.NO_CEILING:
        wishes.append("decides any amount")
    elif row.ceiling:
        wishes.append(f"decides up to {row.ceiling}")
    if row.email:
        wishes.append(f"address {row.email}")
    return wishes
