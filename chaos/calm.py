"""When a run is over: the faults are, and nothing is to come any more."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import psycopg
from django.conf import settings

from .cluster import STEP_S, Stage
from .live import Live
from .nemesis import Arsenal

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
