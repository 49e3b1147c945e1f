"""One run: everything starts, agents and people work, faults fall, all becomes quiet,
and then it is looked at.

When a run is over: the faults are, and nothing is to come any more.

What is said while it works: one line that stays where it is, or a line every few
seconds where there is no terminal.
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
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connections

from . import generator
from .agents import Driver, Notebook
from .cluster import STEP_S, Stage, open_up
from .generator import wishes as generator_wishes
from .nemesis import Arsenal
from .options import Options
from .people import Desk, Reviewer, Supervisor
from .receivers import Mailbox, Postbook
from .run_result import Ran
from .services import Ledger

EVERY_S = {True: 0.5, False: 10.0}
WIDTH = 100


class Work(Protocol):
    """What agents were asked to do, and how far they are."""

    @property
    def wishes(self) -> Sequence[object]: ...

    @property
    def notebook(self) -> Notebook: ...

    @property
    def began(self) -> float: ...

    @property
    def made(self) -> int: ...


@dataclass
class Live:
    """One run's voice. Only the main thread speaks."""

    driver: Work | None = None
    arsenal: Arsenal | None = None
    _last: float = 0.0

    def begin(self, driver: Work, arsenal: Arsenal) -> None:
        self.driver, self.arsenal = driver, arsenal

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
        assert self.arsenal is not None
        gone = max(now - self.driver.began, 0.1)
        made, ended = self.driver.made, len(self.driver.notebook.ended)
        kinds = Counter(strike.kind for strike in self.arsenal.strikes)
        struck = " ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()))
        return (
            f"{gone:6.0f} s  {made}/{len(self.driver.wishes)} asked  {ended} ended  "
            f"{made / gone:.1f}/s  {sum(kinds.values())} faults: {struck}"
        )


QUIET_S = 150.0  # for what follows the last fault: leases, deadlines, letters
LOOK_S = 0.5
CALM_S = 3.0  # a stretch without anything to do
LATER = timedelta(minutes=2)  # promises that are to wait longer are not late
# What may still be to come, by what it is.
OPEN = {
    "requests": "reviews_approvalrequest WHERE settled_at IS NULL",
    "executions": "reviews_execution WHERE status IN ('queued', 'claimed')",
    "promises": (
        "journal_outboxmessage WHERE done_at IS NULL"
        " AND (held_until IS NULL"
        f" OR held_until < now() + interval '{LATER.seconds} seconds')"
    ),
    "letters": "agents_delivery WHERE status = 'waiting'",
    "mails": (
        "reviews_notice WHERE sent_at IS NULL AND let_go = '' AND due_at <= now()"
    ),
    "records without a place": (
        "journal_logrecord r WHERE NOT EXISTS"
        " (SELECT 1 FROM journal_logposition p WHERE p.record_id = r.id)"
    ),
}
_COUNTS = ", ".join(f"(SELECT count(*) FROM {rows})" for rows in OPEN.values())  # noqa: S608 - our own words


def calm(
    stage: Stage, arsenal: Arsenal, live: Live, working: Callable[[], bool]
) -> dict[str, int]:
    """Until nothing is to come any more; what is left when it takes too long. Who froze
    as the faults came to an end is woken in its time."""
    end, looked, calm_since = time.monotonic() + QUIET_S, 0.0, 0.0
    left = dict.fromkeys(OPEN, 1)  # until somebody has looked
    while time.monotonic() < end:
        arsenal.step(striking=False)
        stage.keep()
        live.show()
        now = time.monotonic()
        if now > looked + LOOK_S:
            looked, left = now, _open(left)
            busy = bool(left) or working()
            calm_since = 0.0 if busy else calm_since or now
        if calm_since and now > calm_since + CALM_S:
            return left
        time.sleep(STEP_S)
    return left


def _open(before: dict[str, int]) -> dict[str, int]:
    """How much of what is there; the last answer when nobody answers."""
    try:
        with psycopg.connect(settings.HOLDPOINT.database_url) as connection:
            found = connection.execute(f"SELECT {_COUNTS}").fetchone()
    except psycopg.OperationalError:
        return before
    counts = zip(OPEN, found or (), strict=True)
    return {what: count for what, count in counts if count}


LONGER = 0.5  # of its time may a run take more


def run(stage: Stage, options: Options, live: Live) -> Ran:
    """Call it from the main thread: processes are started on the way."""
    migrate(live)
    people = generator.house(
        generator.document(stage.provider), f"{stage.provider}/hooks"
    )
    connections.close_all()
    book = _post(stage, people)
    live.say("starting processes")
    open_up(stage)
    notebook, stopping = Notebook(), threading.Event()
    keys = list(people.keys.values())
    asked = generator_wishes(options, len(keys))
    driver = Driver(asked, stage.addresses, keys, stage.provider, notebook, book)
    desks = _desks(stage, people, driver, stopping)
    arsenal, began = Arsenal(stage, options), time.time()
    live.begin(driver, arsenal)
    driver.start()
    workers = [threading.Thread(target=desk.work, daemon=True) for desk in desks]
    for thread in workers:
        thread.start()
    strike(stage, arsenal, live, loading(options, driver, arsenal))
    loaded = time.time()
    left = calm(stage, arsenal, live, lambda: driver.working)
    stopping.set()
    ended = time.time()
    stage.rest()
    restarts = {slot.name: slot.starts - 1 for slot in stage.slots.values()}
    return Ran(
        began,
        loaded,
        ended,
        notebook,
        arsenal,
        restarts,
        left,
    )


def _post(stage: Stage, people: generator.House) -> Postbook:
    """Agents' servers that will know their secrets, and a mail server that is up: it is
    named in the environment that the processes get."""
    book = Postbook(stage.ledger)
    book.listen(people.listeners(stage.addresses))
    mailbox = Mailbox(urlsplit(stage.provider).hostname or "", book)
    mailbox.open()
    os.environ["MAIL_URL"] = mailbox.url
    return book


def _desks(
    stage: Stage, people: generator.House, driver: Driver, stopping: threading.Event
) -> list[Desk]:
    def common(name: str) -> dict[str, Any]:
        return {
            "name": name,
            "token": people.tokens[name],
            "addresses": stage.addresses,
            "notebook": driver.notebook,
            "stopping": stopping,
        }

    return [
        Reviewer(**common("rita"), place=0, failed=driver.failed),
        Reviewer(**common("tom"), place=1, failed=driver.failed),
        Supervisor(**common("sue"), ledger=Ledger(stage.ledger)),
        Supervisor(**common("sam")),
    ]


def migrate(live: Live) -> None:
    """A database and pages that are ready for the processes."""
    live.say("migrating")
    call_command("migrate", interactive=False, verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)


def loading(options: Options, driver: Driver, arsenal: Arsenal) -> Callable[[], bool]:
    """Until the time is over, all was asked for and each kind of fault was there, or
    that takes too long: the auditor will say what is missing."""
    over = driver.began + options.seconds
    # A slow machine asks for the last ones later, and they are to meet faults as well.
    latest = over + max(QUIET_S, options.seconds * LONGER)

    def going() -> bool:
        now = time.monotonic()
        short = driver.left > 0 or not arsenal.enough
        return now < over or (short and now < latest)

    return going


def strike(
    stage: Stage, arsenal: Arsenal, live: Live, going: Callable[[], bool]
) -> None:
    """One fault after the other while it is `going`. Call it from the main thread."""
    while going():
        arsenal.step(striking=True)
        stage.keep()
        live.show()
        time.sleep(STEP_S)
    arsenal.stand_down()
