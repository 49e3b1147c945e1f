"""What strikes next, drawn from a seed, and doing it to the stage."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import redis

from journal import failpoints

from . import processes
from .cables import Cables
from .cluster import Stage
from .fault import CABLES, KINDS, Strike
from .network import DATA
from .options import LEASE_S, Options
from .points import Armed, Points, Stopped
from .sleepers import Sleepers
from .slots import Slot

TWICE = 2  # of each, however short the run
DOWN_S = 1.0  # at most, before a server is started again
OVERSLEEP_S = (1.0, 3.0)  # beyond the lease
CUT_S = (0.2, 4.0)  # and one cut of three for longer than a lease


@dataclass
class Arsenal:
    """Draws what comes next from a seed, and does it. Only the main thread calls it."""

    stage: Stage
    options: Options
    strikes: list[Strike] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._drawn = random.Random(self.options.seed)  # noqa: S311 - drawn again
        self._sleepers = Sleepers()
        self._cables = Cables(self.stage)
        self._points = Points(self.stage, self._drawn)
        self._kinds = self._sequence()
        self.due = time.monotonic() + self._drawn.uniform(*self.options.between)
        self._ways: dict[str, Callable[[], Strike | None]] = {
            "worker": self._worker,
            "child": self._child,
            "web": self._web,
            "postgres": lambda: self._restart("postgres", signal.SIGQUIT),
            "valkey": lambda: self._restart("valkey", signal.SIGKILL),
            "flush": self._flush,
            "pause": self._pause,
            "point": self._point,
            "cut": self._cut,
            "outage": self._outage,
        }

    @property
    def kinds(self) -> list[str]:
        """What there is to be had on this machine."""
        real = self.stage.network.real
        return [kind for kind in KINDS if real or kind not in CABLES]

    @property
    def unmet(self) -> int:
        """Points that were armed and that nobody passed."""
        return self._points.unmet

    def _sequence(self) -> Iterator[str]:
        """Each kind twice, then by weight."""
        first = self.kinds * TWICE
        self._drawn.shuffle(first)
        yield from first
        weights = [KINDS[kind][0] for kind in self.kinds]
        while True:
            yield self._drawn.choices(self.kinds, weights)[0]

    def step(self, *, striking: bool) -> None:
        """What is due now: the next fault, and the end of a sleep or of a cut."""
        self._sleepers.wake()
        self._cables.mend()
        self.strikes += map(self._met, self._points.met())
        self.strikes += map(self._stopped, self._points.stopped())
        if striking and time.monotonic() >= self.due:
            strike = self._ways[next(self._kinds)]()
            if strike is not None:
                self.strikes.append(strike)
            self.due = time.monotonic() + self._drawn.uniform(*self.options.between)

    @property
    def enough(self) -> bool:
        """Whether every kind was there as often as was promised."""
        done = [strike.kind for strike in self.strikes]
        return all(done.count(kind) >= TWICE for kind in self.kinds)

    def stand_down(self) -> None:
        """No more: whoever sleeps goes on, cables are put back, and what nobody met is
        taken away."""
        self._points.disarm()
        self._cables.mend(everything=True)
        self._sleepers.wake_all()

    def _one(self, slots: list[Slot]) -> Slot | None:
        """Somebody who is up and about."""
        fit = [slot for slot in slots if slot.alive and not slot.frozen]
        return self._drawn.choice(fit) if fit else None

    def _worker(self) -> Strike | None:
        slot = self._one(self.stage.workers)
        if slot is None:
            return None
        pids = tuple(processes.group(slot.child.pid))
        now = time.time()
        slot.kill()
        return Strike("worker", now, now, slot.name, pids)

    def _child(self) -> Strike | None:
        """One that runs tasks, or the one that tells the time."""
        slot = self._one(self.stage.workers)
        children = processes.group(slot.child.pid)[1:] if slot else []
        if slot is None or not children:
            return None
        pid = self._drawn.choice(children)
        now = time.time()
        processes.signal_one(pid, signal.SIGKILL)
        return Strike("child", now, now, slot.name, (pid,))

    def _web(self) -> Strike | None:
        slot = self._one(self.stage.webs)
        if slot is None:
            return None
        now = time.time()
        slot.kill()
        return Strike("web", now, now, slot.name)

    def _restart(self, name: str, number: signal.Signals) -> Strike:
        slot, began = self.stage.slots[name], time.time()
        slot.kill(number)
        time.sleep(self._drawn.uniform(0.0, DOWN_S))
        slot.run()
        return Strike(name, began, time.time(), name)

    def _flush(self) -> Strike:
        socket = str(self.stage.here.valkey_socket)
        with redis.Redis(unix_socket_path=socket) as client:
            client.flushall()
        now = time.time()
        return Strike("flush", now, now, "valkey")

    def _pause(self) -> Strike | None:
        """Of three, two sleep with a claim in their hands, and one wherever it is."""
        if self._drawn.randrange(3):
            self._points.holding("pause")
            return None  # it counts when somebody passes
        slot = self._one(self.stage.workers)
        return self._freeze("pause", slot, slot.name) if slot else None

    def _freeze(self, kind: str, slot: Slot, target: str) -> Strike:
        return self._sleepers.freeze(kind, slot, target, self._long())

    def _long(self) -> float:
        return LEASE_S + self._drawn.uniform(*OVERSLEEP_S)

    def _point(self) -> None:
        """Arm one; it counts when somebody passes."""
        self._points.anywhere("point", rare=not self.options.short)

    def _met(self, one: Armed) -> Strike:
        now = time.time()
        return Strike(one.kind, now, now, f"{one.name}: {one.action}")

    def _stopped(self, one: Stopped) -> Strike:
        target = f"{one.name}: {failpoints.Action.STOP}"
        strike = self._freeze(one.kind, one.slot, target)
        strike.pids = (one.pid,)
        return strike

    def _cut(self) -> Strike | None:
        """One of three for longer than a lease: what its workers held is done
        elsewhere, while they still believe that they hold it."""
        seconds = (self._long(), self._drawn.uniform(*CUT_S))[
            self._drawn.randrange(3) > 0
        ]
        host = self._drawn.choice(self.stage.network.apps).name
        return self._cables.pull("cut", host, seconds)

    def _outage(self) -> Strike | None:
        return self._cables.pull("outage", DATA, self._drawn.uniform(*CUT_S))
