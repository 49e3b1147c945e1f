"""One message being worked through: everything Riley knows of it, as plain data.

A case is a value. The planner makes the next one from it; the gate's checkpoint keeps
it as the opaque blob.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

MOST_STEPS = 25
"""Proposals a case may make; after that Riley gives up on it."""


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody wrote to support. None of it is to be believed."""

    id: str
    received_at: str
    sender: str
    name: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class Case:
    """Where the work on one message stands.

    `agenda` names the moves still to make, the first is next. `known` holds what was
    read from the message and learned since. `tries` counts proposals by move.
    """

    thread: str
    message: str
    intent: str
    agenda: tuple[str, ...]
    known: Mapping[str, Any] = field(default_factory=dict)
    tries: Mapping[str, int] = field(default_factory=dict)
    steps: int = 0
    result: str = "completed"
    notes: tuple[str, ...] = ()

    @property
    def move(self) -> str:
        """The next move, or the one that waits for its outcome."""
        return self.agenda[0] if self.agenda else ""

    def learn(self, **facts: Any) -> Case:
        """The case, knowing more."""
        return replace(self, known={**self.known, **facts})

    def did(self, move: str) -> Mapping[str, Any] | None:
        """What came of a move that was carried out; None if it was not."""
        done: Mapping[str, Mapping[str, Any]] = self.known.get("did", {})
        return done.get(move)

    def done(self, result: Mapping[str, Any]) -> Case:
        """The case after its next move was carried out."""
        did = {**self.known.get("did", {}), self.move: dict(result)}
        return self.learn(did=did).drop()

    def drop(self, note: str = "") -> Case:
        """The case without its next move."""
        return replace(self, agenda=self.agenda[1:]).noted(note)

    def go(self, *agenda: str, result: str = "") -> Case:
        """The case with another agenda, and another end if `result` says so."""
        return replace(self, agenda=agenda, result=result or self.result)

    def noted(self, note: str) -> Case:
        """The case with one more line about how it went."""
        return replace(self, notes=(*self.notes, note)) if note else self

    def proposed(self) -> Case:
        """The case after its next move was proposed once more."""
        tries = {**self.tries, self.move: self.tried(self.move) + 1}
        return replace(self, tries=tries, steps=self.steps + 1)

    def tried(self, move: str) -> int:
        """How often a move was proposed."""
        return self.tries.get(move, 0)

    def dump(self) -> bytes:
        """The case as bytes, for the checkpoint."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def load(cls, blob: bytes) -> Case:
        """The case from its bytes. Raises ValueError or TypeError for other bytes."""
        data = json.loads(blob)
        agenda, notes = tuple(data.pop("agenda")), tuple(data.pop("notes"))
        return cls(agenda=agenda, notes=notes, **data)
