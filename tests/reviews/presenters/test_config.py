"""A setting: before and after, for whom, and the way back."""

from __future__ import annotations

import pytest

from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud


def flag(before=None, **args):
    return kinds.show("set_flag", before=before, **args)


def test_the_value_is_a_change_of_what_was_read():
    (change,) = kinds.show("set_flag").changes
    assert (change.before.text, change.after.text) == ("yes", "no")


@pytest.mark.parametrize(
    ("args", "tag"),
    [
        ({}, "A billing setting"),
        ({"flag": "mfa_required"}, "A security setting"),
        ({"percent": 100}, "For everyone"),
        ({"percent": ...}, "No scope given: everyone"),
        ({}, "No previous value to restore"),
        ({}, "Turns something off"),
    ],
)
def test_what_is_always_called_out(args, tag):
    assert tag in loud(flag(**args))


def test_a_small_step_with_a_way_back_is_quiet():
    assert loud(flag(flag="new_banner", enabled=True, percent=5, fallback=False)) == []
    read = flag(before={"value": False}, flag="new_banner", enabled=True, percent=5)
    assert loud(read) == []
