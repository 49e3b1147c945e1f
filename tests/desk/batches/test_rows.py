"""Which rows must be opened: few, by lot, and those that stand out first."""

from __future__ import annotations

import pytest

from desk.batches import rows as batch_rows


@pytest.mark.parametrize(("count", "picked"), [(2, 2), (20, 3), (21, 5), (50, 5)])
def test_three_of_twenty_and_five_of_fifty(count: int, picked: int) -> None:
    rows = [f"r-{n}" for n in range(count)]
    assert len(batch_rows.pick_samples("b-1", rows, [])) == picked


def test_outliers_count_and_the_lot_is_another_in_every_batch() -> None:
    rows = [f"r-{n}" for n in range(50)]
    assert batch_rows.pick_samples("b-1", rows, ["r-7", "r-9"])[:2] == ["r-7", "r-9"]
    lots = {tuple(batch_rows.pick_samples(f"b-{n}", rows, [])) for n in range(10)}
    assert len(lots) == 10
    assert batch_rows.pick_samples("b-1", rows, []) == batch_rows.pick_samples(
        "b-1", rows, []
    )
