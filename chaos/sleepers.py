"""Processes that are frozen past their lease and go on, not knowing that they slept."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field

from . import processes
from .fault import Strike
from .slots import Slot

FIRST_AWAKE_S = 0.3  # the master sleeps so much longer, or it would kill its children
POLL_S = 0.05


@dataclass
class Sleeper:
    """A frozen worker, or web process, and when it goes on."""

    slot: Slot
    strike: Strike
    wake_at: float
    leader_at: float = 0.0


@dataclass
class Sleepers:
    """Who is frozen now."""

    asleep: list[Sleeper] = field(default_factory=list)

    def freeze(self, kind: str, slot: Slot, target: str, seconds: float) -> Strike:
        """All of its processes, for so long."""
        pids = tuple(processes.group(slot.child.pid))
        processes.signal_all(slot.child.pid, signal.SIGSTOP)
        slot.frozen = True
        now = time.time()
        strike = Strike(kind, now, now + seconds, target, pids, slot.name)
        self.asleep.append(Sleeper(slot, strike, time.monotonic() + seconds))
        return strike

    def wake(self) -> None:
        """Those whose time has come. First those who work: what they have to say must
        be refused."""
        now = time.monotonic()
        for sleeper in list(self.asleep):
            leader = sleeper.slot.child.pid
            if sleeper.leader_at and now >= sleeper.leader_at:
                processes.signal_all(leader, signal.SIGCONT)
                sleeper.slot.frozen = False
                self.asleep.remove(sleeper)
            elif not sleeper.leader_at and now >= sleeper.wake_at:
                for pid in processes.group(leader)[1:]:
                    processes.signal_one(pid, signal.SIGCONT)
                sleeper.strike.until = time.time()
                sleeper.leader_at = now + FIRST_AWAKE_S

    def wake_all(self) -> None:
        """Returns when everybody is up."""
        for sleeper in self.asleep:
            sleeper.wake_at = 0.0
        while self.asleep:
            self.wake()
            time.sleep(POLL_S)
