"""Exports of the log are written piece by piece."""

from __future__ import annotations

from journal import outbox
from reviews.desk.log import exports

from .named import task


@task()
def write_export(message_id: int) -> None:
    """One delivery writes for a few seconds; the rest is another promise."""
    with outbox.consume(message_id) as message:
        if message is not None and not exports.write(message.subject):
            exports.go_on(message.subject)


@task()
def drop_old_exports() -> int:
    return exports.drop_old()
