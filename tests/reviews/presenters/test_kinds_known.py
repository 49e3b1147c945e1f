"""The views that a policy may name are those that there are."""

from __future__ import annotations

from policies.documents.argument_roles import PRESENTERS
from reviews.presenters import _PRESENTERS


def test_a_policy_knows_every_view_and_no_other() -> None:
    assert {*_PRESENTERS, "table"} == PRESENTERS
