"""What agents keep in the job's SQLite file, where a check can change it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from threading import Lock
from typing import Any


class Table:
    """Texts or bytes by name, each stored at once. Threads may share it."""

    def __init__(self, file: Path | str, name: str = "kept") -> None:
        self._database = sqlite3.connect(file, check_same_thread=False)
        self._lock = Lock()
        self._name = name
        self._run(f"CREATE TABLE IF NOT EXISTS {name} (name TEXT UNIQUE, value)")

    def put(self, name: str, value: str | bytes) -> None:
        """Store a value, in place of one with this name."""
        self._run(f"REPLACE INTO {self._name} VALUES (?, ?)", name, value)  # noqa: S608

    def add(self, name: str, value: str | bytes) -> None:
        """Store a value, unless there is one with this name."""
        self._run(f"INSERT OR IGNORE INTO {self._name} VALUES (?, ?)", name, value)  # noqa: S608

    def get(self, name: str) -> Any:
        """The value of this name, or None."""
        query = f"SELECT value FROM {self._name} WHERE name = ?"  # noqa: S608
        rows = self._run(query, name)
        return rows[0][0] if rows else None

    def drop(self, name: str) -> None:
        """Forget a value."""
        self._run(f"DELETE FROM {self._name} WHERE name = ?", name)  # noqa: S608

    def list_all(self) -> dict[str, Any]:
        """Every value by its name, in the order of the names."""
        rows = self._run(f"SELECT name, value FROM {self._name} ORDER BY name")  # noqa: S608
        return dict(rows)

    def _run(self, query: str, *values: str | bytes) -> list[Any]:
        with self._lock, self._database:
            return self._database.execute(query, values).fetchall()
