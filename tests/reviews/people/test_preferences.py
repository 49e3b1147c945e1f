"""What a person chose: kept, remembered, and never in the way."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from journal import clock
from policies.choices import Risk
from policies.models import Person
from reviews.models import Preferences
from reviews.people import preferences
from reviews.people.preferences import Display, Keys, Notifications
from tests.conftest import Gate


def fresh(person: Person) -> Person:
    return Person.objects.get(pk=person.pk)


def test_who_saved_nothing_has_the_usual(gate: Gate) -> None:
    assert preferences.of(fresh(gate.rita)) == preferences.Prefs()
    assert preferences.of(None) == preferences.Prefs()


def test_a_part_is_saved_and_the_rest_stays(gate: Gate) -> None:
    preferences.save(person=gate.rita, display=Display(theme="dark"))
    preferences.save(person=gate.rita, keys=Keys(on=False))
    found = preferences.of(fresh(gate.rita))
    assert found.display.theme == "dark"
    assert not found.keys.on
    assert preferences.of(fresh(gate.tom)) == preferences.Prefs()


def test_it_is_asked_for_once(gate: Gate, django_assert_num_queries) -> None:
    rita = fresh(gate.rita)
    with django_assert_num_queries(1):
        preferences.of(rita)
        preferences.of(rita)


def test_what_no_longer_fits_is_as_usual(gate: Gate) -> None:
    Preferences.objects.create(
        person=gate.rita,
        display={"theme": "plaid"},
        keys={"on": False, "since_version_9": True},
        changed_at=clock.now(),
    )
    found = preferences.of(fresh(gate.rita))
    assert found.display == Display()
    assert not found.keys.on


def test_notifications_by_risk() -> None:
    said = Notifications(email={Risk.LOW: "digest"}, desk={Risk.LOW: "never"})
    assert (said.mail("low"), said.mail("high")) == ("digest", "now")
    assert said.muted == ["low"]


def test_a_zone_must_be_one() -> None:
    assert Notifications(zone="Europe/Berlin").zone == "Europe/Berlin"
    with pytest.raises(ValidationError):
        Notifications(zone="../../etc/passwd")


def test_the_zones_are_gathered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading what a person saved would cost a walk through hundreds of files."""
    Notifications(zone="Europe/Berlin")
    monkeypatch.setattr(preferences, "available_timezones", None)
    Notifications(zone="Europe/Paris")
