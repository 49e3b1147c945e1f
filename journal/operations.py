"""The functions that open a transaction, and what each declares about it.

`manage.py transaction_map` prints the declarations as docs/transactions.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import transaction

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Operation:
    """What one function declares about its transaction, as words for a reader."""

    name: str  # dotted, as all names here
    entries: tuple[str, ...]  # what a reader calls: the function, or what calls it
    locks: str
    writes: str
    logs: str
    after: str


OPERATIONS: dict[str, Operation] = {}  # of the modules imported so far, by name


def operation(
    *,
    entry: str = "",
    locks: str = "",
    writes: str = "",
    logs: str = "",
    after: str = "",
) -> Callable[[F], F]:
    """Make a function one durable transaction, and declare its facts.

    `locks` are in the order they are taken; `writes` names models, `logs` names kinds
    of log records, and `after` says what happens after the commit. A private function
    names in `entry` the public ones that call it, separated by commas; one of another
    module by its dotted name.
    """

    def register(function: F) -> F:
        module, name = function.__module__, function.__qualname__
        called = entry.split(", ") if entry else [name]
        entries = tuple(name if "." in name else f"{module}.{name}" for name in called)
        name = f"{module}.{name}"
        OPERATIONS[name] = Operation(name, entries, locks, writes, logs, after)
        return transaction.atomic(durable=True)(function)

    return register
