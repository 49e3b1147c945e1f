"""The planned cases: what people decide is read as it is written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from demo.history.cases import PlannedVerdict, load_cases
from demo.store.database import data
from reviews.choices import Verdict

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "planned"),
    [
        ("rita", PlannedVerdict("rita", Verdict.APPROVE, "verified")),
        ("-tom duplicate", PlannedVerdict("tom", Verdict.REJECT, "duplicate")),
        ("^rita unclear", PlannedVerdict("rita", Verdict.ESCALATE, "unclear")),
        (
            "*tom 90.00",
            PlannedVerdict("tom", Verdict.MODIFY, "wrong_amount", "90.00"),
        ),
    ],
)
def test_a_verdict_is_one_sign_a_person_and_its_fact(
    text: str, planned: PlannedVerdict
) -> None:
    assert PlannedVerdict.parse(text) == planned


def test_the_cases_fill_thirty_days_and_no_order_is_in_the_inbox() -> None:
    orders = {row["id"]: row for row in data("orders")}
    cases = load_cases(NOW, dict.fromkeys(orders, "somebody@mail.example"))
    assert cases == sorted(cases, key=lambda case: case.at)
    assert NOW - timedelta(days=30) < cases[0].at
    assert NOW - timedelta(hours=5) < cases[-1].at < NOW
    assert len({case.thread for case in cases}) == len(cases)
    inbox = str(data("messages"))
    for case in cases:
        for call in case.calls:
            order = call.args.get("order_id")
            if order is not None:
                assert order not in inbox, order
                placed = timedelta(days=orders[order]["placed_days_ago"])
                assert NOW - placed < case.at, order
