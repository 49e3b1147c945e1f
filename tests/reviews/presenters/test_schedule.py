"""When, who is asked, and who can see it."""

from __future__ import annotations

import pytest

from reviews.presenters import moments
from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud, rows


def invite(**args):
    return kinds.show("invite", **args)


def test_a_moment_is_said_in_utc_with_its_weekday():
    assert rows(invite())["start"].note == "Monday 2026-03-02 08:00 UTC"


def test_guests_from_outside_and_recurrence_are_called_out():
    shown = invite()
    assert loud(shown) == ["1 guest outside the company", "Repeats"]
    assert rows(shown)["attendees[1]"].warns == ("Outside the company",)
    assert rows(shown)["attendees[0]"].warns == ()


@pytest.mark.parametrize(
    ("args", "tag"),
    [
        ({"visibility": "public"}, "Everyone can see it"),
        ({"start": "2026-03-02T09:00:00", "end": ...}, "No time zone"),
        ({"end": "2026-03-02T08:00:00+01:00"}, "Ends before it begins"),
    ],
)
def test_what_else_is_called_out(args, tag):
    assert tag in loud(invite(**args))


def test_a_named_zone_is_a_zone():
    named = invite(start="2026-03-02T09:00:00", end=..., zone="Europe/Berlin")
    assert "No time zone" not in loud(named)


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-13-01T00:00", "2026-03-02", "2026-03-02T09:00\n"]
)
def test_what_is_no_moment_is_left_as_it_is(text):
    assert moments.parse_moment(text) is None
    assert moments.format_in_utc(text) == ""


def test_the_ends_of_time_do_not_overflow():
    assert moments.format_in_utc("0001-01-01T00:00:00+14:00") == ""
