"""`GET /metrics`: the gate's figures for Prometheus, under a token of their own.

The figures are counts and ages, read from the database each time, and what all
processes counted (hitl/measurements.py). They name queues, tools, tiers, statuses,
kinds, routes and tasks, and no person, agent, run or request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from journal import restore_epochs
from journal.statements import Statement
from reviews import standstills
from reviews.choices import UNFINISHED

from .health import probes
from .measurements import list_measurements

# Each column is a JSON list of rows: the labels, then the values. Every part reads a
# small partial index, or what was settled within the last hour.
_UNFINISHED = " UNION ALL ".join(
    f"SELECT '{status}' AS status, count(*)"  # noqa: S608 constants
    f" FROM reviews_execution WHERE status = '{status}'"
    for status in UNFINISHED
)
_FIGURES = Statement(f"""
SELECT
(SELECT json_agg(json_build_array(name, tier, count, oldest)) FROM (
    SELECT queue.name, asked.tier, count(*),
           extract(epoch FROM clock_timestamp() - min(asked.opened_at)) AS oldest
    FROM reviews_approvalrequest AS asked
    JOIN policies_queue AS queue ON queue.id = asked.queue_id
    WHERE asked.status = 'pending' AND NOT asked.canary GROUP BY 1, 2) AS pending),
(SELECT json_agg(json_build_array(tool_name, status, count, half, most)) FROM (
    SELECT tool_name, status, count(*),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY took) AS half,
           percentile_cont(0.9) WITHIN GROUP (ORDER BY took) AS most
    FROM (SELECT tool_name, status,
                 extract(epoch FROM settled_at - opened_at) AS took
          FROM reviews_approvalrequest
          WHERE settled_at > clock_timestamp() - interval '1 hour'
            AND NOT canary) AS settled
    GROUP BY 1, 2) AS settled),
(SELECT json_agg(json_build_array(status, count)) FROM (
    {_UNFINISHED}
    ) AS executions),
(SELECT json_agg(json_build_array(kind, count)) FROM (
    SELECT kind, count(*) FROM reviews_alarm
    WHERE status IN ('open', 'acknowledged') GROUP BY 1) AS alarms),
(SELECT json_agg(json_build_array(count, coalesce(late, 0))) FROM (
    SELECT count(*),
           greatest(extract(epoch FROM clock_timestamp() - min(due_at)), 0) AS late
    FROM journal_outboxmessage WHERE done_at IS NULL) AS outbox),
(SELECT json_agg(json_build_array(count)) FROM (
    SELECT count(*) FROM agents_delivery WHERE status = 'waiting') AS deliveries)
""")  # noqa: S608 constants
# The database hides the state of other users' connections.
_CONNECTIONS = Statement("""
SELECT coalesce(state, 'other'), count(*),
       coalesce(extract(epoch FROM clock_timestamp() - min(xact_start)
           FILTER (WHERE pid <> pg_backend_pid())), 0),
       current_setting('max_connections')::int
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
GROUP BY 1 ORDER BY 1
""")


@login_not_required
@require_safe
@never_cache
def show_metrics(request: HttpRequest) -> HttpResponse:
    """The figures in Prometheus' text format. 404 while no `METRICS_TOKEN`
    is set; another token gets 401."""
    token = settings.COUNTERSEAL.metrics_token
    if not token:
        return HttpResponse(status=404)
    sent = request.headers.get("Authorization", "")
    if not constant_time_compare(sent, f"Bearer {token}"):  # guard: metrics-token
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    registry = CollectorRegistry(auto_describe=False)
    registry.register(GateCollector())
    return HttpResponse(
        generate_latest(registry),
        content_type=CONTENT_TYPE_LATEST,
        headers={"Counterseal-Caller": "prometheus"},  # hitl.live.callers removes it
    )


class GateCollector(Collector):
    """Reads the figures when Prometheus asks."""

    def collect(self) -> Iterator[Metric]:
        yield from list_measurements()
        database = probes.describe_database()
        yield from list_health(database)
        if database == probes.OK:
            yield from self.collect_rows()

    def collect_rows(self) -> Iterator[GaugeMetricFamily]:
        """What the database knows."""
        yield from list_connections()
        yield build_gauge(
            "restore_unconfirmed",
            "1 after a backup was put back, until two people confirm.",
            [],
            [[int(bool(restore_epochs.find_halt_reason()))]],
        )
        pending, settled, executions, alarms, outbox, deliveries = (
            rows or [] for rows in _FIGURES.fetch_one()
        )
        yield build_gauge(
            "requests_pending",
            "Requests that people have not decided yet.",
            ["queue", "tier"],
            (row[:3] for row in pending),
        )
        yield build_gauge(
            "requests_oldest_pending_seconds",
            "How long the oldest pending request has been open.",
            ["queue", "tier"],
            ((*row[:2], row[3]) for row in pending),
        )
        yield from list_settled(settled)
        yield build_gauge(
            "executions",
            "Executions that are not finished, and those whose outcome is unknown.",
            ["status"],
            executions,
        )
        yield build_gauge("alarms_open", "Alarms nobody closed.", ["kind"], alarms)
        yield build_gauge(
            "outbox_messages_waiting",
            "Messages that their consumers have not done.",
            [],
            (row[:1] for row in outbox),
        )
        yield build_gauge(
            "outbox_oldest_due_seconds",
            "How long the oldest of these messages has been due.",
            [],
            (row[1:] for row in outbox),
        )
        yield build_gauge(
            "deliveries_waiting", "Webhooks not delivered yet.", [], deliveries
        )


def list_settled(rows: Sequence[Sequence[Any]]) -> Iterator[GaugeMetricFamily]:
    """What became of the requests that were settled within the last hour."""
    labels = ["tool", "status"]
    yield build_gauge(
        "requests_settled_last_hour",
        "Requests settled within the last hour.",
        labels,
        (row[:3] for row in rows),
    )
    yield build_gauge(
        "requests_settled_last_hour_seconds",
        "Seconds from opened to settled, of these requests.",
        [*labels, "quantile"],
        [
            (*row[:2], quantile, row[place])
            for row in rows
            for quantile, place in (("0.5", 3), ("0.9", 4))
        ],
    )


def list_connections() -> Iterator[GaugeMetricFamily]:
    """The connections to the database, of all hosts and of everybody else."""
    rows = _CONNECTIONS.fetch_all()
    yield build_gauge(
        "database_connections",
        "Connections to this database, by state.",
        ["state"],
        ((state.replace(" ", "_"), count) for state, count, *_ in rows),
    )
    yield build_gauge(
        "database_connections_limit",
        "How many connections the database server accepts.",
        [],
        [[rows[0][3]]],
    )
    yield build_gauge(
        "database_oldest_transaction_seconds",
        "How long the oldest open transaction has been open.",
        [],
        [[max(oldest for _, _, oldest, _ in rows)]],
    )


def list_health(database: str) -> Iterator[GaugeMetricFamily]:
    """What `/readyz` says of workers, log and database, as figures: 0 is well."""
    known = standstills.known
    waiting = known.log.waiting if known.log else 0
    yield build_gauge(
        "degraded",
        "1 for each check of /readyz that finds something wrong.",
        ["check"],
        (
            [name, text != probes.OK]
            for name, text in {
                "database": database,
                **probes.list_degradations(),
            }.items()
        ),
    )
    for name, text, value in (
        ("effects_standstill_seconds", "No effect was claimed.", known.effects or 0),
        ("sweeps_late", "Sweeps that are late.", len(known.sweeps)),
        ("log_records_stalled", "Records a stalled log holds back.", waiting),
    ):
        yield build_gauge(name, text, [], [[value]])


def build_gauge(
    name: str, text: str, labels: Sequence[str], rows: Iterable[Sequence[Any]]
) -> GaugeMetricFamily:
    """A gauge with a sample for each row: the labels' values, then the figure."""
    gauge = GaugeMetricFamily(f"counterseal_{name}", text, labels=labels)
    for *values, figure in rows:
        gauge.add_metric(values, float(figure))
    return gauge
