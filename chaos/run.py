"""One run: start the cluster, work under faults, and wait until all is quiet.

While it works, one line on the terminal shows how far it is; without a terminal, a line
every few seconds.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connections

from reviews.choices import IN_FLIGHT_SQL
from world.receivers import MailServer

from . import generator
from .agents import Driver
from .cluster import STEP_S, Cluster, start_processes
from .history import History, RunResult
from .nemesis import Nemesis
from .options import Options
from .people import DeskUser, Reviewer, Supervisor

EVERY_S = {True: 0.5, False: 10.0}
WIDTH = 100


class Workload(Protocol):
    """The operations of a run, and how far the agents are."""

    @property
    def operations(self) -> Sequence[object]: ...

    @property
    def history(self) -> History: ...

    @property
    def began(self) -> float: ...


@dataclass
class Progress:
    """The progress of a run on the terminal. Only the main thread prints it."""

    driver: Workload | None = None
    nemesis: Nemesis | None = None
    _last: float = 0.0

    def begin(self, driver: Workload, nemesis: Nemesis) -> None:
        self.driver, self.nemesis = driver, nemesis

    def say(self, text: str) -> None:
        sys.stdout.write(f"{self._clear}{text}\n")
        sys.stdout.flush()

    def show(self) -> None:
        """The line as it is now, if it is time for it."""
        now = time.monotonic()
        if self.driver is None or now < self._last + EVERY_S[sys.stdout.isatty()]:
            return
        self._last = now
        end = "\r" if sys.stdout.isatty() else "\n"
        sys.stdout.write(f"{self._line(now):<{WIDTH}}{end}")
        sys.stdout.flush()

    @property
    def _clear(self) -> str:
        return f"\r{'':<{WIDTH}}\r" if sys.stdout.isatty() else ""

    def _line(self, now: float) -> str:
        assert self.driver is not None
        assert self.nemesis is not None
        gone = max(now - self.driver.began, 0.1)
        history = self.driver.history
        taken = len(history.answered)
        kinds = Counter(fault.kind for fault in self.nemesis.faults)
        struck = " ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()))
        return (
            f"{gone:6.0f} s  {taken}/{len(self.driver.operations)} asked  "
            f"{len(history.ended)} ended  {taken / gone:.1f}/s  "
            f"{sum(kinds.values())} faults: {struck}"
        )


QUIET_S = 150.0  # for what follows the last fault: leases, deadlines, webhooks
LOOK_S = 0.5
CALM_S = 3.0  # a stretch without anything to do
LATER = timedelta(minutes=2)  # promises that are to wait longer are not late
# What may still be to come, by what it is.
PENDING = {
    "requests": "reviews_approvalrequest WHERE settled_at IS NULL",
    "executions": f"reviews_execution WHERE status IN ({IN_FLIGHT_SQL})",
    "promises": (
        "journal_outboxmessage WHERE done_at IS NULL"
        " AND (held_until IS NULL"
        f" OR held_until < now() + interval '{LATER.seconds} seconds')"
    ),
    "webhooks": "agents_delivery WHERE status = 'waiting'",
    "mails": (
        "reviews_notice WHERE sent_at IS NULL AND let_go = '' AND due_at <= now()"
    ),
    "records without a place": (
        "journal_logrecord r WHERE NOT EXISTS"
        " (SELECT 1 FROM journal_logposition p WHERE p.record_id = r.id)"
    ),
}
_COUNTS = ", ".join(f"(SELECT count(*) FROM {rows})" for rows in PENDING.values())  # noqa: S608 - our own words


def wait_until_quiet(
    cluster: Cluster, nemesis: Nemesis, live: Progress, working: Callable[[], bool]
) -> dict[str, int]:
    """Until nothing is to come any more; what is left when it takes too long. Who froze
    as the faults came to an end is woken in its time."""
    end, looked, calm_since = time.monotonic() + QUIET_S, 0.0, 0.0
    left = dict.fromkeys(PENDING, 1)  # until somebody has looked
    while time.monotonic() < end:
        nemesis.step(injecting=False)
        cluster.restart_dead()
        live.show()
        now = time.monotonic()
        if now > looked + LOOK_S:
            looked, left = now, _count_pending(left)
            busy = bool(left) or working()
            calm_since = 0.0 if busy else calm_since or now
        if calm_since and now > calm_since + CALM_S:
            return left
        time.sleep(STEP_S)
    return left


def _count_pending(before: dict[str, int]) -> dict[str, int]:
    """Count what is pending; the last counts when the database does not answer."""
    try:
        with psycopg.connect(settings.COUNTERSEAL.database_url) as connection:
            counted = connection.execute(f"SELECT {_COUNTS}").fetchone()
    except psycopg.OperationalError:
        return before
    counts = zip(PENDING, counted or (), strict=True)
    return {what: count for what, count in counts if count}


LONGER = 0.5  # of its time may a run take more


def run_workload(cluster: Cluster, options: Options, live: Progress) -> RunResult:
    """Run once. Call it from the main thread, which starts the processes."""
    prepare_database(live)
    people = generator.create_participants(
        generator.build_policy(cluster.provider), f"{cluster.provider}/hooks"
    )
    connections.close_all()
    _open_mailboxes(cluster, people)
    live.say("starting processes")
    start_processes(cluster)
    history, stopping = History(), threading.Event()
    keys = list(people.keys.values())
    operations = generator.generate_operations(options)
    driver = Driver(
        operations, cluster.addresses, keys, cluster.provider, history, cluster.ledger
    )
    desks = _desks(cluster, people, driver, stopping)
    nemesis, began = Nemesis(cluster, options), time.time()
    live.begin(driver, nemesis)
    driver.start()
    workers = [threading.Thread(target=desk.work, daemon=True) for desk in desks]
    for thread in workers:
        thread.start()
    inject_faults(
        cluster, nemesis, live, build_load_condition(options, driver, nemesis)
    )
    loaded = time.time()
    left = wait_until_quiet(cluster, nemesis, live, lambda: driver.working)
    stopping.set()
    ended = time.time()
    cluster.rest()
    restarts = {slot.name: slot.starts - 1 for slot in cluster.slots.values()}
    return RunResult(
        began, loaded, ended, history, nemesis.faults, nemesis.kinds, restarts, left
    )


def _open_mailboxes(cluster: Cluster, people: generator.Participants) -> None:
    """Agents' servers that will know their secrets, and a mail server that is up: it is
    named in the environment that the processes get."""
    for listener in people.listeners(cluster.addresses):
        cluster.ledger.add(listener)
    mail_server = MailServer(cluster.outside, cluster.ledger)
    mail_server.open()
    os.environ["MAIL_URL"] = mail_server.url


def _desks(
    cluster: Cluster,
    people: generator.Participants,
    driver: Driver,
    stopping: threading.Event,
) -> list[DeskUser]:
    def common(name: str) -> dict[str, Any]:
        return {
            "name": name,
            "token": people.tokens[name],
            "addresses": cluster.addresses,
            "history": driver.history,
            "stopping": stopping,
        }

    return [
        Reviewer(**common("rita"), place=0, failed=driver.failed),
        Reviewer(**common("tom"), place=1, failed=driver.failed),
        Supervisor(**common("sue"), ledger=cluster.ledger),
        Supervisor(**common("sam")),
    ]


def prepare_database(live: Progress) -> None:
    """Prepare the database and the static files for the processes."""
    live.say("migrating")
    call_command("migrate", interactive=False, verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)


def build_load_condition(
    options: Options, driver: Driver, nemesis: Nemesis
) -> Callable[[], bool]:
    """Until the time is over, all was asked for and each kind of fault was there, or
    that takes too long: the checkers say what is missing."""
    over = driver.began + options.seconds
    # A slow machine asks for the last ones later, and they are to meet faults as well.
    latest = over + max(QUIET_S, options.seconds * LONGER)

    def going() -> bool:
        now = time.monotonic()
        short = driver.left > 0 or not nemesis.enough
        return now < over or (short and now < latest)

    return going


def inject_faults(
    cluster: Cluster, nemesis: Nemesis, live: Progress, going: Callable[[], bool]
) -> None:
    """One fault after the other while it is `going`. Call it from the main thread."""
    while going():
        nemesis.step(injecting=True)
        cluster.restart_dead()
        live.show()
        time.sleep(STEP_S)
    nemesis.stand_down()
