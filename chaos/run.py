"""One run: everything starts, agents and people work, faults fall, all becomes quiet,
and then it is looked at."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connections

from . import house, policy
from .calls import Notebook
from .desk import Desk
from .driver import Driver
from .ledger import Ledger
from .live import Live
from .mailbox import Mailbox
from .opening import open_up
from .options import Options
from .plan import wishes
from .postbook import Postbook
from .reviewer import Reviewer
from .stage import Stage
from .strikes import Arsenal
from .supervisor import Supervisor

STEP_S = 0.02
QUIET_S = 150.0  # for what follows the last fault: leases, deadlines, letters
LOOK_S = 0.5
CALM_S = 3.0  # a stretch without anything to do
# What is still to come: the same that the auditor asks for afterwards.
_OPEN = """
SELECT (SELECT count(*) FROM reviews_approvalrequest WHERE settled_at IS NULL),
       (SELECT count(*) FROM reviews_execution WHERE status IN ('queued', 'claimed')),
       (SELECT count(*) FROM journal_outboxmessage WHERE done_at IS NULL
          AND (held_until IS NULL OR held_until < now() + interval '2 minutes')),
       (SELECT count(*) FROM agents_delivery WHERE status = 'waiting'),
       (SELECT count(*) FROM reviews_notice
          WHERE sent_at IS NULL AND let_go = '' AND due_at <= now()),
       (SELECT count(*) FROM journal_logrecord r WHERE NOT EXISTS
          (SELECT 1 FROM journal_logposition p WHERE p.record_id = r.id))
"""


@dataclass
class Ran:
    """What a run leaves to be looked at. Times are of the clock on the wall."""

    began: float
    loaded: float  # the last fault was done
    ended: float
    notebook: Notebook
    arsenal: Arsenal
    restarts: dict[str, int]
    quiet: bool
    left: tuple[int, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


def run(stage: Stage, options: Options, live: Live) -> Ran:
    """Call it from the main thread: processes are started on the way."""
    migrate(live)
    people = house.house(policy.document(stage.provider), f"{stage.provider}/hooks")
    connections.close_all()
    book = _post(stage, people)
    live.say("starting processes")
    open_up(stage)
    notebook, stopping = Notebook(), threading.Event()
    keys = list(people.keys.values())
    asked = wishes(options, len(keys))
    driver = Driver(asked, stage.addresses, keys, stage.provider, notebook, book)
    desks = _desks(stage, people, driver, stopping)
    arsenal, began = Arsenal(stage, options), time.time()
    live.begin(driver, arsenal)
    driver.start()
    workers = [threading.Thread(target=desk.work, daemon=True) for desk in desks]
    for thread in workers:
        thread.start()
    strike(stage, arsenal, live, _loading(options, driver, arsenal))
    loaded = time.time()
    left = calm(stage, arsenal, live, lambda: driver.working)
    stopping.set()
    restarts = {slot.name: slot.starts - 1 for slot in stage.slots.values()}
    return Ran(
        began,
        loaded,
        time.time(),
        notebook,
        arsenal,
        restarts,
        quiet=not any(left),
        left=left,
    )


def _post(stage: Stage, people: house.House) -> Postbook:
    """Agents' servers that will know their secrets, and a mail server that is up: it is
    named in the environment that the processes get."""
    book = Postbook(stage.ledger)
    book.listen(people.listeners(stage.addresses))
    mailbox = Mailbox(urlsplit(stage.provider).hostname or "", book)
    mailbox.open()
    os.environ["MAIL_URL"] = mailbox.url
    return book


def _desks(
    stage: Stage, people: house.House, driver: Driver, stopping: threading.Event
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


def _loading(options: Options, driver: Driver, arsenal: Arsenal) -> Callable[[], bool]:
    """Until the time is over and each kind of fault was there, or that takes too
    long: the auditor will say what is missing."""
    over = driver.began + options.seconds

    def loading() -> bool:
        now = time.monotonic()
        return now < over or (not arsenal.enough and now < over + QUIET_S)

    return loading


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


def calm(
    stage: Stage, arsenal: Arsenal, live: Live, working: Callable[[], bool]
) -> tuple[int, ...]:
    """Until nothing is to come any more; what is left when it takes too long. Who froze
    as the faults came to an end is woken in its time."""
    end, looked, calm_since = time.monotonic() + QUIET_S, 0.0, 0.0
    left: tuple[int, ...] = (1,)
    while time.monotonic() < end:
        arsenal.step(striking=False)
        stage.keep()
        live.show()
        now = time.monotonic()
        if now > looked + LOOK_S:
            looked, left = now, _open(left)
            busy = any(left) or working()
            calm_since = 0.0 if busy else calm_since or now
        if calm_since and now > calm_since + CALM_S:
            return left
        time.sleep(STEP_S)
    return left


def _open(before: tuple[int, ...]) -> tuple[int, ...]:
    try:
        with psycopg.connect(settings.HOLDPOINT.database_url) as connection:
            found = connection.execute(_OPEN).fetchone()
    except psycopg.OperationalError:
        return before
    assert found is not None
    return tuple(found)
