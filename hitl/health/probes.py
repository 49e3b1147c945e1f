"""What this process knows of its servers: its database, its broker, its disks, its
workers and its log.

A process is ready when it can serve: it reaches the database, its migrations are
applied, and nobody has told it to stop. All else that is wrong makes it `degraded`, and
it stays ready: without the broker or a worker no other process would serve better, and
the pages tell people what to do.
"""

from __future__ import annotations

from dataclasses import dataclass

import redis
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.db.migrations.executor import MigrationExecutor
from structlog.stdlib import get_logger

from journal import failover, restore_epochs
from journal.statements import Statement
from reviews import standstills

from .. import connections, disk

OK = "ok"
# How many rounds of `PeriodicChecks` pass between two checks of the disks: each writes.
ROUNDS_BETWEEN_DISKS = 3

_IN_RECOVERY = Statement("SELECT pg_is_in_recovery()")
log = get_logger(__name__)


@dataclass
class HealthState:
    """What this process found last."""

    broker: str = OK
    disk: str = OK
    migrated: bool = False  # once applied, they stay so for as long as this code runs
    rounds: int = 0
    stopping: bool = False  # a signal to stop has come


known = HealthState()


def mark_stopping() -> None:
    """Be unready from now on."""
    known.stopping = True


def update_health() -> None:
    """Check the broker, and now and then the disks, and remember what was found. For
    `PeriodicChecks`: a request of `/readyz` waits for neither."""
    close_old_connections()
    try:
        known.broker = probe_broker()
        if known.rounds % ROUNDS_BETWEEN_DISKS == 0:
            known.disk = disk.probe_disk()
        known.rounds += 1
    except Exception as error:  # one that escaped would end the periodic checks
        log.warning("health.not_updated", error=type(error).__name__)


@dataclass(frozen=True, slots=True)
class Readiness:
    """What `/readyz` answers: `status` is `ok`, `degraded`, `restored` (nothing may run
    after a restore), `stopping` or `unavailable`, and each of the checks is `ok` or
    says what is wrong."""

    status: str
    checks: dict[str, str]

    @property
    def is_ready(self) -> bool:
        """Whether this process can serve."""
        return self.status not in {"unavailable", "stopping"}


def find_readiness() -> Readiness:
    """Whether this process can serve. Takes two short queries."""
    database = describe_database()
    checks = {"database": database, **list_degradations()}
    status = OK if all(text == OK for text in checks.values()) else "degraded"
    if database != OK:
        status = "unavailable"
    elif known.stopping:
        status = "stopping"
    elif restore_epochs.find_halt_reason():
        status = "restored"
    return Readiness(status, checks)


def list_degradations() -> dict[str, str]:
    """Each check that leaves the process ready, with `ok` or what is wrong. Takes no
    query and names no session, person or host: anybody may read it."""
    return {
        "disk": known.disk,
        "broker": known.broker,
        "effects": _describe_effects(),
        "sweeps": _describe_sweeps(),
        "log": _describe_log(),
        **_describe_replication(),
    }


def describe_database() -> str:
    """`ok`, or why this process cannot serve. Takes one short query."""
    try:
        if count_missing_migrations():
            return "migrations are not applied"
        standby = is_standby()
    except DatabaseError:
        return "unreachable"
    return "is a standby, which takes no changes" if standby else OK


def count_missing_migrations() -> int:
    """How many migrations of this release the database lacks. Raises DatabaseError."""
    if known.migrated:
        return 0
    executor = MigrationExecutor(connection)
    missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    known.migrated = not missing
    return missing


def is_standby() -> bool:
    """Whether the database is a copy of another one. Raises DatabaseError."""
    (standby,) = _IN_RECOVERY.fetch_one()
    return bool(standby)


def probe_broker() -> str:
    """`ok` or `unreachable`, asked now."""
    client = redis.Redis.from_url(
        settings.COUNTERSEAL.redis_url,
        socket_connect_timeout=connections.BROKER_CONNECT_TIMEOUT_S,
        socket_timeout=connections.BROKER_CONNECT_TIMEOUT_S,
    )
    try:
        client.ping()
    except redis.RedisError:
        return "unreachable"
    finally:
        client.close()
    return OK


def _describe_effects() -> str:
    seconds = standstills.known.effects
    return f"none was claimed for {seconds:.0f} s" if seconds else OK


def _describe_sweeps() -> str:
    late = standstills.known.sweeps
    return f"late: {', '.join(late)}" if late else OK


def _describe_log() -> str:
    delay = standstills.known.log
    if delay is None:
        return OK
    return f"stalled for {delay.seconds:.0f} s: {delay.waiting} records wait"


def _describe_replication() -> dict[str, str]:
    """With FAILOVER=synchronous: whether the database waits for a standby. While it
    does not, a standby that takes over stops everything."""
    if failover.last_replication.synchronous is None:
        return {}
    waits = failover.last_replication.synchronous
    return {"replication": OK if waits else "the database waits for no standby"}
