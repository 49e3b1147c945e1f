from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from journal.errors import Conflict, InvalidInput
from journal.log import Actor
from journal.models import LogRecord
from policies import people
from policies.choices import Role
from policies.models import Person, PolicyVersion, Queue
from reviews import permissions
from tests.conftest import Gate

BY = Actor("system", "test")
ZOE = people.NewPerson("zoe", "zoe@example.com", "a long enough secret", Role.REVIEWER)


def test_adding_and_admitting_are_records(gate: Gate) -> None:
    person = people.add_person(ZOE, by=BY)
    people.admit_to_queues(person, Queue.objects.filter(name="money"), by=BY)
    kinds = LogRecord.objects.filter(kind__startswith="person.")
    assert list(kinds.order_by("id").values_list("kind", flat=True)) == [
        "person.added",
        "person.admitted",
    ]
    assert permissions.queues_of(person) == {Queue.objects.get(name="money").pk}


def test_who_is_dismissed_decides_no_more(gate: Gate) -> None:
    people.dismiss_from_queues(gate.rita, Queue.objects.all(), by=BY)
    assert permissions.queues_of(Person.objects.get(username="rita")) == frozenset()


def test_a_weak_password_is_refused(gate: Gate) -> None:
    weak = people.NewPerson("zoe", "zoe@example.com", "short", Role.REVIEWER)
    with pytest.raises(InvalidInput):
        people.add_person(weak, by=BY)
    assert not Person.objects.filter(username="zoe").exists()


def test_a_name_is_given_once(gate: Gate) -> None:
    taken = people.NewPerson(
        "rita", "r@example.com", "a long enough secret", Role.OWNER
    )
    with pytest.raises(Conflict):
        people.add_person(taken, by=BY)


def test_the_command_reads_the_password_and_admits(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a long enough secret\n"))
    out = io.StringIO()
    call_command(
        "add_person",
        "zoe",
        email="zoe@example.com",
        role="reviewer",
        queues=["money"],
        ceiling=["50.00", "USD"],
        stdout=out,
    )
    zoe = Person.objects.get(username="zoe")
    assert zoe.public_id in out.getvalue()
    assert zoe.ceiling_minor == 5000
    assert zoe.check_password("a long enough secret")


def test_the_commands_admit_and_dismiss(gate: Gate) -> None:
    people.dismiss_from_queues(gate.rita, Queue.objects.all(), by=BY)
    call_command("admit", "rita", "--queue=money", "--queue=mail")
    rita = Person.objects.get(username="rita")
    both = set(Queue.objects.filter(name__in=["money", "mail"]).values_list("pk"))
    assert {(pk,) for pk in permissions.queues_of(rita)} == both
    call_command("dismiss", "rita", "--queue=money")
    rita = Person.objects.get(username="rita")
    assert permissions.queues_of(rita) == {Queue.objects.get(name="mail").pk}


@pytest.mark.parametrize("command", ["admit", "dismiss"])
def test_the_commands_name_who_or_what_is_missing(gate: Gate, command: str) -> None:
    with pytest.raises(CommandError, match="There is no user zoe"):
        call_command(command, "zoe", "--queue=money")
    with pytest.raises(CommandError, match="no queue gold"):
        call_command(command, "rita", "--queue=money", "--queue=gold")


def test_a_policy_is_loaded_by_one_and_activated_by_another(
    gate: Gate, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("name: broken\n")
    with pytest.raises(CommandError, match="currency"):
        call_command("load_policy", by="adam", file=file)
    active = PolicyVersion.objects.get(status="active")
    with pytest.raises(CommandError):
        call_command("load_policy", by="adam", activate=active.number)
