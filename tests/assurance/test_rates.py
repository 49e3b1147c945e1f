"""How often canaries come: on average between 1 in 60 and 3 in 100 decisions."""

from __future__ import annotations

from datetime import timedelta
from statistics import mean

import pytest

from assurance.rates import ReviewerRecord, compute_gap, has_slack

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
    gaps = [compute_gap(record, (drawn + 0.5) / 10_000) for drawn in range(10_000)]
    assert round(mean(gaps)) == (37 if more else 52)
    assert 1 / 60 <= 1 / mean(gaps) <= 0.03


@pytest.mark.parametrize("since", [0, 1, 10, 44])
def test_no_decision_after_a_canary_is_safe_from_the_next(since: int) -> None:
    """Whatever a reviewer counts since the last one, the next decision is as likely to
    bring one as any other."""
    gaps = [compute_gap(FINE, (drawn + 0.5) / 100_000) for drawn in range(100_000)]
    left = [gap for gap in gaps if gap > since]
    due = sum(gap == since + 1 for gap in left) / len(left)
    assert due == pytest.approx(1 / 52, abs=0.001)


def test_a_canary_waits_while_something_is_urgent() -> None:
    assert has_slack(None)
    assert has_slack(timedelta(minutes=10, seconds=1))
    assert not has_slack(timedelta(minutes=10))
