"""What the people and agents of a run wrote down: every call until its answer, for the
auditor and for the count of recoveries."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Call:
    """One thing somebody wanted from the web, from the first try to the answer."""

    what: str
    subject: str
    began: float
    ended: float
    webs: tuple[int, ...]  # which of them were asked, in order


@dataclass
class Notebook:
    """Shared by all threads of a run."""

    calls: list[Call] = field(default_factory=list)
    answered: dict[str, str] = field(default_factory=dict)  # key -> proposal
    ended: dict[str, str] = field(default_factory=dict)  # proposal -> status
    counts: Counter[str] = field(default_factory=Counter)
    troubles: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def impatient(self) -> set[str]:
        """The threads of these troubles."""
        return {one.partition(":")[0] for one in self.troubles}

    def called(self, call: Call) -> None:
        with self._lock:
            self.calls.append(call)

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def trouble(self, what: str) -> None:
        """Something that should not have been answered so."""
        with self._lock:
            self.troubles.append(what)
