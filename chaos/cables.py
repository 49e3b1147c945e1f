"""Hosts that are cut off for a while."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from .cluster import Stage
from .fault import Strike


@dataclass
class Cut:
    """A cable that is out, and when it is put back."""

    host: str
    strike: Strike
    mend_at: float


@dataclass
class Cables:
    """One at a time, or nobody would be left to go on."""

    stage: Stage
    cuts: list[Cut] = field(default_factory=list)

    def pull(self, kind: str, host: str, seconds: float) -> Strike | None:
        """The fault, which ends when that time is over; None when one is out."""
        if self.cuts:
            return None
        self.stage.network.cut(host)
        now = time.time()
        slots = tuple(s.name for s in self.stage.slots.values() if s.host == host)
        strike = Strike(kind, now, now + seconds, host, slots=slots)
        self.cuts.append(Cut(host, strike, time.monotonic() + seconds))
        return strike

    def mend(self, *, everything: bool = False) -> None:
        """Put back what is due."""
        for cut in list(self.cuts):
            if everything or time.monotonic() >= cut.mend_at:
                self.stage.network.mend(cut.host)
                cut.strike.until = time.time()
                self.cuts.remove(cut)
