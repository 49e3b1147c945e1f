"""Accounts that change or end by command, and everything that hangs on them."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from journal import clock
from journal.errors import Conflict, InvalidAgentKey
from journal.models import LogRecord
from policies import substitutes
from policies.choices import Role
from policies.models import Person, ProvisionedPerson, Queue, Substitution
from reviews import permissions
from reviews.administration import accounts
from reviews.choices import RequestStatus
from reviews.decisions import revoke
from reviews.models import PersonalToken, Stop
from reviews.people import tokens
from reviews.stops import scope
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose

NEW = "another long secret"


def run(*args: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(*args, stdout=out, **options)
    return out.getvalue()


def said(patch: pytest.MonkeyPatch, text: str) -> None:
    patch.setattr("sys.stdin", io.StringIO(f"{text}\n"))


def fresh(person: Person) -> Person:
    return Person.objects.get(pk=person.pk)


def calls(text: str) -> int:
    headers = {"authorization": f"Bearer {text}"}
    return Client(headers=headers).get("/api/v1/requests").status_code


@pytest.fixture
def token(gate: Gate) -> str:
    return tokens.create_token(person=gate.rita, name="nightly report")


def test_a_new_password_ends_sessions_and_tokens(
    gate: Gate, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Client()
    session.force_login(gate.rita)
    assert (session.get("/queue/").status_code, calls(token)) == (200, 200)
    said(monkeypatch, NEW)
    run("set_password", "rita", by="adam")
    assert (session.get("/queue/").status_code, calls(token)) == (302, 401)
    assert fresh(gate.rita).check_password(NEW)
    again = tokens.create_token(person=gate.rita, name="again")
    assert calls(again) == 200
    session.force_login(fresh(gate.rita))
    page = session.get("/me/tokens/").content.decode()
    assert "again" in page
    assert "nightly report" not in page
    record = LogRecord.objects.get(kind="person.password_set")
    assert gate.adam.public_id in bytes(record.leaf).decode()


def test_any_change_of_the_password_ends_tokens(gate: Gate, token: str) -> None:
    """Whatever changes it, Django's own command too."""
    gate.rita.set_password(NEW)
    gate.rita.save()
    with pytest.raises(InvalidAgentKey):
        tokens.authenticate_token(token)


def test_a_hash_made_anew_at_sign_in_ends_nothing(
    gate: Gate, token: str, settings: Any
) -> None:
    hasher = "django.contrib.auth.hashers.{}PasswordHasher"
    settings.PASSWORD_HASHERS = [hasher.format("Scrypt"), hasher.format("MD5")]
    before = gate.rita.password
    assert gate.rita.check_password(factories.PASSWORD)
    assert fresh(gate.rita).password != before
    assert tokens.authenticate_token(token) == gate.rita


def test_a_password_is_made_and_printed_once(gate: Gate) -> None:
    made = run("set_password", "rita", "--generate", by="adam").strip()
    assert len(made) == 24
    assert fresh(gate.rita).check_password(made)


def test_a_weak_password_is_refused(
    gate: Gate, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(monkeypatch, "short")
    with pytest.raises(CommandError, match=r"password: .*too short"):
        run("set_password", "rita", by="adam")
    assert calls(token) == 200


def test_who_is_deactivated_is_out_at_once(gate: Gate, token: str) -> None:
    session = Client()
    session.force_login(gate.rita)
    assert "rita is deactivated" in run("deactivate_person", "rita", by="adam")
    assert (session.get("/queue/").status_code, calls(token)) == (302, 401)
    assert PersonalToken.objects.get().revoked_at is not None
    run("reactivate_person", "rita", by="alma")
    assert (session.get("/queue/").status_code, calls(token)) == (302, 401)
    assert not fresh(gate.rita).has_usable_password()
    kinds = LogRecord.objects.filter(kind__startswith="person.").order_by("id")
    assert [one.kind for one in kinds][-2:] == [
        "person.deactivated",
        "person.reactivated",
    ]


def test_their_substitutions_end_with_the_account(gate: Gate) -> None:
    for person, substitute, name in (
        (gate.rita, gate.tom, "mail"),
        (gate.tom, gate.rita, "money"),
    ):
        Substitution.objects.create(
            person=person,
            substitute=substitute,
            queue=Queue.objects.get(name=name),
            began_at=clock.now(),
            until=clock.now() + timedelta(days=3),
        )
    accounts.deactivate_account(person=gate.tom, by=gate.adam)
    assert substitutes.list_substitutions(gate.rita) == []
    ended = LogRecord.objects.filter(kind="substitution.ended")
    assert {record.actor_id for record in ended} == {gate.adam.public_id}
    assert ended.count() == 2
    accounts.reactivate_account(person=gate.tom, by=gate.alma)
    assert substitutes.list_substitutions(gate.tom) == []


def test_their_approvals_of_what_has_not_run_are_revoked(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    run("deactivate_person", "sue", by="adam")
    stop = Stop.objects.get(scope="reviewer", key=gate.sue.public_id)
    assert stop.by == gate.adam.public_id
    assert scope.list_proposals_to_withdraw(stop) == [request.proposal_id]
    revoke.revoke_approval(proposal_id=request.proposal_id, reviewer=gate.sue.public_id)
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING
    decide(request, gate.sam)
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING


def test_owned_agents_and_the_switch_are_said(gate: Gate) -> None:
    assert "own the agent riley" in run("deactivate_person", "owen", by="adam")
    assert not Stop.objects.exists()
    run("deactivate_person", "tom", by="adam")
    assert "still stopped" in run("reactivate_person", "tom", by="adam")


@pytest.mark.parametrize("command", ["deactivate_person", "reactivate_person"])
def test_twice_is_said(gate: Gate, command: str) -> None:
    run("deactivate_person", "tom", by="adam")
    if command == "reactivate_person":
        run(command, "tom", by="adam")
    with pytest.raises(CommandError, match="already"):
        run(command, "tom", by="adam")


def test_role_ceiling_and_address_change(gate: Gate) -> None:
    line = run(
        "change_person",
        "rita",
        "--ceiling",
        "50.00",
        "USD",
        role="supervisor",
        email="rita@example.org",
        by="adam",
    )
    assert line == "rita: supervisor, rita@example.org, up to 50.00 USD\n"
    rita = fresh(gate.rita)
    assert permissions.roles_of(rita) == {Role.SUPERVISOR}
    assert permissions.is_above_ceiling(rita, 5001, "USD")
    assert "no ceiling" in run("change_person", "rita", "--no-ceiling", by="adam")
    assert not permissions.is_above_ceiling(fresh(rita), 5001, "USD")
    record = LogRecord.objects.filter(kind="person.changed").earliest("id")
    leaf = bytes(record.leaf).decode()
    assert "role email ceiling" in leaf
    assert "example.org" not in leaf


def test_an_approval_of_who_may_no_longer_give_it_has_no_effect(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita)
    run("change_person", "rita", role="auditor", by="adam")
    assert permissions.find_deciding_role(fresh(gate.rita)) is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "set a role, a ceiling or an email address"),
        ({"email": "SUE@example.com"}, "sue already has this email address"),
        ({"email": "nothing"}, "email: not an email address"),
        ({"ceiling": ["12.345", "USD"]}, "--ceiling:"),
        ({"ceiling": ["12.34", "usd"]}, "three capital letters"),
    ],
)
def test_what_is_wrong_is_said(gate: Gate, options: Any, says: str) -> None:
    before = fresh(gate.rita).email
    with pytest.raises(CommandError, match=says):
        run("change_person", "rita", by="adam", **options)
    assert fresh(gate.rita).email == before


@pytest.mark.parametrize("by", ["sue", "otto", "owen", "rita"])
@pytest.mark.parametrize(
    "command",
    [
        ("change_person", "tom", "--role=auditor"),
        ("set_password", "tom", "--generate"),
        ("deactivate_person", "tom"),
        ("admit", "tom", "--all-queues"),
    ],
)
def test_only_administrators_change_people(gate: Gate, command: Any, by: str) -> None:
    with pytest.raises(CommandError, match="Only an administrator"):
        run(*command, by=by)
    assert fresh(gate.tom).is_active
    assert not LogRecord.objects.filter(kind__startswith="person.").exists()


def test_nobody_changes_or_ends_their_own_account(gate: Gate) -> None:
    with pytest.raises(CommandError, match="Another administrator"):
        run("deactivate_person", "adam", by="adam")
    with pytest.raises(CommandError, match="Another administrator"):
        run("change_person", "adam", role="supervisor", by="adam")
    run("change_person", "adam", email="adam@example.org", by="adam")


def test_one_call_admits_to_every_queue_of_the_policy(gate: Gate) -> None:
    Queue.objects.create(name="retired", title="Of an earlier policy")
    zoe = factories.person("zoe", Role.REVIEWER)
    assert "zoe can decide in " in run("admit", "zoe", "--all-queues", by="adam")
    queues = set(Queue.objects.exclude(name="retired").values_list("pk", flat=True))
    assert permissions.queues_of(fresh(zoe)) == queues
    record = LogRecord.objects.filter(kind="person.admitted").latest("id")
    assert gate.adam.public_id in bytes(record.leaf).decode()
    run("dismiss", "zoe", "--all-queues", by="adam")
    assert permissions.queues_of(fresh(zoe)) == frozenset()


def test_an_administrator_bars_whom_the_provider_deactivated(gate: Gate) -> None:
    accounts.deactivate_account(person=gate.rita, by=gate.adam)
    with pytest.raises(Conflict, match="already deactivated"):
        accounts.deactivate_account(person=gate.rita, by=gate.adam)
    ProvisionedPerson.objects.create(person=gate.rita, deactivated_at=clock.now())
    accounts.deactivate_account(person=gate.rita, by=gate.alma)
    assert ProvisionedPerson.objects.get().deactivated_at is None
    assert LogRecord.objects.filter(kind="person.deactivated").count() == 2
    assert Stop.objects.filter(key=gate.rita.public_id).count() == 1
    with pytest.raises(Conflict, match="already deactivated"):
        accounts.deactivate_account(person=gate.rita, by=gate.alma)
