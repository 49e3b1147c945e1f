"""What goes live: one-way steps first, checks as they were read."""

from __future__ import annotations

import pytest

from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud, tags


def ship(before=None, **args):
    return kinds.show("deploy", before=before, **args)


def test_what_cannot_be_taken_back_comes_first():
    shown = kinds.show("deploy")
    steps = [(row.cell.text, row.warns) for row in shown.views[0].rows]
    assert steps == [
        ("DROP COLUMN legacy_id", ("Cannot be rolled back",)),
        ("add column note", ()),
    ]
    assert loud(shown)[:3] == [
        "Permanently drops something",
        "Production",
        "1 check not passing",
    ]
    assert shown.size[0].value == "a81c04e..f00ba12"


def test_red_checks_stand_first_and_missing_ones_are_said():
    checks = kinds.show("deploy").views[-1]
    assert [(row.label, row.cell.text) for row in checks.rows] == [
        ("tests", "failure"),
        ("lint", "success"),
    ]
    assert "Check results unknown" in loud(ship())
    green = ship(before={"checks": {"tests": "success"}})
    assert not any("check" in text for text in loud(green))


@pytest.mark.parametrize(
    ("args", "tag"),
    [
        ({"force": True}, "Forced: history is overwritten"),
        ({"environment": "prod"}, "Production"),
        ({"migrations": ["truncate table x"]}, "Permanently drops something"),
        ({"migrations": ["rotate the secret"]}, "Touches secrets"),
    ],
)
def test_what_is_always_called_out(args, tag):
    assert tag in loud(ship(**args))


def test_a_stage_with_a_way_back_is_quiet():
    shown = ship(
        before={"checks": {"tests": "ok"}},
        environment="staging",
        migrations=[],
        rollback="a81c04e",
    )
    assert tags(shown) == []
    assert "No rollback is named" in tags(ship())
    touched = ship(before={"checks": {"t": "ok"}, "files": ["a/.env"]})
    assert "Touches secrets" in loud(touched)
