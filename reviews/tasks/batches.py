"""Batches form around a new request, and are looked after."""

from __future__ import annotations

from journal import outbox
from reviews.batches import formation
from reviews.forming import tidying

from .named import task


@task()
def form_batch(message_id: int) -> None:
    """A request came that may be decided with others like it."""
    with outbox.consume(message_id) as message:
        if message is not None:
            formation.form_around(message.subject)


@task()
def tidy_batches() -> int:
    """See who left a batch, and put together what was missed; how many changed."""
    return tidying.tidy_all() + len(formation.form_all())
