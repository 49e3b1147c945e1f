"""One administrator narrows what a person may do; two widen it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from hitl import tasks
from journal import clock
from journal.errors import Conflict, InvalidArgs, NotPermitted, TextMissing
from journal.models import LogRecord
from policies import money, password_links, people
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.administration import accounts, authority, second_person
from reviews.administration.authority import Authority, Invitation
from reviews.choices import AuthorityKind
from reviews.models import AuthorityChange, Stop
from tests.assurance.planting import reload
from tests.conftest import Gate

pytestmark = pytest.mark.django_db
LIMIT = money.parse("500.00", "USD")


def change(gate: Gate, by: str = "adam", **wanted: Any) -> AuthorityChange | None:
    rita = reload(gate.rita)
    return authority.change_authority(
        person=rita,
        wanted=replace(authority.load_authority(rita), **wanted),
        reason="New team.",
        by=reload(gate.people[by]),
    )


def confirm(gate: Gate, row: AuthorityChange | None, by: str = "alma") -> Person:
    assert row is not None
    return authority.confirm_change(change_id=row.pk, by=reload(gate.people[by])).person


def find_authority(person: Person) -> Authority:
    return authority.load_authority(reload(person))


def test_less_takes_effect_at_once(gate: Gate) -> None:
    before = find_authority(gate.rita)
    assert before.queues
    assert change(gate, queues=frozenset(), ceiling=LIMIT) is None
    now = find_authority(gate.rita)
    assert (now.queues, now.ceiling) == (frozenset(), LIMIT)
    assert change(gate, ceiling=money.parse("499.00", "USD")) is None
    assert change(gate, role=Role.OWNER) is None
    assert permissions.roles_of(reload(gate.rita)) == {Role.OWNER}
    with pytest.raises(InvalidArgs):
        change(gate)


@pytest.mark.parametrize(
    "wanted",
    [
        {"role": Role.SUPERVISOR},
        {"role": Role.AUDITOR},
        {"role": Role.ADMINISTRATOR},
        {"email": "other@example.org"},
    ],
)
def test_more_waits_for_a_second_administrator(
    gate: Gate, wanted: dict[str, Any]
) -> None:
    before = find_authority(gate.rita)
    row = change(gate, **wanted)
    assert find_authority(gate.rita) == before
    for name in ("adam", "rita", "sue", "otto"):
        with pytest.raises(NotPermitted):
            confirm(gate, row, name)
    with pytest.raises(Conflict):  # one waits
        change(gate, **wanted)
    confirm(gate, row)
    assert find_authority(gate.rita) == replace(before, **wanted)
    with pytest.raises(Conflict):
        confirm(gate, row)


def test_a_mixed_change_narrows_now_and_widens_later(gate: Gate) -> None:
    assert change(gate, ceiling=LIMIT) is None
    row = change(gate, ceiling=None, role=Role.SUPERVISOR, queues=frozenset())
    now = find_authority(gate.rita)
    assert (now.role, now.ceiling, now.queues) == (Role.REVIEWER, LIMIT, frozenset())
    confirm(gate, row)
    now = find_authority(gate.rita)
    assert (now.role, now.ceiling, now.queues) == (Role.SUPERVISOR, None, frozenset())
    records = LogRecord.objects.filter(kind__startswith="authority.").order_by("pk")
    assert [(row.kind, row.actor_id) for row in records] == [
        ("authority.proposed", gate.adam.public_id),
        ("authority.confirmed", gate.alma.public_id),
    ]


def test_nobody_changes_themselves(gate: Gate) -> None:
    adam = reload(gate.adam)
    wanted = replace(authority.load_authority(adam), role=Role.SUPERVISOR)
    with pytest.raises(NotPermitted):
        authority.change_authority(person=adam, wanted=wanted, reason="x", by=adam)
    row = authority.change_authority(
        person=adam, wanted=wanted, reason="x", by=reload(gate.alma)
    )
    with pytest.raises(NotPermitted):
        confirm(gate, row, "adam")
    with pytest.raises(IntegrityError, match="second_person"), transaction.atomic():
        AuthorityChange.objects.update(
            status="confirmed", settled_by=gate.adam, settled_at=clock.now()
        )


def test_an_invited_person_comes_in_by_their_link(gate: Gate) -> None:
    wanted = Authority(Role.REVIEWER, frozenset({"money"}), LIMIT, "ines@example.org")
    invitation = Invitation("ines", "Ines", "Example", wanted)
    row = authority.invite_person(
        invitation=invitation, reason="New.", by=reload(gate.adam)
    )
    person = Person.objects.get(username="ines")
    assert (person.is_active, person.has_usable_password()) == (False, False)
    assert not password_links.is_awaited(person)
    confirm(gate, row)
    record = LogRecord.objects.get(kind="person.changed")
    assert json.loads(bytes(record.leaf))["data"]["before"]["role"] == "none"
    person = reload(person)
    assert authority.load_authority(person) == wanted
    token = password_links.create_token(person)
    assert password_links.check_token(token) == person
    password_links.choose_password(token, "a long new password")
    assert reload(person).check_password("a long new password")
    with pytest.raises(password_links.PasswordLinkOver):
        password_links.choose_password(token, "another long password")
    with pytest.raises(Conflict):  # the name is taken
        authority.invite_person(
            invitation=invitation, reason="New.", by=reload(gate.adam)
        )


def test_the_only_administrator_invites_the_second_alone(gate: Gate) -> None:
    people.change_person(
        gate.alma, people.PersonChange(role=Role.OWNER), by=reload(gate.adam)
    )
    for role, waits in ((Role.ADMINISTRATOR, False), (Role.SUPERVISOR, True)):
        wanted = Authority(role, frozenset(), None, f"{role}@example.org")
        row = authority.invite_person(
            invitation=Invitation(role.value, "N", "N", wanted),
            reason="First.",
            by=reload(gate.adam),
        )
        assert (row is not None) == waits
        person = Person.objects.get(username=role.value)
        assert password_links.is_awaited(person) != waits
        if not waits:
            people.change_person(
                person, people.PersonChange(role=Role.ADMINISTRATOR), by=gate.adam
            )


def test_access_comes_back_by_two_and_goes_by_one(gate: Gate) -> None:
    def propose(kind: AuthorityKind) -> AuthorityChange:
        return authority.propose_access(
            person=reload(gate.rita), kind=kind, reason="Lost.", by=reload(gate.adam)
        )

    with pytest.raises(Conflict):  # active already
        propose(AuthorityKind.REACTIVATE)
    row = propose(AuthorityKind.RESET)
    assert reload(gate.rita).has_usable_password()
    former = confirm(gate, row)
    token = password_links.create_token(former)
    assert not reload(gate.rita).has_usable_password()
    confirm(gate, propose(AuthorityKind.RESET))  # a newer link ends it
    with pytest.raises(password_links.PasswordLinkOver):
        password_links.check_token(token)
    accounts.deactivate_account(person=reload(gate.rita), by=reload(gate.adam))
    with pytest.raises(password_links.PasswordLinkOver):
        password_links.check_token(password_links.create_token(reload(gate.rita)))
    confirm(gate, propose(AuthorityKind.REACTIVATE))
    assert password_links.is_awaited(reload(gate.rita))
    assert Stop.objects.filter(lifted_at=None).exists()  # until somebody lifts it


def test_a_change_is_refused_withdrawn_or_lapses(gate: Gate) -> None:
    ask = {"role": Role.SUPERVISOR}
    refused = change(gate, **ask)
    assert refused is not None
    with pytest.raises(TextMissing):
        authority.refuse_change(change_id=refused.pk, by=reload(gate.alma), reason=" ")
    authority.refuse_change(change_id=refused.pk, by=reload(gate.alma), reason="No.")
    withdrawn = change(gate, **ask)
    assert withdrawn is not None
    with pytest.raises(NotPermitted):
        authority.withdraw_change(change_id=withdrawn.pk, by=reload(gate.alma))
    authority.withdraw_change(change_id=withdrawn.pk, by=reload(gate.adam))
    lapsed = change(gate, **ask)
    assert lapsed is not None
    past = clock.now() - second_person.ANSWERED_WITHIN - timedelta(seconds=1)
    # The trigger keeps the time, so the test moves the week instead.
    assert lapsed.asked_at > past
    assert tasks.lapse_unanswered() == 0
    assert find_authority(gate.rita).role is Role.REVIEWER
