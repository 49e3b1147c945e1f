"""What came by post, as those who got it keep it: letters to agents, what an agent did
about an outcome and said that it has, and mails to people. Tables beside the ledger's,
in the same file; whoever writes has a connection of their own."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, TypeVar

SCHEMA = """
    CREATE TABLE IF NOT EXISTS listener (
        agent TEXT PRIMARY KEY, secret TEXT, key TEXT, gate TEXT, says TEXT
    );
    CREATE TABLE IF NOT EXISTS arrival (
        id INTEGER PRIMARY KEY, at REAL, agent TEXT, message TEXT, good INTEGER,
        body TEXT, outcome TEXT, proposal TEXT, status TEXT, answer TEXT
    );
    CREATE INDEX IF NOT EXISTS arrival_by_message ON arrival (message);
    CREATE TABLE IF NOT EXISTS taken (outcome TEXT PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS work (
        agent TEXT, proposal TEXT, status TEXT, outcome TEXT, by TEXT, at REAL
    );
    CREATE TABLE IF NOT EXISTS acknowledged (
        agent TEXT, proposal TEXT, status TEXT, outcome TEXT, by TEXT, at REAL
    );
    CREATE TABLE IF NOT EXISTS mail (recipient TEXT, subject TEXT, at REAL);
"""
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Listener:
    """An agent's server: what it checks letters with, and how it says that it has one:
    by its `answer`, or by a `call` of the gate before that."""

    agent: str
    secret: str
    key: str
    gate: str  # addresses of the web processes
    says: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request at an agent's server. `answer` is empty until there is one."""

    at: float
    agent: str
    message: str
    good: bool  # signed by the gate, now, for this agent
    body: str  # its hash
    outcome: str
    proposal: str
    status: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """What an agent did, or said, about one outcome."""

    agent: str
    proposal: str
    status: str
    outcome: str
    by: str  # hook or driver
    at: float


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail that a server took."""

    recipient: str
    subject: str
    at: float


class Postbook:
    """Every line is in the file before anybody is answered."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(file, timeout=30, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")  # what a kill cannot take
        self._db.executescript(SCHEMA)

    def listen(self, listeners: Iterable[Listener]) -> None:
        """Before their servers start."""
        for one in listeners:
            self._write("INSERT INTO listener VALUES (?, ?, ?, ?, ?)", astuple(one))

    def listeners(self) -> list[Listener]:
        return self._all(Listener, "SELECT * FROM listener")

    def arrive(self, one: Arrival) -> tuple[int, int]:
        """Its line, and how many of the same id came before."""
        with self._lock, self._db as db:
            count = "SELECT count(*) FROM arrival WHERE message = ?"
            before = db.execute(count, [one.message]).fetchone()[0]
            line = db.execute(
                "INSERT INTO arrival VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                astuple(one),
            ).lastrowid
        return line or 0, before

    def answered(self, line: int, answer: str) -> None:
        self._write("UPDATE arrival SET answer = ? WHERE id = ?", (answer, line))

    def act(self, word: Word) -> bool:
        """The agent's own work about an outcome, in one transaction with the outcome's
        name, as in client/examples/acts_once.py; whether it was news."""
        with self._lock, self._db as db:
            name = "INSERT OR IGNORE INTO taken VALUES (?)"
            news = bool(db.execute(name, [word.outcome]).rowcount)
            if news:
                db.execute("INSERT INTO work VALUES (?, ?, ?, ?, ?, ?)", astuple(word))
        return news

    def acknowledge(self, word: Word) -> None:
        """The gate has answered 200 to the agent's word that it has this outcome."""
        self._write("INSERT INTO acknowledged VALUES (?, ?, ?, ?, ?, ?)", astuple(word))

    def mail(self, recipient: str, subject: str) -> None:
        values = (recipient, subject, time.time())
        self._write("INSERT INTO mail VALUES (?, ?, ?)", values)

    def arrivals(self) -> list[Arrival]:
        return self._all(
            Arrival,
            "SELECT at, agent, message, good, body, outcome, proposal, status, answer"
            " FROM arrival ORDER BY id",
        )

    def works(self) -> list[Word]:
        return self._all(Word, "SELECT * FROM work")

    def acknowledgements(self) -> list[Word]:
        return self._all(Word, "SELECT * FROM acknowledged")

    def mails(self) -> list[Mail]:
        return self._all(Mail, "SELECT * FROM mail")

    def close(self) -> None:
        self._db.close()

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        with self._lock, self._db as db:
            db.execute(statement, values)

    def _all(self, row: type[Row], query: str) -> list[Row]:
        with self._lock:
            return [row(*values) for values in self._db.execute(query)]
