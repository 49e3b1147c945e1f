"""Django's PostgreSQL backend without a question before each request.

Django asks `SELECT 1` before it uses a persistent connection again. An idle connection
has nothing to read until the server closes it, so a look at the socket tells the same
without a round trip. A peer that vanished without a word is noticed by neither: the
time-outs of hitl/connections.py end the statement that waits for it.
"""

from __future__ import annotations

import select
from typing import Any

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection of one thread. Django finds the class by this name."""

    health_check_done: bool  # since the request began

    def close_if_health_check_failed(self) -> None:
        """Close a connection that the server has closed. Django's own question decides
        about one that has something to read, which may also be a notice."""
        if (
            self.connection is None
            or self.health_check_done
            or has_input(self.connection)
        ):
            super().close_if_health_check_failed()
        else:
            self.health_check_done = True


def has_input(connection: Any) -> bool:
    """Whether a connection of the driver has something to read, or is closed."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
