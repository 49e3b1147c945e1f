"""An agent that acts once on each outcome, whatever kills it and whenever.

It keeps the outcome's name in the same transaction as the work it does about it, and
acknowledges only after that. Killed before: the outcome is offered again, and the work
is done. Killed after: it is offered again, and its name is there already.
"""

from __future__ import annotations

import sqlite3
import sys

from counterseal_client import Gate, Proposal

TABLES = """
CREATE TABLE IF NOT EXISTS taken (outcome TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS work (thread TEXT, status TEXT);
"""


def act(db: sqlite3.Connection, proposal: Proposal) -> None:
    with db:  # both or neither
        name = "INSERT OR IGNORE INTO taken VALUES (?)"
        if db.execute(name, [proposal.outcome]).rowcount:
            work = [proposal.thread, proposal.status]
            db.execute("INSERT INTO work VALUES (?, ?)", work)


def main(url: str, key: str, thread: str, file: str) -> None:
    db = sqlite3.connect(file)
    db.executescript(TABLES)
    with Gate(url, key) as gate:
        outcome = gate.resume(thread).due  # None: nothing yet, come back later
        if outcome is not None:
            act(db, outcome)
            gate.acknowledge(outcome)


if __name__ == "__main__":
    main(*sys.argv[1:])
