"""The nemesis: draws the next fault from a seed and injects it into the cluster.

It kills, freezes, empties and restarts processes and servers, cuts hosts off for a
while, and arms named points of the product (journal/failpoints.py), at which the first
process that passes is killed, broken or frozen. A frozen process sleeps past its lease
and goes on without knowing it.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import redis

from journal import failpoints

from .cluster import (
    Cluster,
    Slot,
    find_stopped_group,
    list_group,
    signal_group,
    signal_process,
)
from .history import Fault
from .network import DATA
from .options import FAULT_KINDS, LEASE_S, NETWORK_KINDS, Options


@dataclass
class HostCut:
    """Cuts off one host at a time, so that the others go on."""

    cluster: Cluster
    fault: Fault | None = None  # while a host is cut off
    mend_at: float = 0.0

    def pull(self, kind: str, host: str, seconds: float) -> Fault | None:
        """The fault, which ends when that time is over; None when one is out."""
        if self.fault:
            return None
        self.cluster.network.cut(host)
        now = time.time()
        slots = tuple(s.name for s in self.cluster.slots.values() if s.host == host)
        self.fault = Fault(kind, now, now + seconds, host, slots=slots)
        self.mend_at = time.monotonic() + seconds
        return self.fault

    def mend(self, *, at_once: bool = False) -> None:
        """Connect the host again once its time is over."""
        if self.fault and (at_once or time.monotonic() >= self.mend_at):
            self.cluster.network.mend(self.fault.target)
            self.fault.until = time.time()
            self.fault = None


UNMET_S = 5.0  # after which an armed point that nobody passed is taken down
# Points that somebody passes every few seconds; of the others one in so many is tried.
BUSY = (
    "proposed_uncommitted", "decided_uncommitted", "grant_uncommitted",
    "window_uncommitted", "before_nudge", "before_announce", "message_uncommitted",
    "message_claimed", "before_claim", "claim_uncommitted", "after_claim", "rechecked",
    "before_effect", "after_effect", "before_record", "record_uncommitted",
    "after_record", "before_done", "sequence_uncommitted", "mail_taken",
    "deliveries_uncommitted", "delivery_taken", "delivery_answered",
    "delivery_uncommitted", "acknowledged_uncommitted",
)  # fmt: skip
SELDOM = 5
# Where somebody holds a claim who is to sleep past its lease.
HOLDING = (
    "after_claim", "rechecked", "before_effect", "after_effect", "before_record",
    "delivery_taken", "delivery_answered",
)  # fmt: skip
ACTIONS = (
    failpoints.FaultAction.KILL,
    failpoints.FaultAction.RAISE,
    failpoints.FaultAction.STOP,
)


@dataclass
class ArmedPoint:
    """A point of the product that waits for a process to pass."""

    name: str
    action: failpoints.FaultAction
    flag: Path
    since: float
    kind: str


@dataclass(frozen=True, slots=True)
class StoppedProcess:
    """A process that froze at a point."""

    name: str
    kind: str
    slot: Slot
    pid: int


@dataclass
class FaultPoints:
    """The points that are armed now."""

    cluster: Cluster
    drawn: random.Random
    armed: list[ArmedPoint] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)  # by point, armed or passed

    def anywhere(self, kind: str, *, rare: bool) -> None:
        """Any point and any action; now and then one that is seldom passed."""
        rare = not self.drawn.randrange(SELDOM) and rare
        name = self.drawn.choice(sorted(failpoints.POINTS) if rare else BUSY)
        self._arm(kind, name, self.drawn.choice(ACTIONS))

    def holding(self, kind: str) -> None:
        """Freeze the next process that holds a claim."""
        self._arm(kind, self.drawn.choice(HOLDING), failpoints.FaultAction.STOP)

    def _arm(self, kind: str, name: str, action: failpoints.FaultAction) -> None:
        flag = self.cluster.fault_points / name
        if flag.exists():
            return
        draft = flag.with_name(f".draft-{name}")
        draft.write_text(action)
        draft.rename(flag)
        self.armed.append(ArmedPoint(name, action, flag, time.monotonic(), kind))
        self.kinds[name] = kind

    def met(self) -> Iterator[ArmedPoint]:
        """Those at which somebody died or broke. What nobody passes is taken down, and
        a busy point armed instead."""
        for point in list(self.armed):
            if not point.flag.exists():
                self.armed.remove(point)
                if point.action is not failpoints.FaultAction.STOP:
                    yield point
            elif time.monotonic() > point.since + UNMET_S:
                self._disarm(point)
                self._arm(point.kind, self.drawn.choice(BUSY), point.action)

    def disarm(self) -> None:
        for point in list(self.armed):
            self._disarm(point)

    def _disarm(self, point: ArmedPoint) -> None:
        self.armed.remove(point)
        with contextlib.suppress(FileNotFoundError):
            point.flag.unlink()

    def stopped(self) -> Iterator[StoppedProcess]:
        """Whose process stopped itself, whether or not its point still counts as armed:
        somebody must wake it. All of that group must be frozen, or its master would end
        it for the time that it takes."""
        for file in self.cluster.fault_points.glob(f"{failpoints.STOPPED_PREFIX}*"):
            pid = int(file.name.removeprefix(failpoints.STOPPED_PREFIX))
            leader = find_stopped_group(pid)
            for slot in self.cluster.slots.values():
                if slot.child.pid == leader and not slot.frozen:
                    name = file.read_text()
                    yield StoppedProcess(name, self.kinds[name], slot, pid)


FIRST_AWAKE_S = 0.3  # the master sleeps so much longer, or it would kill its children
POLL_S = 0.05


@dataclass
class FrozenSlot:
    """A frozen worker, or web process, and when it goes on."""

    slot: Slot
    fault: Fault
    wake_at: float
    leader_at: float = 0.0


@dataclass
class FrozenSlots:
    """The slots that are frozen now."""

    asleep: list[FrozenSlot] = field(default_factory=list)

    def freeze(self, kind: str, slot: Slot, target: str, seconds: float) -> Fault:
        """Freeze all processes of a slot for so long."""
        pids = tuple(list_group(slot.child.pid))
        signal_group(slot.child.pid, signal.SIGSTOP)
        slot.frozen = True
        now = time.time()
        fault = Fault(kind, now, now + seconds, target, pids, slot.name)
        self.asleep.append(FrozenSlot(slot, fault, time.monotonic() + seconds))
        return fault

    def wake(self) -> None:
        """Those whose time has come. First those who work: what they have to say must
        be refused."""
        now = time.monotonic()
        for sleeper in list(self.asleep):
            leader = sleeper.slot.child.pid
            if sleeper.leader_at and now >= sleeper.leader_at:
                signal_group(leader, signal.SIGCONT)
                sleeper.slot.frozen = False
                self.asleep.remove(sleeper)
            elif not sleeper.leader_at and now >= sleeper.wake_at:
                for pid in list_group(leader)[1:]:
                    signal_process(pid, signal.SIGCONT)
                sleeper.fault.until = time.time()
                sleeper.leader_at = now + FIRST_AWAKE_S

    def wake_all(self) -> None:
        """Wake all, and return when they run."""
        for sleeper in self.asleep:
            sleeper.wake_at = 0.0
        while self.asleep:
            self.wake()
            time.sleep(POLL_S)


TWICE = 2  # of each, however short the run
DOWN_S = 1.0  # at most, before a server is started again
OVERSLEEP_S = (1.0, 3.0)  # beyond the lease
CUT_S = (0.2, 4.0)  # and one cut of three for longer than a lease


@dataclass
class Nemesis:
    """Draws the next fault and injects it. Only the main thread calls it."""

    cluster: Cluster
    options: Options
    faults: list[Fault] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._drawn = random.Random(self.options.seed)  # noqa: S311 - drawn again
        self._sleepers = FrozenSlots()
        self._cable = HostCut(self.cluster)
        self._points = FaultPoints(self.cluster, self._drawn)
        self._kinds = self._sequence()
        self.due = time.monotonic() + self._drawn.uniform(*self.options.between)
        self._ways: dict[str, Callable[[], Fault | None]] = {
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
        """The kinds of faults that this machine can have."""
        real = self.cluster.network.real
        return [kind for kind in FAULT_KINDS if real or kind not in NETWORK_KINDS]

    def _sequence(self) -> Iterator[str]:
        """Each kind twice, then by weight."""
        first = self.kinds * TWICE
        self._drawn.shuffle(first)
        yield from first
        weights = [FAULT_KINDS[kind][0] for kind in self.kinds]
        while True:
            yield self._drawn.choices(self.kinds, weights)[0]

    def step(self, *, injecting: bool) -> None:
        """Do what is due: the next fault, and the end of a sleep or of a cut."""
        self._sleepers.wake()
        self._cable.mend()
        self.faults += map(self._met, self._points.met())
        self.faults += map(self._stopped, self._points.stopped())
        if injecting and time.monotonic() >= self.due:
            fault = self._ways[next(self._kinds)]()
            if fault is not None:
                self.faults.append(fault)
            self.due = time.monotonic() + self._drawn.uniform(*self.options.between)

    @property
    def missing(self) -> list[str]:
        """Kinds of faults that never were."""
        injected = {fault.kind for fault in self.faults}
        return [kind for kind in self.kinds if kind not in injected]

    @property
    def enough(self) -> bool:
        """Whether every kind of fault came as often as it must."""
        done = [fault.kind for fault in self.faults]
        return all(done.count(kind) >= TWICE for kind in self.kinds)

    def stand_down(self) -> None:
        """No more: whoever sleeps goes on, cables are put back, and what nobody met is
        taken away."""
        self._points.disarm()
        self._cable.mend(at_once=True)
        self._sleepers.wake_all()

    def _one(self, slots: list[Slot]) -> Slot | None:
        """A slot whose process runs."""
        fit = [slot for slot in slots if slot.alive and not slot.frozen]
        return self._drawn.choice(fit) if fit else None

    def _worker(self) -> Fault | None:
        slot = self._one(self.cluster.workers)
        if slot is None:
            return None
        pids = tuple(list_group(slot.child.pid))
        now = time.time()
        slot.kill()
        return Fault("worker", now, now, slot.name, pids)

    def _child(self) -> Fault | None:
        """One that runs tasks, or the one that tells the time."""
        slot = self._one(self.cluster.workers)
        children = list_group(slot.child.pid)[1:] if slot else []
        if slot is None or not children:
            return None
        pid = self._drawn.choice(children)
        now = time.time()
        signal_process(pid, signal.SIGKILL)
        return Fault("child", now, now, slot.name, (pid,))

    def _web(self) -> Fault | None:
        slot = self._one(self.cluster.webs)
        if slot is None:
            return None
        now = time.time()
        slot.kill()
        return Fault("web", now, now, slot.name)

    def _restart(self, name: str, number: signal.Signals) -> Fault:
        slot, began = self.cluster.slots[name], time.time()
        slot.kill(number)
        time.sleep(self._drawn.uniform(0.0, DOWN_S))
        slot.run()
        return Fault(name, began, time.time(), name)

    def _flush(self) -> Fault:
        socket = str(self.cluster.here.valkey_socket)
        with redis.Redis(unix_socket_path=socket) as client:
            client.flushall()
        now = time.time()
        return Fault("flush", now, now, "valkey")

    def _pause(self) -> Fault | None:
        """Of three, two sleep with a claim in their hands, and one wherever it is."""
        if self._drawn.randrange(3):
            self._points.holding("pause")
            return None  # it counts when somebody passes
        slot = self._one(self.cluster.workers)
        return self._freeze("pause", slot, slot.name) if slot else None

    def _freeze(self, kind: str, slot: Slot, target: str) -> Fault:
        return self._sleepers.freeze(kind, slot, target, self._long())

    def _long(self) -> float:
        return LEASE_S + self._drawn.uniform(*OVERSLEEP_S)

    def _point(self) -> None:
        """Arm one; it counts when somebody passes."""
        self._points.anywhere("point", rare=not self.options.short)

    def _met(self, point: ArmedPoint) -> Fault:
        now = time.time()
        return Fault(point.kind, now, now, f"{point.name}: {point.action}")

    def _stopped(self, process: StoppedProcess) -> Fault:
        target = f"{process.name}: {failpoints.FaultAction.STOP}"
        fault = self._freeze(process.kind, process.slot, target)
        fault.pids = (process.pid,)
        return fault

    def _cut(self) -> Fault | None:
        """One of three for longer than a lease: what its workers held is done
        elsewhere, while they still believe that they hold it."""
        seconds = (self._long(), self._drawn.uniform(*CUT_S))[
            self._drawn.randrange(3) > 0
        ]
        host = self._drawn.choice(self.cluster.network.apps).name
        return self._cable.pull("cut", host, seconds)

    def _outage(self) -> Fault | None:
        return self._cable.pull("outage", DATA, self._drawn.uniform(*CUT_S))
