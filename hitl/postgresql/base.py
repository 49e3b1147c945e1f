"""Django's PostgreSQL backend without a question before each request, with settings of
the session that pass a pooler, and with times that Python can read.

Django asks `SELECT 1` before it uses a persistent connection again. An idle connection
has nothing to read until the server closes it, so a look at the socket tells the same
without a round trip. A peer that vanished without a word is noticed by neither: the
time-outs of hitl/connections.py end the statement that waits for it.

PostgreSQL stores times that Python does not have: before the year 1, after 9999, and
infinity. One such value would make every list with its row fail.
"""

from __future__ import annotations

import select
from datetime import datetime, tzinfo
from functools import cache
from typing import Any

from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import BaseTzLoader
from psycopg import DataError
from structlog.stdlib import get_logger

# A year from the ends of Python's calendar: every zone has these times.
FIRST, LAST = datetime(2, 1, 1), datetime(9998, 12, 31)  # noqa: DTZ001  # the loader adds the zone

log = get_logger(__name__)


class ClampingLoader(BaseTzLoader):  # type: ignore[misc]  # has no types
    """Reads a time that Python does not have as the nearest one that it can convert to
    every zone, and logs the stored text."""

    def load(self, data: Any) -> datetime:
        try:
            time: datetime = super().load(data)
        except DataError:
            text = bytes(data).decode()
            early = text.endswith("BC") or text.startswith(("-", "0001-"))
            log.warning("database.time_out_of_range", stored=text)
            return (FIRST if early else LAST).replace(tzinfo=self.timezone)
        if FIRST.year <= time.year <= LAST.year:
            return time
        nearest = FIRST if time.year < FIRST.year else LAST
        return nearest.replace(tzinfo=self.timezone)


@cache
def build_time_loader(zone: tzinfo | None) -> type[ClampingLoader]:
    """The loader of a connection in this zone. Django compares its `timezone`."""
    return type("TimeLoader", (ClampingLoader,), {"timezone": zone})


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection of one thread. Django finds the class by this name."""

    health_check_done: bool  # since the request began

    def get_connection_params(self) -> dict[str, Any]:
        """The driver's parameters, without ours."""
        parameters: dict[str, Any] = super().get_connection_params()
        parameters.pop("session_settings", None)
        return parameters

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect, and read times with the clamping loader."""
        connection = super().get_new_connection(conn_params)
        loader = build_time_loader(self.timezone)
        connection.adapters.register_loader("timestamptz", loader)
        return connection

    def _configure_connection(self, connection: Any) -> bool:
        """Set what each session needs. Returns whether there is something to commit."""
        super()._configure_connection(connection)  # type: ignore[misc]
        wanted = self.settings_dict["OPTIONS"].get("session_settings", {})
        calls = ", ".join(["set_config(%s, %s, false)"] * len(wanted))
        if calls:
            values = [text for setting in wanted.items() for text in setting]
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT {calls}", values)
        return True

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
