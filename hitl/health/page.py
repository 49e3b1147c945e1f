"""The health page: what is wrong and how to repair it, then all that is in order, and
the settings in force.

Checks that ask another server run beside each other in threads and get no more than
the page's time; the page says of each that it has not answered. Checks of the database
run one after the other on the page's own connection, with a limit for each statement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, TimeoutError
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from threading import Lock, Thread

from django.db import DatabaseError, connection, connections
from structlog.stdlib import get_logger

from policies.models import Person
from reviews import permissions
from reviews.roles import Permission

from ..doctor import OK, UNUSED, WARN, WRONG, Finding
from . import certificates, checks, queues, records
from .settings_table import SettingLine, list_settings

TIME_LIMIT_S = 2.0
STATEMENT_LIMIT_MS = 1_000
ORDER = (WRONG, WARN)
ICONS = {OK: "ok", UNUSED: "void", WARN: "warn", WRONG: "no"}
WORDS = {WARN: "Attention", WRONG: "Failing"}  # of problems

log = get_logger(__name__)
CheckRun = Callable[[], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `is_slow` asks another server, and takes no connection of Django's."""

    label: str
    run: CheckRun
    is_slow: bool = False


@dataclass(frozen=True, slots=True)
class Area:
    """Checks that belong together. `page` is the URL name of the page where a person
    goes on."""

    title: str
    checks: Sequence[Check]
    page: str = ""
    page_label: str = ""


@dataclass(frozen=True, slots=True)
class HealthRow:
    """A finding as the page shows it."""

    area: Area
    finding: Finding

    @property
    def icon(self) -> str:
        return ICONS[self.finding.level]

    @property
    def word(self) -> str:
        return WORDS[self.finding.level]


@dataclass(frozen=True, slots=True)
class AreaRows:
    """What is well in one area, or not set up."""

    area: Area
    rows: Sequence[HealthRow]


@dataclass(frozen=True, slots=True)
class HealthPage:
    problems: Sequence[HealthRow]
    areas: Sequence[AreaRows]
    settings: Sequence[SettingLine]

    @property
    def well(self) -> int:
        rows = (row for area in self.areas for row in area.rows)
        return sum(row.finding.level == OK for row in rows)


MAIL = Area("Mail", (Check("Mail", checks.check_mail, is_slow=True),))
CHANNELS = Area(
    "Channels",
    (Check("Channels", records.check_channels),),
    "channels",
    "Channels",
)


def build_areas(now: datetime) -> tuple[Area, ...]:
    """Every check of the page."""
    certified = partial(certificates.check_certificates, now)
    return (
        Area(
            "Workers and queues",
            (
                Check("Worker, beat", checks.check_workers),
                Check("Workers", queues.check_worker_lines, is_slow=True),
                Check("Queues", queues.check_queues, is_slow=True),
                Check("Outbox", records.check_outbox),
            ),
        ),
        Area(
            "Servers",
            (
                Check("/readyz", records.check_readiness),
                Check("Database", checks.check_database),
                Check("Connections", records.check_connections),
                Check("Open transaction", records.check_transactions),
                Check("Replication", records.check_replication),
                Check("Broker", checks.check_broker, is_slow=True),
                Check("Proxy", checks.check_base_url, is_slow=True),
                Check("Clock", checks.check_clock),
                Check("Writing", records.check_known_disks),
                Check("Disk", checks.check_free_space),
                Check("Certificates", certified, is_slow=True),
            ),
        ),
        Area("Log", (Check("Log", checks.check_log),)),
        MAIL,
        CHANNELS,
        Area(
            "Webhooks",
            (Check("Webhooks", records.check_webhooks),),
            "agents:deliveries",
            "Deliveries",
        ),
        Area(
            "Sign-in",
            (Check("Single sign-on", checks.check_sign_in, is_slow=True),),
        ),
        Area(
            "Set-up",
            (
                Check("Settings", checks.check_settings, is_slow=True),
                Check("Policy", checks.check_policy),
            ),
        ),
        Area("Versions", (Check("Versions", records.check_versions),)),
    )


def build_health_page(person: Person, now: datetime) -> HealthPage:
    """Run every check. Raises NotPermitted for those who may not see the page."""
    permissions.check_permission(person, Permission.SEE_HEALTH)
    areas = build_areas(now)
    rows = run_areas(areas, time.monotonic() + TIME_LIMIT_S)
    problems = [row for row in rows if row.finding.level in WORDS]
    return HealthPage(
        problems=sorted(problems, key=lambda row: ORDER.index(row.finding.level)),
        areas=[
            AreaRows(area, well)
            for area in areas
            if (well := [r for r in rows if r.area is area and r not in problems])
        ],
        settings=list_settings(),
    )


def run_areas(areas: Sequence[Area], deadline: float) -> list[HealthRow]:
    """The findings of all checks, in the order of the areas. Takes no longer than until
    `deadline`, by time.monotonic(), and one statement of the database."""
    slow = {
        check.label: running.start(check)
        for area in areas
        for check in area.checks
        if check.is_slow
    }
    rows = dict[str, list[Finding]]()
    with _limit_statements():
        for area in areas:
            for check in area.checks:
                if not check.is_slow:
                    rows[check.label] = _run_quick(check, deadline)
    for label, future in slow.items():
        rows[label] = _await(label, future, deadline)
    return [
        HealthRow(area, finding)
        for area in areas
        for check in area.checks
        for finding in rows[check.label]
    ]


def _run_quick(check: Check, deadline: float) -> list[Finding]:
    if time.monotonic() > deadline:
        text = f"was not asked within {TIME_LIMIT_S:.0f} s"
        return [Finding(check.label, WARN, text, "counterseal doctor")]
    try:
        return list(check.run())
    except DatabaseError as error:
        lost = checks.describe_lost_database(error)
        return [Finding(check.label, WRONG, lost.text, lost.repair)]


def _await(label: str, future: Future[list[Finding]], deadline: float) -> list[Finding]:
    try:
        return future.result(max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        text = f"did not answer within {TIME_LIMIT_S:.0f} s"
    except Exception as error:  # what a server makes of a question is not known
        log.warning("health.not_asked", check=label, error=type(error).__name__)
        text = f"cannot be asked ({type(error).__name__})"
    return [Finding(label, WARN, text, "counterseal doctor")]


@contextmanager
def _limit_statements() -> Iterator[None]:
    """End statements of this connection that take long. The settings of the session
    come back."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET statement_timeout = {STATEMENT_LIMIT_MS}")
    try:
        yield
    finally:
        try:
            with connection.cursor() as cursor:
                cursor.execute("RESET statement_timeout")
        except DatabaseError:  # a lost one is not used again
            connection.close()


@dataclass
class RunningChecks:
    """The slow checks that run now. A second page waits for the same run, so that a
    server that hangs holds one thread a check, and not one a reader."""

    lock: Lock = field(default_factory=Lock)
    futures: dict[str, Future[list[Finding]]] = field(default_factory=dict)

    def start(self, check: Check) -> Future[list[Finding]]:
        """Begin to run a check, unless it runs."""
        with self.lock:
            known = self.futures.get(check.label)
            if known is not None and not known.done():
                return known
            future = self.futures[check.label] = Future()
        Thread(target=_fill, args=(check, future), name="health", daemon=True).start()
        return future


running = RunningChecks()


def _fill(check: Check, future: Future[list[Finding]]) -> None:
    try:
        future.set_result(list(check.run()))
    except Exception as error:  # the page reports it
        future.set_exception(error)
    finally:
        connections.close_all()
