"""One person is one account, however their address is spelt [I10]."""

from __future__ import annotations

import io

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import IntegrityError

from journal.errors import Conflict, InvalidInput
from journal.log import Actor
from policies import people
from policies.choices import Role
from policies.mailboxes import fold_mailbox
from policies.models import Person
from tests import factories
from tests.conftest import Gate

BY = Actor("system", "test")
SAME = [
    "sue@example.com",
    "SUE@example.com",
    "Sue@EXAMPLE.COM",
    "sue+desk@example.com",
    "\uff53ue@example.com",
    '"sue"@example.com',
]


def newcomer(email: str) -> people.NewPerson:
    return people.NewPerson("sue.l", email, "a long enough secret", Role.SUPERVISOR)


@pytest.mark.parametrize("email", SAME)
def test_a_second_account_with_the_same_mailbox_is_refused(
    gate: Gate, email: str
) -> None:
    with pytest.raises(Conflict, match="sue already has this email address"):
        people.add_person(newcomer(email), by=BY)
    assert not Person.objects.filter(username="sue.l").exists()


def test_the_command_says_so(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a long enough secret\n"))
    with pytest.raises(CommandError, match="Each person has one account"):
        call_command("add_person", "sue.l", email="SUE@example.com", role="supervisor")


@pytest.mark.parametrize("email", ["s.ue@example.com", "sue@example.org"])
def test_another_mailbox_is_another_person(gate: Gate, email: str) -> None:
    assert people.add_person(newcomer(email), by=BY).email == email


def test_what_is_no_address_is_refused(gate: Gate) -> None:
    with pytest.raises(InvalidInput):
        people.add_person(newcomer("sue"), by=BY)


def test_the_model_refuses_it_too(gate: Gate) -> None:
    twin = Person(username="sue.l", email="sue+2@example.com", password="x")
    with pytest.raises(ValidationError, match="Each person has one account"):
        twin.full_clean()


def test_the_database_refuses_it_too(gate: Gate) -> None:
    with pytest.raises(IntegrityError, match="person_one_account"):
        factories.person("sue.l", Role.SUPERVISOR, email="SUE@Example.com")


def test_accounts_without_an_address_are_many(gate: Gate) -> None:
    factories.person("bot1", Role.AUDITOR, email="")
    factories.person("bot2", Role.AUDITOR, email="")


@pytest.mark.parametrize("email", SAME)
def test_a_mailbox_is_folded_once_and_for_all(email: str) -> None:
    assert fold_mailbox(email) == "sue@example.com"
    assert fold_mailbox("") == ""
