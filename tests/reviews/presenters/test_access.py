"""Access changes, on which resource, until when."""

from __future__ import annotations

from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud, rows

AGENT = {"agent": {"name": "riley"}}


def give(**args):
    return kinds.show("give_access", facts=AGENT, before=None, **args)


def test_wildcards_administrators_and_no_end_are_called_out():
    shown = kinds.show("give_access", facts=AGENT)
    assert loud(shown) == [
        "Gives administrator rights",
        "Has a wildcard",
        "The agent gives itself access",
        "Never expires",
    ]
    assert rows(shown)["roles[0]"].warns == ("Administrator",)
    assert rows(shown)["roles[1]"].warns == ("Wildcard",)


def test_a_small_grant_with_an_end_is_not():
    small = give(roles=["logs.view"], principal="dana", expires="2026-04-01")
    assert loud(small) == []
    assert "Never expires" in loud(give(roles=["x"], expires="never"))
    assert "Gives everyone access" in loud(give(principal="allUsers"))


def test_taking_away_is_not_giving():
    assert loud(give(action="revoke")) == ["Removes access"]


def test_the_end_of_the_sum_is_what_the_tool_declared():
    group = kinds.show("give_access").views[-1]
    assert [(row.label, row.cell.text) for row in group.rows] == [
        ("Gets", "logs.write"),
        ("Gets", "storage.delete"),
    ]
    assert group.note == "1 unchanged"
    assert len(give().views) == 1
