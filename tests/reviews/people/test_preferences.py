"""What a person chose: kept, remembered, and never in the way."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from journal import clock
from policies.choices import Risk
from policies.models import Person
from reviews.models import Preferences
from reviews.people import preferences
from reviews.people.preferences import (
    DisplayPreferences,
    KeyPreferences,
    NotificationPreferences,
)
from tests.conftest import Gate


def fresh(person: Person) -> Person:
    return Person.objects.get(pk=person.pk)


def test_who_saved_nothing_has_the_usual(gate: Gate) -> None:
    assert (
        preferences.load_preferences(fresh(gate.rita))
        == preferences.PersonPreferences()
    )
    assert preferences.load_preferences(None) == preferences.PersonPreferences()


def test_a_part_is_saved_and_the_rest_stays(gate: Gate) -> None:
    preferences.save_preferences(
        person=gate.rita, display=DisplayPreferences(theme="dark")
    )
    preferences.save_preferences(person=gate.rita, keys=KeyPreferences(on=False))
    found = preferences.load_preferences(fresh(gate.rita))
    assert found.display.theme == "dark"
    assert not found.keys.on
    assert (
        preferences.load_preferences(fresh(gate.tom)) == preferences.PersonPreferences()
    )


def test_it_is_asked_for_once(gate: Gate, django_assert_num_queries) -> None:
    rita = fresh(gate.rita)
    with django_assert_num_queries(1):
        preferences.load_preferences(rita)
        preferences.load_preferences(rita)


def test_what_no_longer_fits_is_as_usual(gate: Gate) -> None:
    Preferences.objects.create(
        person=gate.rita,
        display={"theme": "plaid"},
        keys={"on": False, "since_version_9": True},
        changed_at=clock.now(),
    )
    found = preferences.load_preferences(fresh(gate.rita))
    assert found.display == DisplayPreferences()
    assert not found.keys.on


def test_notifications_by_risk() -> None:
    said = NotificationPreferences(email={Risk.LOW: "digest"}, desk={Risk.LOW: "never"})
    chosen = [said.choose_timing("email", risk) for risk in ("low", "high")]
    assert chosen == ["digest", "now"]
    assert said.muted == ["low"]


def test_a_zone_must_be_one() -> None:
    assert NotificationPreferences(zone="Europe/Berlin").zone == "Europe/Berlin"
    with pytest.raises(ValidationError):
        NotificationPreferences(zone="../../etc/passwd")


def test_the_zones_are_gathered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading what a person saved would cost a walk through hundreds of files."""
    NotificationPreferences(zone="Europe/Berlin")
    monkeypatch.setattr(preferences, "available_timezones", None)
    NotificationPreferences(zone="Europe/Paris")
