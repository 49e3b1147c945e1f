"""H: each role's home, and the statistics, among a million requests.

First all of them wait. Then all but ten thousand have ended in the last thirty days,
each with a decision, as in the database of a busy company.
"""

from __future__ import annotations

import time
from statistics import median

from django.core.management import call_command
from django.db import connection
from django.test import Client

from policies.choices import Role
from world import cast

from . import browser, scale
from .clients import ProductClient
from .report import GoalResult, Options, format_ms, print_text
from .scale import REPEATS, WARM_UP
from .seed import Seed

BAR_S = 0.3
WAITING = 10_000
AUDITOR = "ada"
# Who opens what; "/" leads to the role's own home.
PAGES = (
    ("rita", "/"),
    ("sue", "/"),
    ("adam", "/"),
    (AUDITOR, "/"),
    ("owen", "/"),
    ("owen", "/own-statistics/"),
    ("sue", "/statistics/"),
)
_DAYS_S = 30 * 24 * 3600
_END = f"""
UPDATE reviews_approvalrequest AS request SET
  opened_at = now() - later.n * interval '1 second',
  settled_at = now() - later.n * 0.99 * interval '1 second',
  status = CASE WHEN mod(later.k, 10) = 0 THEN 'expired' ELSE 'rejected' END
FROM (SELECT id, row_number() OVER () AS k,
        row_number() OVER () * {_DAYS_S}.0 / count(*) OVER () AS n
      FROM reviews_approvalrequest WHERE id LIKE 'r-copy%%') AS later
WHERE request.id = later.id AND later.k > %(waiting)s
"""  # noqa: S608 constants
_BACKDATE = """
UPDATE reviews_proposal AS proposal SET created_at = request.opened_at
FROM reviews_approvalrequest AS request
WHERE request.proposal_id = proposal.id AND request.settled_at IS NOT NULL
"""
_DECIDE = """
INSERT INTO reviews_decision
SELECT copy.* FROM reviews_approvalrequest AS request
JOIN reviews_decision AS made ON made.id = (SELECT min(id) FROM reviews_decision)
CROSS JOIN LATERAL jsonb_populate_record(made, jsonb_build_object(
  'id', 1000000 + substr(request.id, 7)::bigint,
  'request_id', request.id, 'at', request.settled_at,
  'verdict', 'reject', 'counts', false, 'step', null)) AS copy
WHERE request.status = 'rejected' AND request.id LIKE 'r-copy%'
ORDER BY request.settled_at
"""
# Rows lie in the order in which they came, as in a database that grew.
_ORDER = """
CREATE INDEX bench_came ON reviews_approvalrequest (opened_at);
CLUSTER reviews_approvalrequest USING bench_came;
DROP INDEX bench_came;
CLUSTER reviews_proposal USING proposal_newest
"""


def measure_homes(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """H: the whole GET of each home, with every middleware."""
    call_command("collectstatic", interactive=False, verbosity=0)
    client = ProductClient(seed, 0)
    client.decide(client.propose())
    databases = scale.get_databases(seed, options)
    results: list[GoalResult] = []
    with databases.at(databases.many):
        cast.add_person(AUDITOR, Role.AUDITOR)
        results += _measure_pages(f"{databases.count:,} waiting")
        waiting = min(WAITING, databases.count // 2)
        print_text(f"ending all but {waiting:,} requests")
        _end_requests(waiting)
        results += _measure_pages(f"{databases.count:,}, {waiting:,} waiting")
    return tuple(results)


def _end_requests(waiting: int) -> None:
    with connection.cursor() as cursor:
        # Copies of rows that passed every check and trigger.
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(_END, {"waiting": waiting})
        cursor.execute(_BACKDATE)
        cursor.execute(_DECIDE)
        for statement in _ORDER.split(";"):
            cursor.execute(statement)
        cursor.execute("VACUUM ANALYZE")


def _measure_pages(among: str) -> list[GoalResult]:
    results = []
    for name, path in PAGES:
        client = browser.sign_in_client(name)
        for _ in range(WARM_UP):
            _time_answer(client, path)
        times = [_time_answer(client, path) for _ in range(REPEATS)]
        result = GoalResult(
            f"H {name} {path} among {among}",
            f"{format_ms(median(times))}, at most {format_ms(max(times))}",
            f"<= {format_ms(BAR_S)}",
            median(times) <= BAR_S,
            f"n = {REPEATS}",
        )
        print_text(str(result))
        results.append(result)
    return results


def _time_answer(client: Client, path: str) -> float:
    began = time.perf_counter()
    answer = client.get(path, follow=True)
    took = time.perf_counter() - began
    assert answer.status_code == 200, answer.status_code
    return took
