"""The house looks after itself: restores, alarms, and what is needed no more."""

from __future__ import annotations

from journal import dispatch, pruning
from reviews import recovery, retention
from reviews.alarms import dropping, watching
from reviews.decisions import drafts
from reviews.desk.log import search_entries

from .named import task


@task()
def watch_epoch() -> str:
    """See whether an older database was put in the place of ours."""
    return recovery.watch()


@task()
def watch() -> int:
    """Raise what went against a promise and was not noticed; how many changed."""
    if count := dispatch.dropped():
        dropping.dropped(count=count)
        dispatch.forget_dropped(count)
    return watching.watch()


@task()
def pulse_effects() -> None:
    """Shows that the queue of effects is served: that it ran is noted."""


@task()
def drop_old_drafts() -> int:
    """Forget what nobody sent for a day."""
    return drafts.drop_old()


@task()
def enter_searched() -> int:
    """Make findable what was proposed since; how many versions."""
    return search_entries.add()


@task()
def prune() -> int:
    """What is needed no more: messages to people, sessions, results."""
    gone = retention.forget_notices()
    gone += pruning.pieces(retention.forget_sessions, whole=retention.CHUNK)
    return gone + pruning.pieces(retention.erase_results, whole=retention.CHUNK)
