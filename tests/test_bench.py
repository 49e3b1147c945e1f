"""What the benchmark waits for, and how it prints what it measured."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from bench.execution import UNDONE
from bench.peers import runners
from bench.report import GoalResult, Options, format_table
from journal.clock import now
from journal.models import OutboxMessage

pytestmark = pytest.mark.django_db


def undone() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(UNDONE)
        return {topic for (topic,) in cursor.fetchall()}


def promise(topic: str, **fields: object) -> None:
    OutboxMessage.objects.create(topic=topic, task="t", subject="s", **fields)


def test_it_waits_for_all_that_the_worker_will_deal_with_now() -> None:
    later, before = now() + timedelta(hours=1), now() - timedelta(hours=1)
    promise("new")
    promise("done", done_at=now())
    promise("in work", attempts=1, held_until=later)
    promise("due again", attempts=1, held_until=before)
    assert undone() == {"new", "in work", "due again"}


def test_it_waits_for_no_mail_that_is_gathered_until_later() -> None:
    promise("digest", held_until=now() + timedelta(hours=1))
    assert undone() == set()


def build_result(goal: str, **fields: Any) -> GoalResult:
    return GoalResult(goal, "0.50 x", ">= 0.45 x", True, "n = 9", **fields)


def test_the_table_has_a_row_for_each_goal_that_was_not_measured() -> None:
    table = format_table([build_result("G10 p99")], ["G2", "G10", "G12"])
    rows = [line.split()[0] for line in table.splitlines() if line.startswith("G")]
    assert rows == ["G2", "G10", "G12"]
    assert table.count("not measured") == 2


def test_the_table_breaks_long_cells_inside_their_columns() -> None:
    long = build_result("G1 round trip", floor="many words of the floor " * 9)
    wide = max(map(len, format_table([long], ["G1"]).splitlines()))
    assert wide <= len(format_table([], []).splitlines()[1])
    assert "words" in format_table([long], ["G1"]).splitlines()[-1]


def test_a_short_run_takes_a_part_of_the_numbers() -> None:
    short, full = (Options(1, seconds, frozenset()) for seconds in (0.2, 5.0))
    assert (short.scale(1000), full.scale(1000)) == (100, 1000)
    assert short.scale(1000, least=300) == 300


def test_cycles_are_compared_where_both_were_measured() -> None:
    ours = [build_result(f"G12 {n}", rates={n: 300.0}) for n in (1, 4)]
    peer = [build_result(f"awaithumans {n}", rates={n: 80.0}) for n in (1, 16)]
    (result,) = runners.compare_cycles([*ours, *peer])
    assert (result.number, result.measured, result.held) == ("G12", "3.75 x", True)
    assert runners.compare_cycles(ours) == []
