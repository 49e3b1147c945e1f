"""The texts of refusals."""

from __future__ import annotations

import pytest

from journal.errors import Conflict, DomainError


@pytest.mark.parametrize(
    "done", ["recorded", "changed", "allowed", "proposed"], ids=str
)
def test_the_cause_is_the_detail_without_what_was_not_done(done: str) -> None:
    refusal = Conflict(f"This needs a supervisor. Nothing was {done}.")
    assert refusal.cause == "This needs a supervisor."


@pytest.mark.parametrize(
    "detail", ["Nothing was changed. Ask again.", "This needs a supervisor."]
)
def test_another_detail_is_the_cause_as_it_is(detail: str) -> None:
    assert DomainError(detail).cause == detail
