"""Prints the transaction map as Markdown, from the table in hitl/operations.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .operations import AGENTS, JOURNAL, POLICIES, REVIEWS, Operation

PACKAGES = {
    "agents": AGENTS,
    "reviews": REVIEWS,
    "policies": POLICIES,
    "journal": JOURNAL,
}
COLUMNS = (
    "operation",
    "locks, in order",
    "rows written",
    "logged as",
    "leaves after the commit",
)
HEAD = """\
# The transaction map

`manage.py transaction_map` prints this page from the table in `hitl/operations.py`. A
test compares the page with the table and the table with the source: it fails when a
function opens a transaction and is not in the table.

Only operations open transactions, and each transaction is durable. Nothing leaves the
process inside one: look-ups, verifiers, effects, mail and calls to the broker come
before it or after it.

Every operation takes its locks in one order: batch, repair, thread, requests by id, a
person's leases (advisory), Lease, keys of sums (advisory), grant, execution, alarm. For
webhooks to agents the order is outcome (advisory), endpoint, delivery, callback lane
(advisory), slow lane (advisory), alarm. *Advisory* means an advisory lock of PostgreSQL
that ends with the transaction. *Skip locked* means that the operation leaves out rows
that another transaction has locked.

Mail, tasks and webhook deliveries are rows of the outbox, written in the same
transaction. After the commit a *nudge* through the broker makes a worker act on the
row at once; when the nudge is lost, a sweep finds the row. A *wake-up* is a NOTIFY
after the commit: pages and waiting calls that show the changed row read it again.
"""


def format_page() -> str:
    """The whole map as one Markdown page, with a table for each package."""
    return "\n".join([HEAD, *(_format_section(*entry) for entry in PACKAGES.items())])


def _format_section(package: str, operations: Iterable[Operation]) -> str:
    rule = ["---"] * len(COLUMNS)
    lines = [
        _format_table_line(COLUMNS),
        _format_table_line(rule),
        *(_format_table_line(_build_cells(row)) for row in operations),
    ]
    return f"## {package}\n\n" + "\n".join(lines) + "\n"


def _format_table_line(cells: Sequence[str]) -> str:
    return " ".join(["|", " | ".join(cells), "|"])


def _build_cells(row: Operation) -> Sequence[str]:
    names = ", ".join(f"`{name}`" for name in _shorten_names(row.functions))
    return (names, row.locks, row.writes, row.logs, row.after)


def _shorten_names(functions: Iterable[str]) -> Iterator[str]:
    """Omit the module of a function that follows one of the same module."""
    module = ""
    for function in functions:
        before, (module, _, name) = module, function.rpartition(".")
        yield name if module == before else function
