"""Prints the transaction map as Markdown, from what the operations declare."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module

from hitl import reencryption  # noqa: F401  # importing registers its operations
from journal.operations import OPERATIONS, Operation

PACKAGES = (
    "desk",
    "stats",
    "assurance",
    "notifications",
    "agents",
    "reviews",
    "policies",
    "journal",
)
COLUMNS = (
    "operation",
    "locks, in order",
    "rows written",
    "logged as",
    "leaves after the commit",
)
HEAD = """\
# The transaction map

`manage.py transaction_map` prints this page from what each function declares with
`@operation` (`journal/operations.py`). A test compares the page with the declarations;
it fails when a function opens a transaction in another way. *In* names the function
that opens the transaction of the one that a reader calls.

Only operations open transactions, and each transaction is durable. Nothing leaves the
process inside one: look-ups, verifiers, effects, mail and calls to the broker come
before it or after it.

Every operation takes its locks in one order: batch, repair, thread, requests by id, a
person's holds (advisory), Hold, keys of sums (advisory), grant, execution, alarm. For
webhooks to agents the order is outcome (advisory), endpoint, delivery, callback lane
(advisory), slow lane (advisory), alarm. *Advisory* means an advisory lock of PostgreSQL
that ends with the transaction. *Skip locked* means that the operation leaves out rows
that another transaction has locked.

Where an alarm would be raised that is open already, `alarm.repeated` is logged instead
of `alarm.raised`.

Mail, tasks and webhook deliveries are rows of the outbox, written in the same
transaction. After the commit a *nudge* through the broker makes a worker act on the
row at once; when the nudge is lost, a sweep finds the row. A *wake-up* is a NOTIFY
after the commit: pages and waiting calls that show the changed row read it again.
"""


def format_page() -> str:
    """The whole map as one Markdown page, with a table for each package."""
    rows = load_operations()
    return "\n".join([HEAD, *(_format_section(name, rows) for name in PACKAGES)])


def load_operations() -> Sequence[Operation]:
    """Every operation of the product, in the order of the page: by package and module,
    and within a module as they stand there."""
    for package in PACKAGES:
        path = import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            if not {"migrations", "management"} & set(module.name.split(".")):
                import_module(module.name)
    return sorted(OPERATIONS.values(), key=_build_place)


def _build_place(row: Operation) -> tuple[str, str]:
    return _get_module(row.entries[0]), _get_module(row.name)


def _get_module(name: str) -> str:
    return name.rpartition(".")[0]


def _format_section(package: str, operations: Iterable[Operation]) -> str:
    rows = [row for row in operations if row.entries[0].startswith(f"{package}.")]
    lines = [
        _format_table_line(COLUMNS),
        _format_table_line(["---"] * len(COLUMNS)),
        *(_format_table_line(_build_cells(row)) for row in rows),
    ]
    return f"## {package}\n\n" + "\n".join(lines) + "\n"


def _format_table_line(cells: Iterable[str]) -> str:
    return " ".join(["|", " | ".join(cells), "|"])


def _build_cells(row: Operation) -> Iterator[str]:
    names = ", ".join(f"`{name}`" for name in row.entries)
    own = row.name.removeprefix(f"{_get_module(row.entries[0])}.")
    yield names if row.name in row.entries else f"{names} in `{own}`"
    yield from (row.locks, row.writes, row.logs, row.after)
