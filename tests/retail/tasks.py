"""The store's records and the tasks of ../shared/data/retail, as these tests use them.

Nothing of the data is copied into the project: it is read where it lies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tests.retail.store import EFFECTS, Result, World, perform
from world.services import Refusal

DATA = "data/retail"
FILES = ("tasks_dev.jsonl", "tasks_train.jsonl")  # in this order
MONEY = ("price", "amount", "balance")
EVERY_TASK = 520
# The two tools of the eight that no task's solution uses.
MOVE, TRANSFER = "modify_user_address", "transfer_to_human_agents"


@dataclass(frozen=True, slots=True)
class Call:
    """One world-changing call of a task. Numbers are in file order and start at 1."""

    number: int
    thread: str  # the task: a run of the agent
    user: str
    tool: str
    args: dict[str, Any]

    @property
    def key(self) -> str:
        return f"{self.thread}:{self.number}"


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a call at the store."""

    status: str  # executed, failed
    code: str = ""
    result: Result | None = None


def world(data: Path) -> World:
    """The store before the first call, read anew: calls change it."""
    names = ("users", "orders", "products")
    return World(*(_records(data / f"{name}.json") for name in names))


def _records(file: Path) -> dict[str, Any]:
    """Amounts become text with two places, read without ever being a float."""

    def exact(record: dict[str, Any]) -> dict[str, Any]:
        for name in MONEY:
            if name in record:
                record[name] = str(Decimal(record[name]).quantize(Decimal("0.01")))
        return record

    records: dict[str, Any] = json.loads(
        file.read_text(), parse_float=Decimal, object_hook=exact
    )
    return records


def calls(data: Path, tasks: int = EVERY_TASK) -> list[Call]:
    """The world-changing calls of the first `tasks` tasks, in file order."""
    chosen = islice(chain.from_iterable(_tasks(data / name) for name in FILES), tasks)
    changing = (
        (thread, task["user_id"], action)
        for thread, task in chosen
        for action in task["actions"]
        if action["name"] in EFFECTS
    )
    return [
        Call(number, thread, user, action["name"], action["arguments"])
        for number, (thread, user, action) in enumerate(changing, 1)
    ]


def beside(data: Path, calls: list[Call]) -> list[Call]:
    """One call of each tool that no task uses, after these and by the last user."""
    user, number = calls[-1].user, calls[-1].number
    address = world(data).users[user]["address"] | {"address1": "1 Other Street"}
    summary = "The customer asks for a person."
    return [
        Call(number + 1, "beside-0", user, MOVE, {"user_id": user, **address}),
        Call(number + 2, "beside-1", user, TRANSFER, {"summary": summary}),
    ]


def _tasks(file: Path) -> Iterator[tuple[str, Any]]:
    part = file.stem.removeprefix("tasks_")
    with file.open() as lines:
        for line in lines:
            task = json.loads(line)
            yield f"{part}-{task['task']}", task


def run_directly(
    store: World, chosen: list[Call], skipped: Callable[[Call], bool]
) -> dict[int, Done]:
    """The calls one after another in file order, without gate; what became of each."""
    return {call.number: _done(store, call) for call in chosen if not skipped(call)}


def _done(store: World, call: Call) -> Done:
    try:
        result = perform(store, call.tool, call.args)
    except Refusal as refusal:
        return Done("failed", refusal.code)
    # As it was then: later calls change the same records.
    return Done("executed", "", json.loads(json.dumps(result)))
