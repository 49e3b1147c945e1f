"""A record field by field: dates, people, and how many rows."""

from __future__ import annotations

from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud, rows, tags


def test_a_moment_with_an_offset_is_said_in_utc_too():
    assert rows(kinds.show("update_customer"))["since"].note == (
        "Sunday 2026-03-01 07:00 UTC"
    )


def test_what_is_emptied_and_whom_it_is_about_is_called_out():
    shown = kinds.show("update_customer")
    assert loud(shown) == ["Empties 1 field"]
    assert "Personal data: 2 fields" in tags(shown)


def test_many_rows_are_called_out_as_declared():
    many = kinds.show("delete_customer", before={"rows": 1204})
    assert "1,204 rows, as declared by the tool" in loud(many)
    assert loud(kinds.show("delete_customer", before={"rows": True})) == ["Deletes"]
