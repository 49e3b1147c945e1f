"""Riley's own small file: which messages are in work, and which are done.

It says where to look, not where a case stands: that is in the gate's checkpoint. Losing
the file loses nothing, since the same proposals under the same keys lead to the same
answers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Notebook:
    """`open`: message by thread. `done`: how each thread ended, its message beside."""

    path: Path
    open: dict[str, str] = field(default_factory=dict)
    done: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Notebook:
        """The file as it was left; an empty notebook where there is none."""
        try:
            data = json.loads(path.read_text("utf-8"))
            return cls(path, dict(data["open"]), dict(data["done"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return cls(path)

    def seen(self) -> set[str]:
        """The messages that are in work or done."""
        return {*self.open.values(), *(end["message"] for end in self.done.values())}

    def threads(self) -> set[str]:
        """The threads that are in work or done."""
        return {*self.open, *self.done}

    def take(self, thread: str, message: str) -> None:
        """Note that work on a message begins."""
        self.open[thread] = message
        self._write()

    def close(self, thread: str, result: str) -> None:
        """Note how a thread ended."""
        message = self.open.pop(thread, "")
        self.done[thread] = {"message": message, "result": result}
        self._write()

    def _write(self) -> None:
        """Whole or not at all: a torn file would lose the list of open threads."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"open": self.open, "done": self.done}, indent=1)
        beside = self.path.with_suffix(".new")
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)
