"""How often canaries come: between 1 in 60 and 3 in 100 decisions."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reviews.assurance.rates import ReviewerRecord, compute_gap, has_slack

FINE = ReviewerRecord(decided=100, unmodified=97, canaries=5, caught=4)
JUDGED = [
    (FINE, False),
    (ReviewerRecord(100, 98, 0, 0), True),
    (ReviewerRecord(99, 99, 0, 0), False),  # too few to say
    (ReviewerRecord(100, 50, 5, 3), True),
    (ReviewerRecord(100, 50, 4, 0), False),
]


@pytest.mark.parametrize(("record", "more"), JUDGED)
def test_who_approves_all_or_misses_many_gets_more(
    record: ReviewerRecord, more: bool
) -> None:
    gaps = [compute_gap(record, drawn / 1000) for drawn in range(1000)]
    assert (min(gaps), max(gaps)) == ((34, 40) if more else (45, 60))
    assert 1 / 60 <= 1 / max(gaps) <= 1 / min(gaps) <= 0.03


def test_a_canary_waits_while_something_is_urgent() -> None:
    assert has_slack(None)
    assert has_slack(timedelta(minutes=10, seconds=1))
    assert not has_slack(timedelta(minutes=10))
