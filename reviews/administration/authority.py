"""What people may do, as administrators change it on pages.

One administrator narrows alone: a lower role or ceiling, fewer queues. What widens, and
what lets a person in, one of them proposes and another one confirms, because a gate is
only as safe as the accounts that open it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError
from guardian.shortcuts import get_objects_for_user

from journal import clock, transactions
from journal.errors import (
    Conflict,
    InvalidArgs,
    NotPermitted,
    build_field_error,
)
from journal.operations import operation
from policies import money, password_links, people, second_factors, solo
from policies.choices import Role
from policies.models import Person, Queue
from policies.money import Money
from policies.people import NewPerson, PersonChange, build_actor
from reviews import locks, permissions, transitions
from reviews.choices import AuthorityKind, ChangeStatus
from reviews.models import AuthorityChange

from . import accounts, second_person

NO_CEILING = "none"
# What ends with a link to choose a password.
WITH_LINK = {AuthorityKind.INVITE, AuthorityKind.REACTIVATE, AuthorityKind.RESET}
# From a role to one that may do strictly less.
_NARROWER = {
    (Role.SUPERVISOR, Role.REVIEWER),
    *((role, Role.OWNER) for role in Role if role is not Role.OWNER),
}


@dataclass(frozen=True, slots=True)
class Authority:
    """What a person may do: the state in which an administrator wants it. Without a
    ceiling the person may decide any amount."""

    role: Role
    queues: frozenset[str]
    ceiling: Money | None
    email: str


@dataclass(frozen=True, slots=True)
class Invitation:
    """The input of `invite_person`."""

    username: str
    first_name: str
    last_name: str
    authority: Authority


def load_authority(person: Person) -> Authority:
    """What the person may do now, apart from substitutes."""
    roles = permissions.roles_of(person)
    return Authority(
        role=next((role for role in Role if role in roles), Role.OWNER),
        queues=frozenset(
            get_objects_for_user(
                person, "policies.decide", Queue, with_superuser=False
            ).values_list("name", flat=True)
        ),
        ceiling=person.ceiling,
        email=person.email,
    )


def is_narrower_role(before: Role, after: Role) -> bool:
    """Whether a person with the role `after` may do nothing new."""
    return before is after or (before, after) in _NARROWER


@operation(
    writes="Person, QueueUserPermission, AuthorityChange",
    logs="person.changed, person.admitted, person.dismissed, authority.proposed",
    after="wake-up",
)
def change_authority(
    *, person: Person, wanted: Authority, reason: str, by: Person
) -> AuthorityChange | None:
    """Narrow what the person may do at once, and propose what widens it. Returns the
    proposal, None where there is nothing to confirm. Raises NotPermitted for anyone but
    another administrator, InvalidArgs where nothing changes, TextMissing without a
    reason, InvalidInput for a wrong address, and Conflict while a change of this person
    waits."""
    _check_other_administrator(person, by)
    why, now = second_person.read_reason(reason), load_authority(person)
    if wanted == now:
        rule = "nothing differs from what this person may do now"
        raise InvalidArgs(
            "Nothing was changed.", errors=[build_field_error("role", rule)]
        )
    role = wanted.role if wanted.role is not now.role else None
    narrows_role = role is not None and is_narrower_role(now.role, role)
    ceiling = wanted.ceiling != now.ceiling
    narrows_ceiling = ceiling and money.is_narrower_ceiling(now.ceiling, wanted.ceiling)
    narrowed = PersonChange(
        role=role if narrows_role else None,
        ceiling=wanted.ceiling if narrows_ceiling else None,
    )
    if narrowed.names:
        people.apply_change(person, narrowed, by=build_actor(by), reason=why)
    left = Queue.objects.filter(name__in=now.queues - wanted.queues)
    people.dismiss(person, left, build_actor(by), why)
    change = AuthorityChange(
        person=person,
        kind=AuthorityKind.WIDEN,
        role="" if narrows_role or role is None else role,
        queues=sorted(wanted.queues - now.queues),
        ceiling=_write_ceiling(wanted.ceiling) if ceiling != narrows_ceiling else "",
        email=wanted.email if wanted.email != now.email else "",
        reason=why,
    )
    widens = change.role or change.queues or change.ceiling or change.email
    return _propose(change, by) if widens else None


@operation(
    writes="Person, QueueUserPermission, AuthorityChange",
    logs="person.added, person.admitted, authority.proposed",
    after="wake-up",
)
def invite_person(
    *, invitation: Invitation, reason: str, by: Person
) -> AuthorityChange | None:
    """Add an account that nobody can sign in to until another administrator confirms.
    The only administrator invites the second one alone: then it returns None, and the
    person has a link. Raises NotPermitted, TextMissing, InvalidInput, and Conflict as
    `people.add_person`."""
    people.check_administrator(by)
    if solo.is_solo():
        raise Conflict(
            "This gate runs in solo mode, for one person. Start it without --solo, and"
            " invite people then."
        )
    wanted, why = invitation.authority, second_person.read_reason(reason)
    alone = wanted.role is Role.ADMINISTRATOR and not _has_others(by)
    newcomer = NewPerson(
        username=invitation.username,
        email=wanted.email,
        password="",
        role=wanted.role if alone else Role.OWNER,
        first_name=invitation.first_name,
        last_name=invitation.last_name,
    )
    person = people.create_person(newcomer, by=build_actor(by), active=alone)
    if alone:
        password_links.open_link(person)
        return None
    change = AuthorityChange(
        person=person,
        kind=AuthorityKind.INVITE,
        role=wanted.role,
        queues=sorted(wanted.queues),
        ceiling=_write_ceiling(wanted.ceiling),
        reason=why,
    )
    return _propose(change, by)


@operation(writes="AuthorityChange", logs="authority.proposed")
def propose_access(
    *, person: Person, kind: AuthorityKind, reason: str, by: Person
) -> AuthorityChange:
    """Propose to reactivate an account, or to reset its password; either ends with a
    link to choose one. Or propose to remove a lost second factor. Raises NotPermitted,
    TextMissing, and Conflict for an account in the wrong state, without a factor, or
    with a change that waits."""
    _check_other_administrator(person, by)
    if person.is_active is (kind is AuthorityKind.REACTIVATE):
        state = "active" if person.is_active else "deactivated"
        raise Conflict(f"{person.username} is {state} already. Nothing was changed.")
    if kind is AuthorityKind.FACTOR and not second_factors.has_second_factor(person):
        raise Conflict(f"{person.username} has no second factor. Nothing was changed.")
    why = second_person.read_reason(reason)
    return _propose(AuthorityChange(person=person, kind=kind, reason=why), by)


def _propose(change: AuthorityChange, by: Person) -> AuthorityChange:
    change.asked_by, change.asked_at = by, clock.now()
    try:
        with transactions.open_savepoint("Proposing a change"):
            return transitions.authority_change.create(
                change,
                "propose",
                actor=build_actor(by),
                now=change.asked_at,
                private={"reason": change.reason},
                **_build_log_data(change),
            )
    except IntegrityError:
        raise Conflict(
            "A change of this person waits for an answer already. Nothing was changed."
        ) from None


@operation(
    locks="change",
    writes="AuthorityChange, Person, ProvisionedPerson, QueueUserPermission,"
    " TotpDevice, Passkey, RecoveryCode",
    logs="authority.confirmed, person.changed, person.admitted, person.reactivated,"
    " person.factor_removed",
    after="wake-up",
)
def confirm_change(*, change_id: int, by: Person) -> AuthorityChange:
    """Put a proposed change in force. Where it lets the person in, they have a link to
    choose a password from now on. Raises NotFound, NotPermitted, and Conflict when it
    does not wait or another account has the mailbox by now."""
    change = _lock_answerable(change_id, by)
    change = _settle(change, "confirm", by)
    person, actor = change.person, build_actor(by)
    ceiling = _read_ceiling(change.ceiling)
    wanted = PersonChange(
        role=Role(change.role) if change.role else None,
        email=change.email or None,
        ceiling=ceiling,
        no_ceiling=change.ceiling == NO_CEILING and person.ceiling_minor is not None,
    )
    if wanted.names:
        person = people.apply_change(
            person, wanted, by=actor, is_first=change.kind == AuthorityKind.INVITE
        )
    people.admit(person, Queue.objects.filter(name__in=change.queues), actor)
    if change.kind == AuthorityKind.REACTIVATE:
        accounts.reactivate(person, by=actor)
    if change.kind == AuthorityKind.INVITE:
        Person.objects.filter(pk=person.pk).update(is_active=True)
    if change.kind == AuthorityKind.FACTOR:
        second_factors.remove_factor(person, by=actor)
    elif change.kind in WITH_LINK:
        person.is_active = True
        password_links.open_link(person)
    change.person = person
    return change


@operation(locks="change", writes="AuthorityChange", logs="authority.refused")
def refuse_change(*, change_id: int, by: Person, reason: str) -> AuthorityChange:
    """Refuse a proposed change. Raises NotFound, NotPermitted, TextMissing, Conflict
    when it does not wait."""
    change = _lock_answerable(change_id, by)
    return _settle(change, "refuse", by, second_person.read_reason(reason))


@operation(locks="change", writes="AuthorityChange", logs="authority.withdrawn")
def withdraw_change(*, change_id: int, by: Person) -> AuthorityChange:
    """Withdraw a change that this administrator proposed. Raises NotFound,
    NotPermitted, Conflict when it does not wait."""
    people.check_administrator(by)
    change = locks.lock_authority_change(change_id)
    return second_person.withdraw_row(
        transitions.authority_change,
        change,
        person=by,
        open_status=ChangeStatus.PROPOSED,
        log_data=_build_log_data(change),
    )


@operation(
    locks="changes (skip locked)", writes="AuthorityChange", logs="authority.lapsed"
)
def lapse_changes() -> int:
    """End the changes that nobody answered within a week. Returns how many."""
    rows = AuthorityChange.objects.filter(status=ChangeStatus.PROPOSED)
    rows = rows.select_related("person")
    return second_person.lapse_unanswered(
        transitions.authority_change, rows, _build_log_data
    )


def describe_why_no_answer(change: AuthorityChange, by: Person) -> str:
    """Why this administrator may not confirm or refuse; empty when they may."""
    if by.pk == change.asked_by_id:  # guard: authority-second-person
        return "You proposed it. Another administrator must answer."
    if by.pk == change.person_id:  # guard: authority-own
        return "It changes what you may do. Another administrator must answer."
    return ""


def _lock_answerable(change_id: int, by: Person) -> AuthorityChange:
    people.check_administrator(by)
    change = locks.lock_authority_change(change_id)
    why_not = describe_why_no_answer(change, by)
    second_person.check_may_answer(change, why_not, ChangeStatus.PROPOSED)
    return change


def _settle(
    change: AuthorityChange, event: str, by: Person, refusal: str = ""
) -> AuthorityChange:
    return second_person.settle_row(
        transitions.authority_change,
        change,
        event,
        person=by,
        refusal=refusal,
        log_data=_build_log_data(change),
    )


def _build_log_data(change: AuthorityChange) -> dict[str, Any]:
    data = {"person": change.person.public_id, "change": change.kind}
    if change.role:
        data["role"] = change.role
    if change.ceiling:
        data["ceiling"] = change.ceiling
    if change.queues:
        data["queues"] = " ".join(change.queues)
    return {"data": data}


def _check_other_administrator(person: Person, by: Person) -> None:
    people.check_administrator(by)
    if person.pk == by.pk:
        raise NotPermitted("Another administrator must change what you may do.")


def _has_others(by: Person) -> bool:
    """Whether there is another active administrator."""
    rows = Person.objects.filter(is_active=True, groups__name=Role.ADMINISTRATOR)
    return rows.exclude(pk=by.pk).exists()


def _write_ceiling(ceiling: Money | None) -> str:
    if ceiling is None:
        return NO_CEILING
    return f"{money.format_amount(ceiling)} {ceiling.currency}"


def _read_ceiling(text: str) -> Money | None:
    if text in ("", NO_CEILING):
        return None
    amount, _, currency = text.rpartition(" ")
    return money.parse(amount, currency)


def list_waiting() -> Iterable[AuthorityChange]:
    """The changes that wait for an answer, oldest first."""
    rows = AuthorityChange.objects.filter(status=ChangeStatus.PROPOSED)
    return rows.select_related("person", "asked_by").order_by("asked_at")
