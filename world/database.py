"""SQLite files that a service of somebody else keeps: what it did is on the disk before
it answers, whatever dies when.

A writer takes the one write lock at BEGIN, so what it reads cannot change before it
commits. Any number of threads and processes may share a file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, TypeVar

Row = sqlite3.Row
Connection = sqlite3.Connection
Entry = TypeVar("Entry")


def connect(
    path: Path, *, patience_s: float = 30.0, synchronous: str = "FULL"
) -> Connection:
    """A connection in autocommit, so that it never holds a lock between statements. It
    waits so long for the lock of another. By default an effect survives a power cut
    once its service has reported it to the gate; with NORMAL it survives a kill."""
    db = sqlite3.connect(path, timeout=patience_s, isolation_level=None)
    db.row_factory = Row
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    return db


@contextmanager
def reading(path: Path, **options: Any) -> Iterator[Connection]:
    """A connection for queries."""
    with closing(connect(path, **options)) as db:
        yield db


@contextmanager
def writing(path: Path, **options: Any) -> Iterator[Connection]:
    """One write transaction: committed at the end, rolled back by an exception."""
    with closing(connect(path, **options)) as db:
        db.execute("BEGIN IMMEDIATE")
        with db:
            yield db


def insert(db: Connection, table: str, **values: Any) -> int:
    """Insert one row and return its number. The names come from the caller's source."""
    marks = ", ".join("?" * len(values))
    query = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})"  # noqa: S608
    number = db.execute(query, tuple(values.values())).lastrowid
    assert number is not None
    return number


class Ledger:
    """What happened, as rows that are dataclasses: each class has a table with its name
    and its fields. Rows come back in the order in which they were added."""

    def __init__(self, file: Path) -> None:
        self.file = file
        # A connection that stays open and has read: SQLite moves the whole log into the
        # file whenever the last one is closed.
        self._db = connect(file)
        self._db.execute("PRAGMA journal_mode = WAL").fetchall()
        self._db.execute("SELECT 1 FROM sqlite_master").fetchall()

    def writing(self) -> AbstractContextManager[Connection]:
        """One write transaction. Processes are killed here, and no power is cut."""
        return writing(self.file, synchronous="NORMAL")

    def add(self, entry: Any) -> int:
        """Add a row in a transaction of its own, and return its number."""
        with self.writing() as db:
            return add_entry(db, entry)

    def load(self, kind: type[Entry], **values: Any) -> list[Entry]:
        """The rows of a class, of which some fields may have to have these values."""
        with reading(self.file) as db:
            return load_entries(db, kind, **values)


def add_entry(db: Connection, entry: Any) -> int:
    table = _open_table(db, type(entry))
    names = [field.name for field in fields(entry)]
    return insert(db, table, **dict(zip(names, astuple(entry), strict=True)))


def load_entries(db: Connection, kind: type[Entry], **values: Any) -> list[Entry]:
    table, where = _open_table(db, kind), " AND ".join(f"{name} = ?" for name in values)
    query = f"SELECT * FROM {table} WHERE {where or 'true'} ORDER BY rowid"  # noqa: S608
    return [kind(*row) for row in db.execute(query, tuple(values.values()))]


def _open_table(db: Connection, kind: type) -> str:
    table = kind.__name__.lower()
    names = ", ".join(field.name for field in fields(kind))
    db.execute(f"CREATE TABLE IF NOT EXISTS {table} ({names})")
    return table
