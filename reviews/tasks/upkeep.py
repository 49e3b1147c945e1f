"""The house looks after itself: restores, alarms, and what is needed no more."""

from __future__ import annotations

from .. import alarms, drafts, restores, retention
from .named import task


@task()
def watch_epoch() -> str:
    """See whether an older database was put in the place of ours."""
    return restores.watch()


@task()
def watch() -> int:
    """Raise what went against a promise and was not noticed; how many changed."""
    return alarms.watch()


@task()
def drop_old_drafts() -> int:
    """Forget what nobody sent for a day."""
    return drafts.drop_old()


@task()
def prune() -> int:
    """A piece of what is needed no more: letters, sessions, results."""
    sent, sessions = retention.forget_notices(), retention.forget_sessions()
    return sent + sessions + retention.erase_results()
