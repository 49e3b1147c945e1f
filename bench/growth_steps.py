"""The measurements of `bench.growth`, in the order of a gate's years: one period of the
log, then a year of them with nearly all records, then five years."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from django.db import connection, transaction

from desk.components import log_lines
from journal import archives, periods, sequencer, verification
from journal.models import LogPeriod, LogPosition, LogRecord
from policies.models import Person
from reviews.models import ApprovalRequest

from . import browser, bulk_actions, clients, growth_records, seed
from .report import print_text

YEAR, FIVE_YEARS = 12, 60
ACTIONS = 10_000  # in one transaction
PATTERNS = 40
WHOLE = 500  # actions with all rows, as the newest of each of the first two stages
WHOLE_LATER = 20  # in each period of the later years
WARM_UP, VIEWS, LOOKS = 2, 9, 51
_SIZES = """
SELECT coalesce(parent.relname, part.relname), index.relname,
       sum(pg_relation_size(coalesce(nullif(index.oid, 0::oid), part.oid)))
FROM pg_class AS part
JOIN pg_inherits AS own ON own.inhrelid = part.oid
JOIN pg_class AS parent ON parent.oid = own.inhparent
LEFT JOIN LATERAL (
    SELECT 0::oid AS oid, '' AS relname UNION ALL
    SELECT made.indexrelid, coalesce(above.relname, 'seq')
    FROM pg_index AS made
    LEFT JOIN pg_inherits AS upper ON upper.inhrelid = made.indexrelid
    LEFT JOIN pg_class AS above ON above.oid = upper.inhparent
    WHERE made.indrelid = part.oid
) AS index ON true
WHERE part.relkind = 'r'
GROUP BY 1, 2 ORDER BY 1, 2
"""
_FROZEN = """
SELECT sum(relpages), sum(relallfrozen), sum(autovacuum_count)
FROM pg_class JOIN pg_stat_user_tables AS used ON used.relid = pg_class.oid
WHERE pg_class.relname ~ '^journal_log(record|payload|position)_[0-9]+$'
"""


class GrowthRun:
    """One run: the seed, a connection that writes, and the number of whole actions."""

    def __init__(self, writer: psycopg.Connection[Any]) -> None:
        self.writer = writer
        self.seed = seed.seed_database()
        client = clients.ProductClient(self.seed, 0)
        self.proposals = [self._perform(client) for _ in range(PATTERNS)]
        self.patterns = [growth_records.load_action(pk) for pk in self.proposals]
        self.waiting = seed.propose_pages(self.seed, 1).review
        self.whole = bulk_actions.load_pattern(writer, self.proposals[0])
        self.whole_actions = self.records = 0

    def _perform(self, client: clients.ProductClient) -> str:
        request = client.decide(client.propose())
        client.perform(request.proposal_id)
        return str(request.proposal_id)

    def fill(self, records: int, seconds: float) -> None:
        """Add and place records until there are so many, or the time is up."""
        began, before, placing = time.monotonic(), self.records, 0.0
        while self.records < records and time.monotonic() < began + seconds:
            rest = (records - self.records) // len(self.patterns[0].records) + 1
            self.records += growth_records.write_records(
                self.writer, self.patterns, min(rest, ACTIONS)
            )
            placing += time_call(place_all)
        took, made = time.monotonic() - began, self.records - before
        if made:
            print_text(
                f"{self.records:,} records; {made:,} added at"
                f" {made / (took - placing):,.0f} a second and placed at"
                f" {made / placing:,.0f} a second"
            )

    def add_whole_actions(self, count: int) -> None:
        """Add actions with all of their rows, not only those of the log."""
        written = bulk_actions.write_actions(
            self.writer, self.whole, count, above=self.whole_actions
        )
        for _ in written:
            pass
        self.whole_actions += count
        self.records += count * len(self.patterns[0].records)
        place_all()


def measure_growth(records: int, most_seconds: int) -> None:
    """Fill the database, measure it at each stage, and print a line a figure."""
    with clients.connect_database(autocommit=True) as writer:
        run = GrowthRun(writer)
        measure_writing(run)
        run.fill(records // YEAR, most_seconds / YEAR)
        run.add_whole_actions(WHOLE)
        measure_reading(run)
        for number in range(1, YEAR):
            begin_period()
            run.fill(records * (number + 1) // YEAR, most_seconds / YEAR)
        run.add_whole_actions(WHOLE)
        print_vacuum()
        print_sizes(run.records)
        measure_writing(run)
        measure_reading(run)
        measure_archive()
        for _ in range(YEAR, FIVE_YEARS):
            begin_period()
            run.add_whole_actions(WHOLE_LATER)
        analyze()
        measure_writing(run)
        measure_reading(run)


def place_all() -> None:
    while sequencer.sequence_records(100_000):
        pass


def begin_period() -> None:
    with transaction.atomic():
        periods.begin_period(why="month", patience_ms=5000)


def analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def measure_writing(run: GrowthRun) -> None:
    """Whole actions by the gate's own operations, one client."""
    client = clients.ProductClient(run.seed, 1)
    took = [time_call(client.action) for _ in range(WARM_UP + LOOKS)][WARM_UP:]
    placed = [time_call(partial(sequencer.sequence_records, 1000))]
    place_all()
    print_text(
        f"with {count_periods()} periods and {run.records:,} records: an action"
        f" {format_times(took)}, {len(took) / sum(took):.1f} a second; placing its"
        f" records {format_times(placed)}"
    )


def measure_reading(run: GrowthRun) -> None:
    """Pages as people load them, and the log's own queries by proposal."""
    settled = ApprovalRequest.objects.get(proposal_id=run.proposals[0])
    middle = LogPosition.objects.order_by("seq").values_list("seq", flat=True)
    paths = {
        "queue": ("rita", "/queue/"),
        "waiting request": ("rita", f"/requests/{run.waiting}/"),
        "settled request": ("sue", f"/requests/{settled.pk}/"),
        "log": ("sue", "/log/"),
        "log of one agent": ("sue", f"/log/?agent={run.seed.agents[0].slug}"),
        "record": ("sue", f"/log/{middle[1000]}/"),
    }
    periods_now = count_periods()
    for name, (who, path) in paths.items():
        whole, queries, statements = time_page(who, path)
        print_text(
            f"with {periods_now} periods, {name} page: {format_times(whole)},"
            f" {statements} statements {format_times(queries)}"
        )
    sue = Person.objects.get(username="sue")
    of_proposal = LogRecord.objects.filter(proposal=settled.proposal_id)
    for name, read in (
        (
            "a request's history",
            lambda: list(log_lines.select_request_records(sue, settled)[:100]),
        ),
        ("records of one proposal", lambda: list(of_proposal.all())),
        ("the newest record", lambda: LogRecord.objects.order_by("-pk").first()),
    ):
        took = [time_call(read) for _ in range(LOOKS)]
        print_text(f"with {periods_now} periods, {name}: {format_times(took)}")


def time_page(who: str, path: str) -> tuple[list[float], list[float], int]:
    """Whole GETs, the time of their statements, and the number of these."""
    client = browser.sign_in_client(who)
    whole, queries, statements = [], [], 0
    spent: list[float] = []

    def timed(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            spent.append(time.perf_counter() - began)

    for view in range(WARM_UP + VIEWS):
        spent.clear()
        with connection.execute_wrapper(timed):
            began = time.perf_counter()
            answer = client.get(path)
            took = time.perf_counter() - began
        assert answer.status_code == 200, (path, answer.status_code)
        if view >= WARM_UP:
            whole.append(took)
            queries.append(sum(spent))
            statements = len(spent)
    return whole, queries, statements


def print_vacuum() -> None:
    """What the vacuum of the server itself has frozen by now, and what one costs."""
    connection.close()  # a session adds what it counted when it ends
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(_FROZEN)
        pages, frozen, vacuums = cursor.fetchone()
    print_text(
        f"vacuum: the server made {vacuums} by itself, {frozen / pages:.0%} of"
        f" {pages:,} pages are frozen"
    )
    for name in ("a vacuum", "the next vacuum"):
        print_text(f"{name} of everything: {time_call(analyze):.1f} s (n = 1)")


def print_sizes(records: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SIZES)
        for table, index, size in cursor.fetchall():
            what = f"{table} {index}" if index else f"{table} itself"
            print_text(f"{what}: {size / records:.1f} bytes a record")
        cursor.execute("SELECT pg_database_size(current_database())")
        size = cursor.fetchone()[0]
    print_text(f"database: {size / 1e9:.2f} GB, {size / records:.0f} bytes a record")


def measure_archive() -> None:
    """Write the oldest period into a file, read it again, and remove its tables."""
    period = LogPeriod.objects.earliest("number")
    with TemporaryDirectory(dir="/var/tmp") as folder:
        began = time.monotonic()
        made = archives.write_archive(period, Path(folder), texts=True)
        took = time.monotonic() - began
        path = Path(folder) / made.name
        reading = time_call(lambda: archives.check_archive(period, path, made.tree))
        written = took - reading
        size = path.stat().st_size
        print_text(
            f"archive of {made.records:,} records: {size / made.records:.0f} bytes a"
            f" record; written at {made.records / written:,.0f} records and"
            f" {size / written / 1e6:.1f} MB a second, read at"
            f" {made.records / reading:,.0f} records a second (n = 1)"
        )
    compared = time_call(lambda: archives.compute_tree(period))
    print_text(f"its tree from the database: {compared:.1f} s (n = 1)")
    checked = 100_000
    took = time_call(lambda: verification.verify_log(newest=checked))
    print_text(f"verifying {checked:,} records in the database: {took:.1f} s (n = 1)")

    def drop() -> None:
        with transaction.atomic():
            archives.drop_tables(period)
            transaction.set_rollback(True)  # its requests are measured again

    print_text(f"removing its tables: {time_call(drop) * 1000:.0f} ms (n = 1)")


def count_periods() -> int:
    return LogPeriod.objects.count()


def format_times(took: list[float]) -> str:
    few, many = min(took) * 1000, max(took) * 1000
    middle = f"{median(took) * 1000:.1f} ms"
    return f"{middle} ({few:.1f} to {many:.1f}, n = {len(took)})"


def time_call(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
