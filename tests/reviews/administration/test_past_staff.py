"""Who could decide at a moment of the past, after each kind of change since then."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from journal import clock
from policies import people, substitutes
from policies.choices import Role
from policies.models import Person, Queue
from policies.money import Money
from policies.people import PersonChange, build_actor
from policies.substitutes import Absence
from reviews.administration import accounts, past_staff
from reviews.administration.past_staff import PastPerson
from reviews.choices import Scope
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate

pytestmark = pytest.mark.django_db


@pytest.fixture
def mail(gate: Gate) -> Queue:
    return Queue.objects.get(name="mail")


def read(mail: Queue, at: object, person: Person) -> PastPerson | None:
    """The person in the queue at this moment."""
    staff = past_staff.list_past_staff(mail, at)  # type: ignore[arg-type]
    return next((past for past in staff if past.person == person), None)


def change(gate: Gate, **values: object) -> Callable[[], object]:
    wanted = PersonChange(**values)  # type: ignore[arg-type]
    return lambda: people.change_person(gate.rita, wanted, by=gate.adam)


@pytest.mark.parametrize(
    ("kind", "later"),
    [
        ("dismissed", None),
        ("deactivated", "was deactivated"),
        ("stopped", "was stopped from deciding"),
        ("auditor", "decided nothing as auditor"),
        ("handed", "had handed the queue to Nora Example"),
    ],
)
def test_a_change_does_not_reach_back(
    gate: Gate, mail: Queue, kind: str, later: str | None
) -> None:
    nora = factories.person("nora", Role.REVIEWER)
    week = clock.now() + timedelta(days=7)
    actor = build_actor(gate.adam)
    changes: dict[str, Callable[[], object]] = {
        "dismissed": lambda: people.dismiss_from_queues(gate.rita, [mail], by=actor),
        "deactivated": lambda: accounts.deactivate_account(
            person=gate.rita, by=gate.adam
        ),
        "stopped": lambda: stops.create_stop(
            scope=Scope.REVIEWER,
            key=gate.rita.public_id,
            person=gate.sue,
            reason="odd",
        ),
        "auditor": change(gate, role=Role.AUDITOR),
        "handed": lambda: substitutes.appoint_substitute(
            gate.rita, Absence(nora, ["mail"], week)
        ),
    }
    before = clock.now()
    changes[kind]()
    after = clock.now()
    was, now = read(mail, before, gate.rita), read(mail, after, gate.rita)
    assert was is not None
    assert was.why_not == ""
    assert was.role is Role.REVIEWER
    assert (now.why_not if now else None) == later
    if kind == "handed":
        stood = read(mail, after, nora)
        assert stood is not None
        assert stood.stands_in_for == [gate.rita]
        assert read(mail, before, nora) is None


def test_values_are_those_before_each_later_record(gate: Gate, mail: Queue) -> None:
    start = clock.now()
    change(gate, ceiling=Money(20_00, "USD"))()
    first = clock.now()
    change(gate, ceiling=Money(90_00, "USD"))()
    change(gate, role=Role.SUPERVISOR)()
    second = clock.now()
    change(gate, no_ceiling=True)()
    change(gate, role=Role.AUDITOR)()
    ceilings = []
    for at in (start, first, second, clock.now()):
        past = read(mail, at, gate.rita)
        assert past is not None
        ceilings.append((past.ceiling, past.role))
    assert [ceiling for ceiling, _ in ceilings] == [
        "any amount",
        "20.00 USD",
        "90.00 USD",
        "any amount",
    ]
    assert ceilings[2][1] is Role.SUPERVISOR
