"""Substitutes: who decides for a person who is away, and never more than they may."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from journal import clock
from journal.errors import DomainError, InvalidInput, NotFound, NotPermitted
from journal.models import LogRecord
from policies import people, staffing, substitutes
from policies.choices import Role
from policies.models import Person, Queue, Substitution
from policies.people import PersonChange
from policies.substitutes import Absence
from reviews import permissions
from reviews.choices import Scope
from reviews.stops import stops
from tests import factories, worlds
from tests.conftest import Gate

pytestmark = pytest.mark.django_db
WEEK = timedelta(days=7)


@pytest.fixture
def nora(gate: Gate) -> Person:
    """A reviewer who is admitted nowhere, with a ceiling."""
    person = factories.person("nora", Role.REVIEWER)
    return limit(person, 50_00)


def limit(person: Person, minor: int | None, currency: str = "USD") -> Person:
    person.ceiling_minor, person.ceiling_currency = minor, currency if minor else ""
    person.save()
    return person


def names(person: Person) -> set[str]:
    fresh = Person.objects.get(pk=person.pk)
    queues = Queue.objects.filter(pk__in=permissions.queues_of(fresh))
    return set(queues.values_list("name", flat=True))


def away(person: Person, substitute: Person, *queues: str) -> Substitution:
    until = clock.now() + WEEK
    substitutes.appoint_substitute(person, Absence(substitute, queues, until))
    return Substitution.objects.latest("pk")


def refuse(person: Person, substitute: Person, path: str) -> str:
    """What the refusal says at this field."""
    with pytest.raises(InvalidInput) as refused:
        away(person, substitute, "mail")
    (error,) = [e for e in refused.value.errors if e["path"] == path]
    return error["message"]


def test_a_queue_goes_to_the_substitute_and_comes_back(
    gate: Gate, nora: Person
) -> None:
    own, before = names(gate.rita), staffing.group_staff_by_queue()["mail"]
    row = away(gate.rita, nora, "mail")
    assert (names(gate.rita), names(nora)) == (own - {"mail"}, {"mail"})
    after = staffing.group_staff_by_queue()["mail"]
    assert len(after.reviewers) == len(before.reviewers)
    mail = Queue.objects.get(name="mail").pk
    admitted = permissions.list_admitted_ids(mail)
    assert nora.pk in admitted
    assert gate.rita.pk not in admitted
    substitutes.end_substitution(row.pk, by=nora)
    assert (names(gate.rita), names(nora)) == (own, set())
    began, ended = LogRecord.objects.filter(kind__startswith="substitution.")
    assert began.data["queues"] == ["mail"]
    assert began.data["substitute"] == nora.public_id
    assert (began.actor_id, ended.actor_id) == (gate.rita.public_id, nora.public_id)
    with pytest.raises(NotFound):
        substitutes.end_substitution(row.pk, by=gate.rita)


def test_the_date_ends_it_without_a_task(gate: Gate, nora: Person) -> None:
    own, row = names(gate.rita), away(gate.rita, nora, "mail")
    worlds.rewrite(Substitution, row.pk, until=clock.now() - timedelta(seconds=1))
    assert (names(gate.rita), names(nora)) == (own, set())
    away(gate.rita, nora, "mail")  # the earlier row does not stand in the way
    assert names(nora) == {"mail"}


@pytest.mark.parametrize(
    "grown", ["ceiling", "currency", "role", "dismissed", "demoted", "stopped"]
)
def test_whoever_gets_more_stands_in_no_longer(
    gate: Gate, nora: Person, grown: str
) -> None:
    limit(gate.rita, 100_00)
    away(gate.rita, nora, "mail")
    assert names(nora) == {"mail"}
    if grown == "ceiling":
        limit(nora, 100_01)
    elif grown == "currency":
        limit(nora, 1, "EUR")
    elif grown == "demoted":
        demoted = PersonChange(role=Role.AUDITOR)
        people.change_person(gate.rita, demoted, by=gate.adam)
    elif grown == "stopped":
        key = gate.rita.public_id
        stop = stops.create_stop(
            scope=Scope.REVIEWER, key=key, person=gate.sue, reason="odd"
        )
        stops.lift_stop(stop_id=stop.pk, person=gate.sam, reason="fine")
    elif grown == "role":
        nora.groups.add(gate.sue.groups.get(name=Role.SUPERVISOR))
    else:
        people.dismiss_from_queues(
            gate.rita,
            [Queue.objects.get(name="mail")],
            by=people.build_actor(gate.adam),
        )
    assert names(nora) == set()
    assert ("mail" in names(gate.rita)) is (grown != "dismissed")


def test_nobody_decides_for_somebody_who_may_not(gate: Gate, nora: Person) -> None:
    own = factories.agent(gate.rita, "robin")
    waiting = factories.propose(own, "write").request
    row = away(gate.rita, nora, "mail")
    with pytest.raises(NotPermitted, match="stand in for somebody who may not"):
        factories.decide(waiting, Person.objects.get(pk=nora.pk))
    substitutes.end_substitution(row.pk, by=gate.rita)
    assert factories.decide(waiting, gate.tom).status != "pending"


def test_nobody_hands_on_what_was_handed_to_them(gate: Gate, nora: Person) -> None:
    other = limit(factories.person("olaf", Role.REVIEWER), 50_00)
    away(gate.rita, nora, "mail")
    assert "Choose queues in which you decide" in refuse(nora, other, "queues")
    assert "Choose queues in which you decide" in refuse(gate.rita, other, "queues")


def test_what_is_refused_names_the_field(gate: Gate, nora: Person) -> None:
    limit(gate.rita, 40_00)
    late = Absence(nora, ["mail", "nowhere"], clock.now() + timedelta(days=91))
    with pytest.raises(InvalidInput) as refused:
        substitutes.appoint_substitute(gate.rita, late)
    assert {e["path"] for e in refused.value.errors} == {"substitute", "until"}
    limit(nora, 30_00)
    for other in (gate.sue, gate.rita):
        assert refuse(gate.rita, other, "substitute").startswith("Choose an active")
    limit(gate.tom, 40_00)
    assert "decides in mail already" in refuse(gate.rita, gate.tom, "queues")
    with pytest.raises(NotPermitted):
        away(gate.adam, nora, "mail")
    assert not Substitution.objects.exists()


def test_others_do_not_end_it_and_a_row_never_changes(gate: Gate, nora: Person) -> None:
    row = away(gate.rita, nora, "mail")
    with pytest.raises(NotFound):
        substitutes.end_substitution(row.pk, by=gate.tom)
    for change in ("until = until + interval '1 year'", "substitute_id = person_id"):
        with pytest.raises(IntegrityError), transaction.atomic():
            connection.cursor().execute(f"UPDATE policies_substitution SET {change}")
    substitutes.end_substitution(row.pk, by=gate.adam)
    with pytest.raises(DomainError):
        substitutes.end_substitution(row.pk, by=gate.adam)
