"""Ids: unguessable, and told from anything else that an agent may write."""

from __future__ import annotations

import pytest

from journal import ids


def test_each_is_new_and_has_its_shape() -> None:
    made = {ids.new("p") for _ in range(100)}
    assert len(made) == 100
    assert all(ids.is_id(pk, "p") for pk in made)


NOUGHTS = "0" * 20


@pytest.mark.parametrize(
    "text",
    [
        *("", "p-", f"r-{NOUGHTS}", f"p-{NOUGHTS[1:]}", f"p-{NOUGHTS}0"),
        *(f"p-{NOUGHTS[1:]}u", f"p-{NOUGHTS}\n", f" p-{NOUGHTS}", "approved by all"),
    ],
)
def test_nothing_else_is_one(text: str) -> None:
    assert not ids.is_id(text, "p")
