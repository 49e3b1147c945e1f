"""What the database knows of itself and of what leaves the gate: connections, open
transactions, the outbox, channels and webhooks. Each check is one short statement."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import django
from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from journal import clock, failover
from journal.statements import Statement
from notifications.channels import registry
from notifications.channels.attempts import GIVEN_UP
from notifications.channels.contract import Channel

from ..client_wheel import read_version
from ..doctor import OK, UNUSED, WARN, WRONG, Finding
from . import probes
from .checks import get_start_command
from .wording import clean_name, format_span

FEW_SHARE, LEAST_SHARE = 0.8, 0.95  # of the connections that the server accepts
RECENT_NOTICES = 2_000
LATE_WEBHOOK = timedelta(minutes=10)
LIST_SESSIONS = (
    'psql "$DATABASE_URL" -c "SELECT pid, application_name, state, xact_start'
    ' FROM pg_stat_activity ORDER BY xact_start"'
)
_CONNECTIONS = Statement("""
SELECT count(*), current_setting('max_connections')::int
    - current_setting('superuser_reserved_connections')::int
FROM pg_stat_activity WHERE backend_type = 'client backend'
""")
# The database hides the transactions of other users.
_OLDEST = Statement("""
SELECT pid, application_name, backend_xid IS NOT NULL,
       extract(epoch FROM clock_timestamp() - xact_start)
FROM pg_stat_activity
WHERE backend_type = 'client backend' AND xact_start IS NOT NULL
  AND pid <> pg_backend_pid()
ORDER BY xact_start LIMIT 1
""")
_OUTBOX = Statement("""
SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(due_at)), 0)
FROM journal_outboxmessage WHERE done_at IS NULL AND due_at < clock_timestamp()
""")
_CHANNELS = Statement(f"""
SELECT channel, max(sent_at), max(at) FILTER (WHERE error <> ''),
       count(*) FILTER (WHERE error <> '' AND let_go = ''),
       count(*) FILTER (WHERE let_go = '{GIVEN_UP}'),
       (array_agg(error ORDER BY id DESC) FILTER (WHERE error <> ''))[1]
FROM (SELECT id, channel, at, sent_at, error, let_go FROM reviews_notice
      ORDER BY id DESC LIMIT {RECENT_NOTICES}) AS recent
GROUP BY channel
""")  # noqa: S608 constants
_WEBHOOKS = Statement("""
SELECT
(SELECT count(*) FROM agents_delivery WHERE status = 'waiting'),
(SELECT min(created_at) FROM agents_delivery WHERE status = 'waiting'),
(SELECT count(*) FROM agents_delivery WHERE status = 'dead'),
(SELECT count(*) FROM agents_delivery WHERE status = 'held'),
(SELECT count(*) FROM agents_delivery WHERE status IN ('dead', 'held')
 AND ended_at > clock_timestamp() - interval '1 day')
""")


def check_readiness() -> Iterator[Finding]:
    """What `/readyz` of this process answers."""
    readiness = probes.find_readiness()
    wrong = [
        f"{name} {text}" for name, text in readiness.checks.items() if text != probes.OK
    ]
    text = "; ".join([f"answers {readiness.status}", *wrong])
    if readiness.status == probes.OK:
        yield Finding("/readyz", OK, text)
    else:
        level = WARN if readiness.is_ready else WRONG
        yield Finding("/readyz", level, text, "counterseal doctor")


def check_connections() -> Iterator[Finding]:
    """How many of the server's connections are in use."""
    used, limit = _CONNECTIONS.fetch_one()
    text = f"{used} of {limit} are in use"
    share = used / limit
    level = WRONG if share >= LEAST_SHARE else WARN if share >= FEW_SHARE else OK
    yield Finding("Connections", level, text, "" if level == OK else LIST_SESSIONS)


def check_transactions() -> Iterator[Finding]:
    """The oldest open transaction: one that has written holds the log back."""
    row = next(iter(_OLDEST.fetch_all()), None)
    if row is None:
        yield Finding("Open transaction", OK, "none")
        return
    pid, application, has_written, seconds = row
    text = f"the oldest is of process {pid}, open for {format_span(float(seconds))}"
    if application:
        text = f"{text} ({clean_name(application)})"
    if seconds <= settings.COUNTERSEAL.standstill_seconds:
        yield Finding("Open transaction", OK, text)
        return
    if has_written:
        text = f"{text}; it holds the log back"
    end = f'psql "$DATABASE_URL" -c "SELECT pg_terminate_backend({pid})"'
    yield Finding("Open transaction", WARN, text, end)


def check_replication() -> Iterator[Finding]:
    """Whether the database waits for a standby, where the settings ask for that."""
    if not failover.is_enabled():
        return
    if failover.last_replication.synchronous is False:
        text = "the database waits for no standby: one that takes over stops everything"
        repair = 'psql "$DATABASE_URL" -c "SELECT * FROM pg_stat_replication"'
        yield Finding("Replication", WARN, text, repair)
    else:
        yield Finding("Replication", OK, "the database waits for a standby")


def check_known_disks() -> Iterator[Finding]:
    """What this process found when it last wrote to its disks. Writes nothing."""
    found = probes.known.disk
    if found == probes.OK:
        text = "the database and STATE of this host can be written"
        yield Finding("Writing", OK, text)
    else:
        yield Finding("Writing", WRONG, found, "df -h")


def check_outbox() -> Iterator[Finding]:
    """Messages that are due, and not done by any worker."""
    due, seconds = _OUTBOX.fetch_one()
    if not due:
        yield Finding("Outbox", OK, "nothing is due")
        return
    text = f"{due} due, the oldest since {format_span(float(seconds))}"
    if seconds <= settings.COUNTERSEAL.standstill_seconds:
        yield Finding("Outbox", OK, text)
    else:
        yield Finding("Outbox", WARN, text, get_start_command())


@dataclass(frozen=True, slots=True)
class ChannelReport:
    """How the latest messages of one channel went, at the moment `now`."""

    channel: Channel
    now: datetime
    is_used: bool = False
    sent_at: datetime | None = None
    failed_at: datetime | None = None
    retried: int = 0  # will be tried again
    given_up: int = 0
    error: str = ""  # the last one, in Counterseal's words


def list_channel_reports() -> list[ChannelReport]:
    """Every channel by title, with its part of the latest messages."""
    rows = {name: values for name, *values in _CHANNELS.fetch_all()}
    channels = sorted(registry.load_channels().values(), key=lambda each: each.title)
    now = clock.now()
    return [
        ChannelReport(channel, now, True, *rows[channel.name])
        if channel.name in rows
        else ChannelReport(channel, now)
        for channel in channels
    ]


def check_channels() -> Iterator[Finding]:
    """Each channel: its last success and its last failure among the latest messages."""
    yield from map(describe_channel, list_channel_reports())


def describe_channel(report: ChannelReport) -> Finding:
    """The finding about one channel."""
    channel, sent, failed = report.channel, report.sent_at, report.failed_at
    subject = f"Channel {channel.title}"
    if not report.is_used:
        if not channel.is_configured():
            return Finding(subject, UNUSED, "not set up")
        return Finding(subject, OK, "set up, no message yet")
    success = f"last success {_format_ago(sent, report.now)}" if sent else "no success"
    if failed is None:
        return Finding(subject, OK, f"{success}, no failure")
    text = (
        f"{success}; last failure {_format_ago(failed, report.now)}: {report.error}"
        f" ({report.retried} tried again, {report.given_up} given up)"
    )
    if sent is not None and sent > failed and not report.retried:
        return Finding(subject, OK, text)
    test = "Send a test message" if channel.is_personal else "Start a drill"
    return Finding(subject, WARN, text, advice=test)


def _format_ago(at: datetime, now: datetime) -> str:
    return f"{format_span(max(0.0, (now - at).total_seconds()))} ago"


def check_webhooks() -> Iterator[Finding]:
    """What waits for agents' servers, and what no attempt will deliver."""
    waiting, oldest, dead, held, fresh = _WEBHOOKS.fetch_one()
    now = clock.now()
    text = f"{waiting} waiting"
    if oldest:
        text = f"{text}, the oldest for {format_span((now - oldest).total_seconds())}"
    text = f"{text}; {dead} dead and {held} held, {fresh} of them within 24 h"
    is_late = bool(oldest) and now - oldest > LATE_WEBHOOK
    if fresh or is_late:
        advice = "Read the error, and send again what failed"
        yield Finding("Webhooks", WARN, text, advice=advice)
    else:
        yield Finding("Webhooks", OK, text)


def check_versions() -> Iterator[Finding]:
    """The versions of what runs. None of them is a fault."""
    yield Finding("Counterseal", OK, read_version())
    yield Finding("Python", OK, platform.python_version())
    yield Finding("Django", OK, django.get_version())
    server = cast(Any, connection)  # of PostgreSQL
    major, minor = divmod(server.pg_version, 10_000)
    yield Finding("PostgreSQL", OK, f"{major}.{minor}")
    applied = MigrationRecorder(connection).applied_migrations()
    newest: dict[str, str] = {}
    for app, name in applied:
        newest[app] = max(newest.get(app, ""), name)
    ours = ("journal", "policies", "reviews", "agents")
    last = ", ".join(f"{app} {newest[app][:4]}" for app in ours if app in newest)
    yield Finding("Migrations", OK, f"{len(applied)} applied, the last {last}")
