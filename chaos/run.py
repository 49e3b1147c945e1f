"""One run: everything starts, agents and people work, faults fall, all becomes quiet,
and then it is looked at."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.core.management import call_command
from django.db import connections

from . import house, policy
from .agents import Driver
from .calls import Notebook
from .calm import QUIET_S, calm
from .cluster import STEP_S, Stage
from .generator import wishes
from .ledger import Ledger
from .live import Live
from .mailbox import Mailbox
from .nemesis import Arsenal
from .opening import open_up
from .options import Options
from .people import Desk
from .receivers import Postbook
from .reviewer import Reviewer
from .run_result import Ran
from .supervisor import Supervisor

LONGER = 0.5  # of its time may a run take more


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
