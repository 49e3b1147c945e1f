"""The scripted side of a check: what the model says, and what the tools do.

A script is a list of turns; a turn is a list of tool calls, each with name, args and
id. After the last turn the model says `DONE`. The scripted model of a framework finds
out from the history which turn is next. The tools write to a ledger, as a service
does: it performs one idempotency key once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import validate_call

WORDS = "I do what was asked."
"""What the model says beside each call."""
DONE = "It is done."
Turn = list[dict[str, Any]]
Script = list[Turn]


def build_turn(*calls: tuple[str, str, Mapping[str, Any]]) -> Turn:
    """A turn of calls, each given as id, tool and arguments."""
    return [
        {"id": call_id, "name": name, "args": dict(args), "type": "tool_call"}
        for call_id, name, args in calls
    ]


def get_turn(script: Script, number: int) -> Turn:
    """The turn of this number, from 0; no calls after the last one."""
    return script[number] if number < len(script) else []


def find_turn(script: Script, known: Container[str]) -> Turn:
    """The first turn whose calls have no known id; no calls after the last one."""
    return next((turn for turn in script if turn[0]["id"] not in known), [])


NOTE: Script = [build_turn(("call_1", "send_note", {"to": "ann", "text": "hello"}))]
ORDER: Script = [
    build_turn(
        ("call_1", "order_parts", {"part": "gear", "count": 2, "due": "2026-12-01"})
    )
]


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect in the ledger. `types` are the Python types of the arguments."""

    tool: str
    args: dict[str, Any]
    types: dict[str, str]
    key: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """A file of lines; each is written at once, so processes may share it."""

    path: Path

    def record(self, tool: str, args: Mapping[str, Any], key: str) -> None:
        """Perform an effect. `key` is empty where the framework gives none."""
        self._append(
            {
                "tool": tool,
                "args": {name: str(value) for name, value in args.items()},
                "types": {name: type(value).__name__ for name, value in args.items()},
                "key": key,
            }
        )

    def mark(self, what: str) -> None:
        """Note that code before the pause ran."""
        self._append({"mark": what})

    def list_effects(self) -> list[Effect]:
        """The effects; a repeated key is one."""
        effects: list[Effect] = []
        keys: set[str] = set()
        for row in self._read():
            if "mark" in row or (row["key"] and row["key"] in keys):
                continue
            keys.add(row["key"])
            effects.append(Effect(**row))
        return effects

    def count_marks(self) -> int:
        """How often code before a pause ran."""
        return sum("mark" in row for row in self._read())

    def _append(self, row: dict[str, Any]) -> None:
        line = (json.dumps(row) + "\n").encode()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def _read(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]


@dataclass(slots=True)
class ToolBox:
    """The functions behind the tools. `find_key` gives the idempotency key of the
    current call; `before_effect` and `after_effect` run around each effect."""

    ledger: Ledger
    find_key: Callable[[], str] = str
    before_effect: Callable[[], object] = field(default=lambda: None)
    after_effect: Callable[[], object] = field(default=lambda: None)

    def send_note(self, to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        self._perform("send_note", to=to, text=text)
        return {"sent": to}

    def order_parts(self, part: str, count: int, due: date) -> dict[str, int]:
        """Order a number of parts by a date."""
        self._perform("order_parts", part=part, count=count, due=due)
        return {"ordered": count}

    def erase_note(self, to: str) -> dict[str, str]:
        """Erase the notes to a person."""
        self._perform("erase_note", to=to)
        return {"erased": to}

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """Every function, by the name of its tool."""
        return {name: getattr(self, name) for name in TOOL_NAMES}

    def run(self, tool: str, args: Mapping[str, Any]) -> str:
        """The result of a tool as text. Raises ValidationError for arguments that do
        not fit."""
        return str(validate_call(self.functions[tool])(**args))

    def _perform(self, tool: str, **args: Any) -> None:
        self.before_effect()
        self.ledger.record(tool, args, self.find_key())
        self.after_effect()


TOOL_NAMES = ("send_note", "order_parts", "erase_note")
