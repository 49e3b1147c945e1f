"""A place in which a process of a run lives, dies and is started again."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from hitl.local.process import Child, kill_group

from .network import DATA


@dataclass
class Slot:
    """One such place, on one host."""

    name: str
    start: Callable[[], Child]
    host: str = DATA
    child: Child = field(init=False)
    again_at: float | None = None
    frozen: bool = False
    starts: int = 0

    def run(self) -> None:
        self.child = self.start()
        self.starts += 1
        self.again_at = None
        self.frozen = False

    @property
    def alive(self) -> bool:
        return self.again_at is None and self.child.exit_code() is None

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """The whole group: what it started must not live on."""
        if number is signal.SIGKILL:
            kill_group(self.child.pid)
        else:
            self.child.process.send_signal(number)
        self.child.process.wait()
