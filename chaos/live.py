"""What is said while it works: one line that stays where it is, or a line every few
seconds where there is no terminal."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .calls import Notebook
from .nemesis import Arsenal

EVERY_S = {True: 0.5, False: 10.0}
WIDTH = 100


class Work(Protocol):
    """What agents were asked to do, and how far they are."""

    @property
    def wishes(self) -> Sequence[object]: ...

    @property
    def notebook(self) -> Notebook: ...

    @property
    def began(self) -> float: ...

    @property
    def made(self) -> int: ...


@dataclass
class Live:
    """One run's voice. Only the main thread speaks."""

    driver: Work | None = None
    arsenal: Arsenal | None = None
    _last: float = 0.0

    def begin(self, driver: Work, arsenal: Arsenal) -> None:
        self.driver, self.arsenal = driver, arsenal

    def say(self, text: str) -> None:
        sys.stdout.write(f"{self._clear}{text}\n")
        sys.stdout.flush()

    def show(self) -> None:
        """The line as it is now, if it is time for it."""
        now = time.monotonic()
        if self.driver is None or now < self._last + EVERY_S[sys.stdout.isatty()]:
            return
        self._last = now
        end = "\r" if sys.stdout.isatty() else "\n"
        sys.stdout.write(f"{self._line(now):<{WIDTH}}{end}")
        sys.stdout.flush()

    @property
    def _clear(self) -> str:
        return f"\r{'':<{WIDTH}}\r" if sys.stdout.isatty() else ""

    def _line(self, now: float) -> str:
        assert self.driver is not None
        assert self.arsenal is not None
        gone = max(now - self.driver.began, 0.1)
        made, ended = self.driver.made, len(self.driver.notebook.ended)
        kinds = Counter(strike.kind for strike in self.arsenal.strikes)
        struck = " ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()))
        return (
            f"{gone:6.0f} s  {made}/{len(self.driver.wishes)} asked  {ended} ended  "
            f"{made / gone:.1f}/s  {sum(kinds.values())} faults: {struck}"
        )
