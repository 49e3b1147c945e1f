"""What was only needed for a while is forgotten from the oldest on, whatever stays."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from journal import clock, sweeps
from journal.models import OutboxMessage

pytestmark = pytest.mark.django_db
KEEP = 7


@pytest.fixture(autouse=True)
def _short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "DELETE_CHUNK", 2)


def promises(*ages: int | None) -> list[int]:
    """Promises that were kept so many days ago, or not yet; their ids."""

    def done(days: int | None) -> datetime | None:
        return None if days is None else clock.now() - timedelta(days=days)

    rows = [OutboxMessage(topic="t", task="t", done_at=done(days)) for days in ages]
    return [one.pk for one in OutboxMessage.objects.bulk_create(rows)]


def forget(over: str = "true") -> set[int]:
    """Prune, and say what is left."""
    sweeps.delete_old_rows(
        "journal_outboxmessage", made="done_at", days=KEEP, over=over
    )
    return set(OutboxMessage.objects.values_list("pk", flat=True))


def test_all_that_is_old_goes_in_one_sweep() -> None:
    made = promises(9, 9, 9, 9, 9, 1)
    assert forget() == {made[-1]}


@pytest.mark.parametrize("stays", [None, 1])
def test_what_stays_holds_up_nothing_behind_it(stays: int | None) -> None:
    """However much: more than a piece, and at the very front."""
    made = promises(*[None] * 5, 9, 9, None, 9, stays)
    assert forget() == {*made[:5], made[7], made[9]}


def test_nor_does_what_a_condition_keeps() -> None:
    made = promises(9, 9, 9, 9, 9, 9)
    kept = f"id NOT BETWEEN {made[0]} AND {made[3]}"
    assert forget(kept) == set(made[:4])


def test_it_ends_where_all_is_young() -> None:
    """Ids grow with time: behind what is young there is nothing old."""
    made = promises(1, 1, 9)
    assert forget() == set(made)


def test_what_is_too_much_for_one_sweep_is_left_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweeps, "MAX_CHUNKS", 2)
    made = promises(9, 9, 9, 9, 9)
    assert forget() == {made[-1]}
    assert forget() == set()
