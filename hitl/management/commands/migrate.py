"""`manage.py migrate`: Django's command, which also works on a system in use."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError

from hitl.middleware import has_lost_lock

# Each attempt waits at most LOCK_TIMEOUT_MS of hitl/connections.py for a lock, so that
# requests behind it in the line of the lock do not wait longer.
ATTEMPTS = 24


class Command(migrate.Command):
    """Repeats a migration that could not lock its tables.

    A migration needs its tables alone while web processes and workers use them. An
    atomic migration that meets a deadlock or a held lock is undone as a whole, so the
    next attempt begins with it. A migration that is not atomic may have been applied in
    part and is not repeated.
    """

    _current: Any = None

    def handle(self, *args: Any, **options: Any) -> None:
        """*Raises* CommandError when the last attempt also meets a lock."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                super().handle(*args, **options)
            except OperationalError as fault:
                if not self._is_repeatable(fault):
                    raise
                reason = str(fault).partition("\n")[0]
                self.stderr.write(f"Attempt {attempt}: a table is in use: {reason}")
            else:
                return
        raise CommandError(
            f"The tables were in use in each of {ATTEMPTS} attempts. The migrations"
            " before this one stay applied. Run the command again at a quieter time,"
            " or stop the web processes and the workers first."
        )

    def migration_progress_callback(
        self, action: str, migration: Any = None, fake: bool = False
    ) -> None:
        if action in {"apply_start", "unapply_start"}:
            self._current = migration
        super().migration_progress_callback(action, migration, fake)

    def _is_repeatable(self, fault: OperationalError) -> bool:
        return has_lost_lock(fault) and (self._current is None or self._current.atomic)
