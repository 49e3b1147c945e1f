"""G6 and G7: the queue and the review page among a thousand and a million requests.

The waiting requests are copies of a few that were really proposed. Two databases on one
server hold few and many of them. Both are measured in turn, by the same process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any
from unittest import mock

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.template.backends.django import Template

from desk.components import badges
from desk.queue import page
from desk.queue.page import QueueFilters
from journal import clock
from policies.models import Person
from reviews.models import ApprovalRequest, Proposal

from . import browser
from .clients import ProductClient
from .report import GoalResult, Options, format_ms, format_ratio, print_text
from .seed import Seed

COST_BAR, RENDER_BAR_S = 1.2, 0.004
REPEATS = 15  # views of a page in one round, after two to warm up
WARM_UP = 2
VIEWS = [("rita", tab) for tab in ("open", "mine", "waiting", "done")] + [
    ("sue", tab) for tab in ("open", "waiting", "done")
]
_created: list[Databases] = []


def get_databases(seed: Seed, options: Options) -> Databases:
    """Both goals look at the same rows."""
    if not _created:
        _created.append(create_databases(seed, options.scale(MANY, least=FEW)))
    return _created[0]


@dataclass(slots=True)
class Comparison:
    """The same measurement among few and among many, a round each."""

    few: list[float] = field(default_factory=list)
    many: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        return [many / few for few, many in zip(self.few, self.many, strict=True)]


def measure_queue_queries(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """G6: the time that the queue view's queries take."""
    databases = get_databases(seed, options)
    pairs = {view: Comparison() for view in VIEWS}
    for number in range(options.rounds):
        for view, pair in pairs.items():
            _measure_both(databases, pair, partial(time_queries, *view))
        ratios = ", ".join(
            f"{' '.join(v)} {p.ratios[-1]:.2f}" for v, p in pairs.items()
        )
        print_text(f"G6 round {number + 1}: {ratios}")
    main = pairs["rita", "open"]
    rest = [pair for view, pair in pairs.items() if view != ("rita", "open")]
    others = max(rest, key=lambda pair: median(pair.ratios))
    return (
        _build_cost_result("G6 queue view", main, databases, options),
        _build_cost_result("G6 slowest other tab", others, databases, options),
    )


def _build_cost_result(
    goal: str, pair: Comparison, databases: Databases, options: Options
) -> GoalResult:
    return GoalResult(
        f"{goal} among {databases.count:,}",
        f"{format_ratio(pair.ratios)} x, {format_ms(median(pair.many))}",
        f"<= {COST_BAR} x its cost among {FEW:,}",
        median(pair.ratios) <= COST_BAR,
        f"n = {REPEATS} of each, {options.rounds} rounds in turn",
        floor=f"among {FEW:,}: {format_ms(median(pair.few))}",
    )


def time_queries(name: str, tab: str) -> Callable[[], float]:
    """A view of the queue by this person, which returns the seconds of its queries."""

    def view() -> float:
        person = Person.objects.get(username=name)
        spent = 0.0

        def timed(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            nonlocal spent
            began = time.perf_counter()
            try:
                return execute(sql, params, many, context)
            finally:
                spent += time.perf_counter() - began

        with connection.execute_wrapper(timed):
            badges.count_badges(person)
            page.build_queue_page(person, QueueFilters(tab=tab), now=clock.now())
        return spent

    return view


def measure_whole_pages(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """G7: whole GETs through every middleware, and what the templates take of it."""
    databases = get_databases(seed, options)
    call_command("collectstatic", interactive=False, verbosity=0)
    paths = {"queue": "/queue/", "review": f"/requests/{databases.asked}/"}
    pairs = {name: Comparison() for name in paths}
    renders = {name: Comparison() for name in paths}
    for number in range(options.rounds):
        for name, path in paths.items():
            _measure_both(databases, pairs[name], partial(_time_answer, path))
            _measure_both(databases, renders[name], partial(_time_render, path))
        progress = ", ".join(
            f"{n} {pairs[n].ratios[-1]:.2f} x, render {format_ms(renders[n].many[-1])}"
            for n in paths
        )
        print_text(f"G7 round {number + 1}: {progress}")
    costs = (
        _build_cost_result(f"G7 {name} page, whole GET", pair, databases, options)
        for name, pair in pairs.items()
    )
    cpu = (_build_render_result(name, pair) for name, pair in renders.items())
    return (*costs, *cpu)


def _build_render_result(name: str, pair: Comparison) -> GoalResult:
    return GoalResult(
        f"G7 {name} page, CPU of its templates",
        format_ms(median(pair.many)),
        f"<= {format_ms(RENDER_BAR_S)}",
        median(pair.many) <= RENDER_BAR_S,
        f"n = {REPEATS} of each, {len(pair.many)} rounds",
        floor=f"among {FEW:,}: {format_ms(median(pair.few))}",
    )


def _measure_both(
    databases: Databases, pair: Comparison, make: Callable[[], Callable[[], float]]
) -> None:
    for name, times in ((databases.few, pair.few), (databases.many, pair.many)):
        with databases.at(name):
            view = make()
            for _ in range(WARM_UP):
                view()
            times.append(median([view() for _ in range(REPEATS)]))


def _time_answer(path: str) -> Callable[[], float]:
    client = browser.sign_in_client("rita")

    def view() -> float:
        began = time.perf_counter()
        answer = client.get(path)
        took = time.perf_counter() - began
        assert answer.status_code == 200, answer.status_code
        return took

    return view


def _time_render(path: str) -> Callable[[], float]:
    client = browser.sign_in_client("rita")

    def view() -> float:
        with _record_renders() as spent:
            client.get(path)
        return sum(spent)

    return view


@contextmanager
def _record_renders() -> Iterator[list[float]]:
    """Collect the CPU time of every template that is rendered meanwhile."""
    spent: list[float] = []
    plain = Template.render

    def timed(self: Template, *args: Any, **kwargs: Any) -> Any:
        began = time.thread_time()
        try:
            return plain(self, *args, **kwargs)
        finally:
            spent.append(time.thread_time() - began)

    with mock.patch.object(Template, "render", timed):
        yield spent


FEW, MANY = 1_000, 1_000_000
_PATTERNS = 16  # requests that were really asked; the others are copies
_SMALL = "bench_few"
# Each table with what differs in a copy; `n` is its number, `t` the row copied.
_COPIES = {
    "reviews_proposal": """
      'id', 'p-copy' || n, 'agent', 'agent-' || mod(n, 64),
      'thread', 'copy-' || n / 10""",
    "reviews_revision": "'id', 1000000 + n, 'proposal_id', 'p-copy' || n",
    "reviews_approvalrequest": """
      'id', 'r-copy' || n, 'proposal_id', 'p-copy' || n,
      'agent', 'agent-' || mod(n, 64),
      'repeat_key', md5('copy' || n)::uuid, 'rank', mod(n, 3) * 10 + 1,
      'risk', (ARRAY['critical', 'high', 'medium'])[mod(n, 3) + 1],
      'supervisors_only', mod(n, 4) = 0,
      'opened_at', now() - mod(n, 86400) * interval '1 second',
      'expires_at', now() + interval '3 hours' + mod(n, 864000) * interval '1 second',
      'expires_at_most', now() + interval '30 days'""",
    "reviews_requestversion": """
      'id', 1000000 + n, 'request_id', 'r-copy' || n, 'revision_id', 1000000 + n,
      'steps', jsonb_build_array(jsonb_build_object('required', 1, 'role',
        CASE WHEN mod(n, 4) = 0 THEN 'supervisor' ELSE 'reviewer' END))""",
    "journal_logrecord": """
      'id', 1000000000 + n, 'proposal', 'p-copy' || n, 'request', 'r-copy' || n""",
}
_OF_PATTERNS = "t.proposal_id = ANY (%(proposals)s)"
_PATTERN = {
    "reviews_proposal": "t.id = ANY (%(proposals)s)",
    "reviews_revision": _OF_PATTERNS,
    "reviews_approvalrequest": _OF_PATTERNS,
    "reviews_requestversion": """EXISTS (
      SELECT FROM reviews_approvalrequest AS r
      WHERE r.id = t.request_id AND r.proposal_id = ANY (%(proposals)s))""",
    "journal_logrecord": """
      t.kind = 'request.opened' AND t.proposal = ANY (%(proposals)s)""",
}
_COPY = """
INSERT INTO {table}
SELECT copy.* FROM
  (SELECT t, row_number() OVER () - 1 AS k, count(*) OVER () AS patterns
   FROM {table} AS t WHERE {pattern}) AS them
CROSS JOIN generate_series(1, %(count)s) AS n
CROSS JOIN LATERAL jsonb_populate_record(them.t, jsonb_build_object({changes})) AS copy
WHERE mod(n, them.patterns) = them.k
"""


@dataclass(frozen=True, slots=True)
class Databases:
    """Two databases of the same server; `asked` is a request that is in both, and
    `count` requests wait in the large one."""

    few: str
    many: str
    asked: str
    count: int

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Point Django's connection at this database."""
        connections["default"].close()
        before = connection.settings_dict["NAME"]
        connection.settings_dict["NAME"] = name
        try:
            yield
        finally:
            connections["default"].close()
            connection.settings_dict["NAME"] = before


def create_databases(seed: Seed, count: int = MANY) -> Databases:
    """Propose a few requests, copy the database, and fill both."""
    client = ProductClient(seed, 0)
    for _ in range(_PATTERNS):
        client.propose()
    asked = ApprovalRequest.objects.filter(status="pending").order_by("-opened_at")
    proposals = list(asked.values_list("proposal_id", flat=True)[:_PATTERNS])
    many = str(connection.settings_dict["NAME"])
    connections.close_all()
    with _connect_server() as server:
        server.execute(f'CREATE DATABASE {_SMALL} TEMPLATE "{many}"')
    for name, rows in ((_SMALL, FEW), (many, count)):
        print_text(f"copying {rows} waiting requests into {name}")
        _copy_rows(name, proposals, rows - _PATTERNS)
    request = Proposal.objects.get(pk=proposals[0]).request
    return Databases(_SMALL, many, request.pk, count)


def _connect_server() -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        settings.COUNTERSEAL.database_url, dbname="postgres", autocommit=True
    )


def _copy_rows(name: str, proposals: list[str], count: int) -> None:
    with psycopg.connect(
        settings.COUNTERSEAL.database_url, dbname=name, autocommit=True
    ) as copier:
        # Copies of rows that passed every check and trigger.
        copier.execute("SET session_replication_role = replica")
        for table, changes in _COPIES.items():
            sql = _COPY.format(table=table, pattern=_PATTERN[table], changes=changes)
            copier.execute(sql, {"proposals": proposals, "count": count})
        copier.execute("VACUUM ANALYZE")
